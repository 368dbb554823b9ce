"""A log put together again is the log as it was, whatever left it and whenever it was restored."""

from random import Random

import pytest

from reliable_channel.sds.log.log import MessageLog
from reliable_channel.sds.message import LogEntry
from reliable_channel_audit.log_order import Landed, LogOrder


def landed(entry: LogEntry) -> Landed:
    return Landed(entry.lamport_timestamp, entry.message_id, entry.sender_id, b"")


@pytest.mark.parametrize("seed", range(10))
def test_it_ends_as_the_log_that_told_the_positions(seed: int) -> None:
    random = Random(seed)
    log = MessageLog(limit=30)
    order, pending = LogOrder(), []
    order.go_on(0)
    for number in range(200):
        entry = LogEntry(f"{random.randrange(10**6)}-{number}", "alice", number // 3, b"")
        if log.is_below_horizon(*entry.key):
            continue
        pending.append((entry, log.insert(entry)))
        if random.random() < 0.5:  # a step ends: what left the log is told now
            for each, position in pending:
                order.land(landed(each), position, log.evicted, number)
            pending.clear()
    for each, position in pending:
        order.land(landed(each), position, log.evicted, number)
    assert order[-len(log) :] == [landed(entry) for entry in log]
    assert order == sorted(order)


def test_what_was_there_before_the_journal_stays_unknown() -> None:
    order = LogOrder()
    order.go_on(5)
    for number, position in ((7, 5), (9, 6), (8, 6)):
        order.land(Landed(number, "a", "alice", b""), position, 0, number)
    assert [entry.lamport_timestamp for entry in order] == [7, 8, 9]


def test_what_a_restart_tells_of_fills_the_unknown() -> None:
    order = LogOrder()
    order.go_on(0)
    for number in (1, 3):
        order.land(Landed(number, "a", "alice", b""), number // 2, 0, number)
    order.go_on(3)
    order.restore(Landed(2, "a", "alice", b""))
    order.land(Landed(4, "a", "alice", b""), 3, 0, 9)
    assert [entry.lamport_timestamp for entry in order] == [1, 2, 3, 4]


def test_a_restart_that_kept_less_begins_with_less() -> None:
    order = LogOrder()
    order.go_on(0)
    for number in range(5):
        order.land(Landed(number, "a", "alice", b""), number, 0, number)
    order.go_on(2)
    order.land(Landed(9, "a", "alice", b""), 2, 0, 9)
    assert [entry.lamport_timestamp for entry in order] == [3, 4, 9]


def test_a_message_that_landed_elsewhere_stays_there() -> None:
    order = LogOrder()
    order.go_on(0)
    for number, position in ((1, 0), (2, 0)):
        order.land(Landed(number, "a", "alice", b""), position, 0, number)
    assert [entry.lamport_timestamp for entry in order] == [2, 1]
    other = LogOrder()
    for number, position in ((1, 0), (2, 1)):
        other.land(Landed(number, "a", "alice", b""), position, 0, number)
    assert order.digest() != other.digest()
