"""The rows of a repair cache: messages come back, and no row stays for ever."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from reliable_channel.sds.changes import Recorder, Row, Table
from reliable_channel.sds.log.differences import Assembled
from reliable_channel.sds.log.kept_messages import DIFFERENCES, MAX_GROUP, REPAIR_CACHE, SMALL_BYTES
from reliable_channel.sds.repair.cache import RepairCache

HISTORY = Random(1).randbytes(4_000)
ROOM = 150
"""Messages that fit into the cache."""


def own(number: int) -> Assembled:
    """A message of 4 kB that is much like the one before."""
    history = HISTORY[number:]
    return Assembled(b"message %05d%b%b" % (number, history, bytes(number)), history)


class Disk:
    """What the recorder of a cache gave, as a state store has it."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.rows: dict[Table, dict[object, Row]] = {REPAIR_CACHE: {}, DIFFERENCES: {}}

    def write(self) -> None:
        for (table, key), row in self.recorder.take().rows.items():
            if row is None:
                self.rows[table].pop(key, None)
            else:
                self.rows[table][key] = row

    def reopened(self) -> tuple[RepairCache, Mapping[str, bytes]]:
        self.write()
        cache = RepairCache(ROOM * 4_000, self.recorder)
        found = cache.restore(*(table.values() for table in self.rows.values()))
        cache.fill(found)
        self.write()
        return cache, found


def test_own_messages_come_back_after_every_restart() -> None:
    disk, random = Disk(), Random(2)
    cache, _ = disk.reopened()
    here: list[str] = []
    for number in range(700):
        message = own(number)
        cache.add(f"{number}", message.data, durably=True, own=message)
        here.append(f"{number}")
        if random.random() < 0.3:
            cache.add(f"of bob {number}", bytes(random.randrange(4_000)), durably=number % 3 == 0)
        if random.random() < 0.05:
            cache.discard(here.pop(random.randrange(max(0, len(here) - 30), len(here))))
        if random.random() < 0.02:
            cache, found = disk.reopened()
            assert {i: cache.get(i) for i in here if i in cache} == {
                i: own(int(i)).data for i in here if i in cache
            }
            assert all(i in found for i in here if i in cache)
            assert "0" not in found or number < 2 * (ROOM + MAX_GROUP)
        here = [i for i in here if i in cache]
    assert len(disk.rows[DIFFERENCES]) > 50
    assert sum(map(len, disk.rows.values())) < 2 * (ROOM + MAX_GROUP)


def test_a_message_is_written_as_a_difference_from_the_one_before() -> None:
    disk = Disk()
    cache, _ = disk.reopened()
    for number in range(MAX_GROUP + 1):
        message = own(number)
        cache.add(f"{number}", message.data, durably=True, own=message)
    disk.write()
    assert set(disk.rows[REPAIR_CACHE]) == {"0", f"{MAX_GROUP}"}
    assert all(len(row[-1]) < 200 for row in disk.rows[DIFFERENCES].values())  # type: ignore[arg-type]


@pytest.mark.parametrize("gone", [0, 3, 9])
def test_a_message_that_is_discarded_is_in_no_row(gone: int) -> None:
    disk = Disk()
    cache, _ = disk.reopened()
    for number in range(10):
        message = own(number)
        cache.add(f"{number}", message.data, durably=True, own=message)
    disk.write()
    cache.discard(f"{gone}")
    _, found = disk.reopened()
    assert found == {f"{i}": own(i).data for i in range(10) if i != gone}


def test_all_rows_go_with_the_messages() -> None:
    disk = Disk()
    cache, _ = disk.reopened()
    for number in range(MAX_GROUP * 2):
        message = own(number)
        cache.add(f"{number}", message.data, durably=True, own=message)
    disk.write()
    for number in range(ROOM):
        cache.add(f"of bob {number}", bytes(4_000))
    disk.write()
    assert disk.rows == {REPAIR_CACHE: {}, DIFFERENCES: {}}


def test_without_state_nothing_is_recorded() -> None:
    cache, message = RepairCache(10_000), own(1)
    assert cache.add("1", message.data, durably=True, own=message)
    assert cache.restore([], []) == {}


@pytest.mark.parametrize(("size", "is_whole"), [(SMALL_BYTES, True), (SMALL_BYTES + 1, False)])
def test_a_small_message_is_written_whole(size: int, is_whole: bool) -> None:
    disk = Disk()
    cache, _ = disk.reopened()
    for number in range(2):
        history = HISTORY[: size - 1]
        message = Assembled(history + bytes([number]), history)
        cache.add(f"{number}", message.data, durably=True, own=message)
    disk.write()
    assert ("1" in disk.rows[REPAIR_CACHE]) is is_whole
