"""Messages as differences from the one before: the very same bytes come back."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from reliable_channel.sds import NIM, SPEC, WireProfile
from reliable_channel.sds.changes import Recorder, Row, Table
from reliable_channel.sds.message import HistoryEntry, Message
from reliable_channel.sds.repair.cache import (
    DIFFERENCES,
    MAX_GROUP,
    REPAIR_CACHE,
    SMALL_BYTES,
    Assembled,
    RepairCache,
    difference,
    restored,
)


class Made:
    """Messages of one sender, made as a core makes them."""

    def __init__(self, seed: int, profile: WireProfile) -> None:
        self.random, self.codec = Random(seed), profile.codec
        self.history: list[bytes] = []

    def next(self) -> Assembled:
        random = self.random
        for _ in range(random.choice([0, 1, 2, 5])):
            hint = random.choice([None, random.randbytes(32)])
            entry = HistoryEntry(random.randbytes(33).hex(), hint, "alice")
            self.history.insert(
                random.choice([len(self.history)] * 5 + [0]), self.codec.encode_causal_entry(entry)
            )
        history = b"".join(self.history[-20:])
        content = random.randbytes(random.choice([1, 60, 3_000]))
        message_id, lamport = random.randbytes(33).hex(), random.randrange(10**9) * 1_000
        message = Message("alice", message_id, "general", lamport, content=content)
        return Assembled(self.codec.assemble(message, history), history)


@pytest.mark.parametrize("profile", [SPEC, NIM], ids=lambda profile: profile.name)
@pytest.mark.parametrize("seed", range(10))
def test_the_same_bytes_come_back(seed: int, profile: WireProfile) -> None:
    made, worth_it = Made(seed, profile), 0
    before = made.next()
    for _ in range(60):
        message = made.next()
        if (found := difference(before, message)) is not None:
            worth_it += 1
            assert restored(before.data, found) == message.data
            assert len(found) < len(message.data) // 2
        before = message
    assert worth_it > 20


def test_messages_with_nothing_in_common_make_no_difference() -> None:
    random = Random(3)
    one, other = (Assembled(data, data[50:800]) for data in map(random.randbytes, (900, 900)))
    assert difference(one, other) is None
    assert difference(one, one) is not None
    assert difference(one, Assembled(other.data, one.history)) is None
    assert difference(Assembled(b"no history", b""), Assembled(b"none either", b"")) is None


@pytest.mark.parametrize("shared", [2_500, 2_700, 2_999])
def test_a_difference_has_what_is_new_and_little_beside(shared: int) -> None:
    """What two histories begin with is not repeated, however much that is."""
    random = Random(shared)
    history = random.randbytes(3_000)
    other = history[:shared] + random.randbytes(3_000 - shared)
    one, two = (Assembled(b"id" + each + b"content", each) for each in (history, other))
    found = difference(one, two)
    assert found is not None and len(found) < 3_000 - shared + 100
    assert restored(one.data, found) == two.data


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
