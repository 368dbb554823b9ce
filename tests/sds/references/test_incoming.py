from dataclasses import replace

from reliable_channel.sds.changes import Recorder, Row, Table
from reliable_channel.sds.message import HistoryEntry, Message
from reliable_channel.sds.references.incoming import (
    LOST,
    MAX_NAMED,
    MISSING,
    PARKED,
    REFERENCE_BYTES,
    IncomingBuffer,
    MissingEntry,
    ParkedMessage,
    in_log_order,
)
from reliable_channel.sds.references.queued import UNSEEN, Batch


def parked(message_id: str, *unmet: str, lamport: int = 0, arrived_ms: int = 0) -> ParkedMessage:
    message = Message("s", message_id, "c", lamport, content=b"c")
    return ParkedMessage(message, bytes(10), None, arrived_ms=arrived_ms, unmet=set(unmet))


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


def test_of_the_sender_with_most_what_waited_longest_makes_room() -> None:
    made, other = buffer(parked("m", "a"), parked("n", "a", "b", "c")), parked("o", "a")
    other.message = replace(other.message, sender_id="other")
    made.park(other)
    for shares in (made.parked_counts, made.parked_sizes):
        assert shares.first_to_go() == "m"
    made.evict("m")
    assert made.parked_counts.first_to_go() == "n"
    assert made.take("n").message.message_id == "n"
    for shares in (made.parked_counts, made.parked_sizes):
        assert shares.first_to_go() == "o"
    made.evict("o")
    assert len(made.parked_counts) == len(made.parked_sizes) == 0


def test_nobody_waits_for_what_an_evicted_message_referred_to() -> None:
    made = buffer(parked("m", "a", "b"), parked("n", "b"))
    made.evict("m")
    assert not made.waits_for("a") and made.waits_for("b")


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


def test_what_is_looked_for_again_is_no_news() -> None:
    made = buffer(parked("here", "a"))
    made.note_missing(HistoryEntry("a", b"hint"), 5, "bob")
    made.note_missing(HistoryEntry("a"), 9, "carol")
    made.note_missing(HistoryEntry("here"), 9, "carol")
    assert made.missing["a"] == MissingEntry(HistoryEntry("a", b"hint"), 5, "bob")
    assert (made.missing_for_ms("a", 12), made.missing_for_ms("here", 12)) == (7, None)
    assert made.reference_count == 1


def test_a_missing_message_that_another_misses_too_is_charged_to_whom_has_fewest() -> None:
    made = buffer()
    for name in ("a", "b"):
        made.note_missing(HistoryEntry(name), 0, "bob")
    made.note_missing(HistoryEntry("a"), 0, "carol")
    assert [made.references.owner_of(name) for name in ("a", "b")] == ["carol", "bob"]
    made.arrived("a")
    assert made.references.weight_of("carol") == 0


def test_a_missing_message_that_makes_room_is_named_by_those_who_waited() -> None:
    made = buffer(parked("m", "a"))
    entry = HistoryEntry("a", b"hint", "s")
    made.note_missing(entry, 0)
    (released,) = made.forget_missing("a")
    assert (released.message.message_id, released.lost) == ("m", [entry])
    assert not made.missing and not made.lost and not made.waits_for("a")


# -- references that wait for their turn -


def with_batch(*ids: str, since_ms: int = 0, also: str = "") -> tuple[IncomingBuffer, Batch]:
    """A buffer where `m` waits for references that are not looked for yet."""
    made = buffer()
    places = {message_id: place for place, message_id in enumerate(ids)}
    batch = Batch("m", True, "s", "", since_ms, places, lambda: (), 0)
    made.queued.add(batch)
    made.park(parked("m", *ids, *also))
    return made, batch


def test_a_message_waits_for_references_that_wait_for_their_turn() -> None:
    made, _ = with_batch("a", "b", since_ms=5)
    assert made.reference_count == 2
    assert made.missing_for_ms("a", 12) == 7
    assert made.mark_delivered("a") == []
    assert ids(made.mark_delivered("b")) == ["m"]


def test_what_is_looked_for_in_its_turn_is_waited_for_all_the_same() -> None:
    made, _ = with_batch("a", "b")
    assert not made.waits_for("a")
    made.note_missing(HistoryEntry("a"), 0)
    assert made.waits_for("a") and "a" not in made.queued
    made.arrived("b")
    assert made.waits_for("b") and not made.queued
    assert made.mark_delivered("a") == []
    assert ids(made.mark_delivered("b")) == ["m"]


def test_references_that_make_room_are_named_up_to_a_number() -> None:
    for count in (MAX_NAMED, MAX_NAMED + 1):
        names = [f"u{n}" for n in range(count)]
        made, batch = with_batch(*names)
        ready, dropped = made.forget_queued(batch)
        assert (ids(ready), dropped) == (["m"], count)
        expected = names if count == MAX_NAMED else []
        assert [entry.message_id for entry in ready[0].lost] == expected
        assert not made.queued and made.reference_count == 0


def test_a_message_that_waits_for_more_than_its_dropped_references_goes_on_waiting() -> None:
    made, batch = with_batch("a", also="b")
    assert made.forget_queued(batch) == ([], 1)
    assert ids(made.mark_delivered("b")) == ["m"]


def test_references_of_a_sync_message_make_room_for_nobody() -> None:
    made = buffer()
    made.queued.add(batch := Batch("sync", False, "s", "", 0, {"a": 0, "b": 1}, lambda: (), 0))
    assert made.forget_queued(batch) == ([], 2)


def test_dropped_references_that_others_wait_for_are_handed_on() -> None:
    made, batch = with_batch("a", "b")
    second = parked("n", "b")
    second.message = replace(second.message, sender_id="nick")
    made.park(second)
    assert made.forget_queued(batch) == ([], 1)  # `m` waits for `b` still
    assert [entry.message_id for entry in made.parked["m"].lost] == ["a"]
    handed_on = made.queued.get("b")
    assert handed_on is not None and handed_on.referrer_id == "nick"
    assert made.missing_for_ms("b", 9) == 9
    assert sorted(ids(made.mark_delivered("b"))) == ["m", "n"]


def test_what_was_handed_on_and_makes_room_releases_all_who_waited() -> None:
    made, batch = with_batch("a", "b")
    made.park(parked("n", "b"))
    made.forget_queued(batch)
    handed_on = made.queued.get("b")
    assert handed_on is not None
    ready, dropped = made.forget_queued(handed_on)
    assert (sorted(ids(ready)), dropped) == (["m", "n"], 1)
    assert [entry.message_id for entry in made.parked["m"].lost] == ["a", "b"]
    assert [entry.message_id for entry in made.parked["n"].lost] == ["b"]


def test_an_evicted_message_takes_its_references_along_but_not_those_of_others() -> None:
    made, _ = with_batch("a", "b")
    made.park(parked("n", "b"))
    made.evict("m")
    assert "a" not in made.queued and "b" in made.queued
    assert ids(made.mark_delivered("b")) == ["n"]


def test_a_message_that_waits_for_its_turn_is_not_deadlocked() -> None:
    made, _ = with_batch("a")
    made.park(parked("behind", "m"))
    assert made.deadlocked(100, 50) == []


# -- restarts -


def restarted(recorder: Recorder, *messages: ParkedMessage, known: str = "") -> IncomingBuffer:
    """A buffer that begins from what another one recorded; `messages` have their histories."""
    tables: dict[Table, list[Row]] = {}
    for (table, _), row in recorder.take().rows.items():
        if row is not None:
            tables.setdefault(table, []).append(row)
    made = IncomingBuffer(lost_limit=10)
    made.restore_references(reversed(tables.get(MISSING, [])), tables.get(LOST, []))
    arrived = {row[0]: row[1] for row in tables.get(PARKED, [])}
    assert arrived == {each.message.message_id: each.arrived_ms for each in messages}
    made.restore_parked(messages, tables.get(UNSEEN, []), known.__contains__)
    return made


def arrived(message_id: str, *history: str, arrived_ms: int = 0) -> ParkedMessage:
    """A message with its causal history, of which nothing is known yet."""
    message = Message("s", message_id, "c", 0, [HistoryEntry(i) for i in history], content=b"c")
    return ParkedMessage(message, bytes(10), None, arrived_ms=arrived_ms, unmet=set())


def test_after_a_restart_messages_wait_for_the_same() -> None:
    recorder = Recorder()
    made = IncomingBuffer(lost_limit=10, recorder=recorder)
    made.note_missing(HistoryEntry("a", b"hint", "s"), 5, "bob")
    made.note_missing(HistoryEntry("b"), 7, "carol")
    made.give_up(HistoryEntry("l", b"hint", "s"))
    made.park(parked("m", "a", "b", arrived_ms=1))
    made.park(parked("n", "m", arrived_ms=2))
    made.note_missing(HistoryEntry("found"), 8)
    made.arrived("found")
    made.park(parked("gone", "a"))
    made.take("gone")
    again = restarted(
        recorder,
        arrived("n", "m", "l", arrived_ms=2),
        arrived("m", "a", "b", "m", "in the log", arrived_ms=1),
    )
    assert list(again.missing.items()) == [
        ("a", MissingEntry(HistoryEntry("a", b"hint", "s"), 5, "bob")),
        ("b", MissingEntry(HistoryEntry("b"), 7, "carol")),
    ]
    assert again.references.owner_of("a") == "bob"
    assert again.lost == {"l": HistoryEntry("l", b"hint", "s")}
    assert list(again.parked) == ["m", "n"]
    assert (again.parked["m"].unmet, again.parked["n"].unmet) == ({"a", "b"}, {"m"})
    assert [entry.message_id for entry in again.parked["n"].lost] == ["l"]
    assert again.parked["m"].lost == []
    assert not again.queued
    assert again.size_bytes == 20 + 3 * REFERENCE_BYTES
    assert again.mark_delivered("a") == []
    assert ids(again.mark_delivered("b")) == ["m"]


def test_after_a_restart_references_wait_for_their_turn_as_before() -> None:
    recorder = Recorder()
    made = IncomingBuffer(lost_limit=10, recorder=recorder)
    made.note_missing(HistoryEntry("a"), 5)
    made.give_up(HistoryEntry("l"))
    made.queued.add(Batch("m", True, "s", "", 6, {"u": 1, "v": 2}, lambda: (), 0))
    made.park(parked("m", "a", "u", "v"))
    made.queued.add(Batch("n", True, "s", "", 8, {"w": 1}, lambda: (), 0))
    made.park(parked("n", "v", "w", arrived_ms=1))
    history = ("", "m", "l", "k", "u", "v", "a")
    again = restarted(
        recorder, arrived("m", *history), arrived("n", "v", "w", arrived_ms=1), known="k"
    )
    assert again.parked["m"].unmet == {"a", "u", "v"}
    assert again.parked["n"].unmet == {"v", "w"}
    batch = again.queued.carried_by("m")
    assert batch is not None
    assert (batch.ids, batch.since_ms, batch.referrer_id) == ({"u": 4, "v": 5}, 6, "s")
    assert [batch.history()[place].message_id for place in batch.ids.values()] == ["u", "v"]
    assert again.queued.size == 3
    for name in ("a", "u"):
        assert again.mark_delivered(name) == []
    assert ids(again.mark_delivered("v")) == ["m"]
    assert ids(again.mark_delivered("w")) == ["n"]


def test_log_order_is_lamport_then_id() -> None:
    messages = [parked("b", lamport=2), parked("c", lamport=1), parked("a", lamport=2)]
    assert ids(in_log_order(messages)) == ["c", "a", "b"]
