from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds.changes import LogRow, Recorder
from reliable_channel.sds.log import archive
from reliable_channel.sds.log.log import EVICTED_IDS, MessageLog
from reliable_channel.sds.message import LogEntry
from reliable_channel.state import Identity, MemoryStateStore


def entry(
    message_id: str, lamport: int = 0, content: bytes = b"c", sender_id: str = "s"
) -> LogEntry:
    return LogEntry(message_id, sender_id, lamport, content)


def log_of(*entries: LogEntry, limit: int = 100) -> MessageLog:
    log = MessageLog(limit)
    for each in entries:
        log.insert(each)
    return log


ENTRIES = st.lists(
    st.tuples(st.integers(0, 5), st.text(min_size=1, max_size=3)), unique_by=lambda e: e[1]
)


@pytest.mark.conformance("SDS-WIRE-4", "SDS-RECEIVE-6")
@settings(derandomize=True, max_examples=40)
@given(ENTRIES, st.randoms(use_true_random=False))
def test_any_order_of_insertion_gives_one_log(keys: list[tuple[int, str]], random: Random) -> None:
    shuffled = list(keys)
    random.shuffle(shuffled)
    log = MessageLog(1_000)
    for count, (lamport, message_id) in enumerate(shuffled):
        position = log.insert(entry(message_id, lamport))
        ordered = sorted(shuffled[: count + 1], key=lambda k: (k[0], k[1].encode()))
        assert [e.message_id for e in log] == [k[1] for k in ordered]
        assert ordered[position] == (lamport, message_id)
    assert log.digest() == log_of(*(entry(i, lamport) for lamport, i in keys)).digest()


@pytest.mark.conformance("SDS-HISTORY-1", "SDS-HISTORY-2")
@settings(derandomize=True)
@given(ENTRIES, st.integers(1, 5))
def test_a_full_log_keeps_the_newest(keys: list[tuple[int, str]], limit: int) -> None:
    log = log_of(*(entry(i, lamport) for lamport, i in keys), limit=limit)
    newest = sorted(keys)[-limit:]
    assert [(e.lamport_timestamp, e.message_id) for e in log] == newest
    assert len(log) == len(newest)
    assert log.evicted == len(keys) - len(newest)
    for lamport, message_id in keys:
        assert log.is_known(message_id) is ((lamport, message_id) not in newest)
        assert log.is_below_horizon(lamport, message_id) is ((lamport, message_id) not in newest)


def test_look_ups() -> None:
    one = entry("a")
    log = log_of(one)
    assert "a" in log and "b" not in log
    assert log.get("a") is one
    assert log.get("b") is None
    assert "'a'" in repr(one)


def test_last_is_oldest_first() -> None:
    log = log_of(*(entry(f"m{i}", i) for i in range(5)))
    assert [e.message_id for e in log.last(2)] == ["m3", "m4"]
    assert [e.message_id for e in log.last(50)] == ["m0", "m1", "m2", "m3", "m4"]
    assert log.last(0) == []


def test_an_empty_log_has_no_horizon() -> None:
    assert not MessageLog(1).is_below_horizon(0, "")


def test_the_horizon_never_moves_back() -> None:
    log = log_of(entry("b", 2), entry("c", 3), entry("d", 4), limit=2)
    log.insert(entry("a", 1))
    assert log.horizon == (2, "b")


def test_evicted_ids_are_forgotten_in_the_end() -> None:
    log = log_of(*(entry(f"m{i}", i) for i in range(EVICTED_IDS + 3)), limit=1)
    assert not log.is_known("m0")
    assert not log.is_known("m1")
    assert log.is_known("m2")


@pytest.mark.parametrize(
    "other",
    [
        entry("a", 1, b"bc"),
        entry("ab", 1, b"c"),
        entry("a", 2, b"c"),
        entry("a", 1, b"c", "t"),
        entry("a", 11, b""),
    ],
)
def test_the_digest_tells_logs_apart(other: LogEntry) -> None:
    assert log_of(entry("a", 1, b"c")).digest() != log_of(other).digest()


def test_the_digest_leaves_out_what_is_local() -> None:
    hinted = LogEntry("a", "s", 1, b"c", b"hint")
    assert log_of(hinted).digest() == log_of(entry("a", 1)).digest()


def test_a_position_counts_from_the_oldest_entry_that_is_kept() -> None:
    log = MessageLog(3)
    positions = [log.insert(entry(f"m{i}", i)) for i in (1, 2, 3, 4, 6, 5, 0)]
    assert positions == [0, 1, 2, 2, 2, 1, 0]
    assert [e.message_id for e in log] == ["m4", "m5", "m6"]


def rows(entries: Iterable[LogEntry]) -> list[LogRow]:
    return [each.row for each in entries]


class Archived:
    """A log of which some newest entries are in memory, and the store that has the others."""

    def __init__(self, *, limit: int = 1_000, window: int = 3) -> None:
        self.store, self.recorder = MemoryStateStore(), Recorder()
        self.limit, self.window = limit, window
        self.log = self.begin()

    def begin(self) -> MessageLog:
        """Open the store, and begin with what it has."""
        saved = self.store.open(Identity("channel", "alice", "spec"))
        log = MessageLog(
            self.limit, recorder=self.recorder, archive=self.store.archive(), window=self.window
        )
        log.restore_from(saved.tables, saved.newest)
        return log

    def write(self) -> None:
        self.store.write(self.recorder.take())

    def insert(self, *entries: LogEntry) -> list[int]:
        positions = []
        for each in entries:
            positions.append(self.log.insert(each))
            self.write()
        return positions


ACTIONS = st.lists(st.sampled_from(["insert", "hint", "remove", "restart"]), max_size=30)


@settings(derandomize=True, max_examples=60)
@given(ACTIONS, st.randoms(use_true_random=False))
def test_a_log_with_an_archive_is_that_of_memory(actions: list[str], random: Random) -> None:
    archived, plain = Archived(), MessageLog(1_000)
    for number, action in enumerate(["insert"] * 5 + actions):
        known = [each.message_id for each in plain]
        if action == "insert":
            lamport = random.randrange(20)
            (position,) = archived.insert(entry(f"m{number}", lamport))
            assert position == plain.insert(entry(f"m{number}", lamport))
        elif action == "restart":
            archived.log = archived.begin()
        elif known:
            message_id = random.choice(known)
            if action == "remove":
                assert archived.log.remove(message_id).row == plain.remove(message_id).row
            else:
                learned = archived.log.set_retrieval_hint(message_id, b"hint")
                assert learned is plain.set_retrieval_hint(message_id, b"hint")
            archived.write()
        log = archived.log
        assert rows(log) == rows(plain) and len(log) == len(plain)
        assert log.digest() == plain.digest()
        for count in (0, 2, 100):
            assert rows(log.last(count)) == rows(plain.last(count))
        assert list(log.keys_between(5, 15)) == list(plain.keys_between(5, 15))
        assert all(rows(filter(None, [log.get(each.message_id)])) == [each.row] for each in plain)
        assert "nothing" not in log and not log.is_known("nothing")
        assert len(log.entries) <= archived.window
        assert all(log.is_known(each) for each in known if each in log and each not in log.entries)


def test_an_archive_lets_go_of_whole_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "BLOCK_ENTRIES", 2)
    archived = Archived(limit=6)
    archived.insert(*(entry(f"m{number}", number) for number in range(9)))
    assert [each.message_id for each in archived.log] == [f"m{number}" for number in range(2, 9)]
    assert archived.log.horizon == (1, "m1") and archived.log.evicted == 2
    assert archived.log.was_evicted("m0") and archived.log.is_known("m0")
    assert archived.log.is_below_horizon(1, "a") and not archived.log.is_below_horizon(2, "a")
    archived.log.forget_before(7)
    archived.write()
    again = archived.begin()
    assert rows(again) == rows(archived.log) and len(again) == 5
    assert archived.log.horizon == (3, "m3")
    assert again.was_evicted("m0")


def test_what_is_older_than_a_time_leaves_memory() -> None:
    log = log_of(*(entry(f"m{number}", number) for number in range(5)))
    log.forget_before(3)
    assert [each.message_id for each in log] == ["m3", "m4"]
    assert [each.message_id for each in log.since((4, "m4"), 5)] == ["m4"]
    assert [each.message_id for each in log.since((3, "m3"), 5)] == ["m3", "m4"]
    assert log.since((3, "m3"), 0) == []
