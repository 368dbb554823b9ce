from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds.log.entry import LogEntry
from reliable_channel.sds.log.log import EVICTED_IDS, MessageLog


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
@settings(derandomize=True)
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
