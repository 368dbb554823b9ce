from reliable_channel.sds.changes import Recorder
from reliable_channel.sds.incoming import (
    LOST,
    REFERENCE_BYTES,
    IncomingBuffer,
    ParkedMessage,
    in_log_order,
)
from reliable_channel.sds.message import HistoryEntry, Message


def parked(message_id: str, *unmet: str, lamport: int = 0, arrived_ms: int = 0) -> ParkedMessage:
    message = Message("s", message_id, "c", lamport, content=b"c")
    return ParkedMessage(message, bytes(10), None, arrived_ms, set(unmet))


def ids(messages: list[ParkedMessage]) -> list[str]:
    return [each.message.message_id for each in messages]


def buffer(*messages: ParkedMessage, lost_limit: int = 10) -> IncomingBuffer:
    made = IncomingBuffer(lost_limit=lost_limit)
    for each in messages:
        made.park(each)
    return made


def test_a_message_is_released_with_its_last_dependency() -> None:
    made = buffer(parked("m", "a", "b"), parked("n", "a"))
    assert ids(made.mark_delivered("a")) == ["n"]
    assert ids(made.mark_delivered("b")) == ["m"]
    assert made.mark_delivered("b") == []
    assert made.mark_delivered("unknown") == []


def test_a_message_that_was_given_up_is_remembered_by_those_who_waited() -> None:
    made = buffer(parked("m", "a"), parked("n", "a", "b"))
    entry = HistoryEntry("a", b"hint", "s")
    made.note_missing(entry, 0)
    (released,) = made.give_up(entry)
    assert (released.message.message_id, released.lost) == ("m", [entry])
    assert made.parked["n"].lost == [entry]
    assert "a" in made.lost and "a" not in made.missing


def test_what_was_given_up_is_forgotten_beyond_the_limit() -> None:
    made = buffer(lost_limit=2)
    for name in "abc":
        made.give_up(HistoryEntry(name))
    assert list(made.lost) == ["b", "c"]


def test_missing_is_news_once() -> None:
    made = buffer(parked("m", "a"))
    assert made.note_missing(HistoryEntry("a"), 5)
    assert not made.note_missing(HistoryEntry("a", b"hint"), 9)
    assert made.missing["a"].since_ms == 5
    assert not made.note_missing(HistoryEntry("m"), 9)


def test_what_arrived_or_was_forgotten_is_deleted_from_state() -> None:
    recorder = Recorder()
    made = IncomingBuffer(lost_limit=2, recorder=recorder)
    for name in "abc":
        made.give_up(HistoryEntry(name))
    made.arrived("b")
    rows = recorder.take().rows
    deleted = {key for (table, key), row in rows.items() if table is LOST and row is None}
    assert deleted == {"a", "b"}
    made.arrived("never lost")
    assert not recorder.take()


def test_what_arrived_is_neither_missing_nor_lost() -> None:
    made = buffer()
    made.note_missing(HistoryEntry("a"), 0)
    made.give_up(HistoryEntry("b"))
    for name in "abc":
        made.arrived(name)
    assert not made.missing and not made.lost


def test_the_size_in_bytes_follows_what_is_parked() -> None:
    made = buffer(parked("m", "a"), parked("n", "a", "b"))
    assert made.size_bytes == 20 + 3 * REFERENCE_BYTES
    made.mark_delivered("b")
    made.take("m")
    assert made.size_bytes == 10 + 2 * REFERENCE_BYTES  # as charged when it was parked
    made.evict("n")
    assert made.size_bytes == 0


def test_eviction_takes_a_message_and_its_references() -> None:
    made = buffer(parked("m", "a", "b"), parked("n", "b"))
    assert made.evict("m").message.message_id == "m"
    assert made.mark_delivered("a") == []
    assert ids(made.mark_delivered("b")) == ["n"]


def test_overdue_is_strictly_longer_than_the_timeout_oldest_first() -> None:
    made = buffer()
    for name, since_ms in [("a", 0), ("b", 5), ("c", 6)]:
        made.note_missing(HistoryEntry(name), since_ms)
    assert [e.message_id for e in made.overdue(15, 10)] == ["a"]
    assert [e.message_id for e in made.overdue(16, 10)] == ["a", "b"]


def test_only_overdue_cycles_are_deadlocked() -> None:
    made = buffer(
        parked("a", "b", lamport=2),
        parked("b", "a", lamport=1),
        parked("c", "a", lamport=3),
        parked("waits", "missing"),
        parked("behind", "waits"),
        parked("young", "young2", arrived_ms=90),
        parked("young2", "young", arrived_ms=90),
    )
    made.note_missing(HistoryEntry("missing"), 0)
    assert ids(made.deadlocked(100, 50)) == ["b", "a", "c"]
    assert made.deadlocked(50, 50) == []


def test_log_order_is_lamport_then_id() -> None:
    messages = [parked("b", lamport=2), parked("c", lamport=1), parked("a", lamport=2)]
    assert ids(in_log_order(messages)) == ["c", "a", "b"]
