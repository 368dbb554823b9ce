"""What is noted of messages, and what `explain` makes of it: real engines, no event loop."""

from typing import Any

from reliable_channel.engine.message_traces import MAX_EXPLAINED, MAX_NOTED, MessageTraces
from reliable_channel.explanation import StoreSearch, Way
from reliable_channel.sds.events import (
    MessageMissing,
    MessageReceived,
    MessageReconciled,
    RepairRequested,
    RepairRequestReceived,
)
from reliable_channel.sds.message import HistoryEntry, LogEntry

from .world import START_MS, Peer

ASKS_SOON: Any = {
    "retrieval_strategy": "sds-r-only",
    "repair": {"t_min_ms": 100, "t_max_ms": 101, "sweep_interval_ms": 10},
}


def sent(peer: Peer, text: bytes) -> tuple[str, bytes]:
    (message_id,) = peer.send(text).message_ids
    (outgoing,) = peer.publish()
    return message_id, outgoing.data


def test_a_first_copy_came_without_trouble() -> None:
    alice, bob = Peer("alice"), Peer("bob")
    message_id, data = sent(alice, b"hello")
    bob.receive(data)
    bob.now_ms += 5_000
    explained = bob.engine.explain(message_id, bob.now_ms)
    assert (explained.sender_id, explained.way, explained.late_ms) == (
        *("alice", Way.FIRST_COPY),
        0,
    )
    assert explained.in_log and not explained.is_own
    assert explained.sentence == "its first copy arrived after 0.0 s"


def test_a_copy_that_is_stamped_later_is_an_extra_one_or_from_store() -> None:
    alice, bob, carol = Peer("alice"), Peer("bob"), Peer("carol")
    message_id, data = sent(alice, b"hello")
    for peer, from_store, way in ((bob, False, Way.EXTRA_COPY), (carol, True, Way.STORE)):
        peer.now_ms += 700
        peer.receive(data, from_store=from_store)
        explained = peer.engine.explain(message_id, peer.now_ms)
        assert explained.way is way and explained.late_ms in (699, 700)  # Lamport steps by 1
    assert explained.sentence == "it did not arrive; Store had it after 0.7 s"


def test_a_message_that_was_missing_names_what_showed_it_and_its_requests() -> None:
    alice, bob = Peer("alice"), Peer("bob", **ASKS_SOON)
    lost_id, lost = sent(alice, b"lost")
    alice.now_ms += 1_000
    later_id, later = sent(alice, b"later")
    bob.now_ms += 1_200
    bob.receive(later)
    missing = bob.engine.explain(lost_id, bob.now_ms + 300)
    assert (missing.noticed_ms, missing.noticed_through, missing.noticed_from) == (
        *(START_MS + 1_200, later_id),
        "alice",
    )
    assert missing.sentence == (
        "it did not arrive; it was noticed as missing, through a message of alice; "
        "it is still missing after 0.3 s"
    )
    parked = bob.engine.explain(later_id, bob.now_ms + 300)
    assert parked.sentence.endswith(f"it waits 0.3 s for {lost_id[:8]}")
    due_ms = bob.engine.agenda.next_ms
    assert due_ms is not None
    bob.now_ms = due_ms
    bob.end(bob.engine.on_deadline(due_ms))
    bob.now_ms = START_MS + 2_000
    bob.receive(lost)
    explained = bob.engine.explain(lost_id, bob.now_ms)
    assert explained.way is Way.REPAIR and explained.late_ms in (1_999, 2_000)
    assert [each.participant_id for each in explained.requests] == ["bob"]
    assert "it was noticed as missing after 1.2 s, through a message of alice" in explained.sentence
    assert explained.sentence.endswith("a repeated copy arrived after 2.0 s")
    waited = bob.engine.explain(later_id, bob.now_ms)
    assert waited.logged_ms == bob.now_ms and waited.waited_for == (lost_id[:8],)


def test_own_messages_have_their_dispatches_and_their_acknowledgement() -> None:
    alice, bob = Peer("alice"), Peer("bob")
    (message_id,) = alice.send(b"hello").message_ids
    assert alice.engine.explain(message_id, alice.now_ms + 2_000).sentence == (
        "no node has taken it for 2.0 s"
    )
    (outgoing,) = alice.publish()
    bob.receive(outgoing.data)
    alice.now_ms += 900
    waits = alice.engine.explain(message_id, alice.now_ms).sentence
    assert waits == "it was published once; not acknowledged for 0.9 s"
    alice.receive(sent(bob, b"thanks")[1])
    explained = alice.engine.explain(message_id, alice.now_ms)
    assert explained.acknowledged_by == "bob"
    assert [dispatch.kind for dispatch in explained.dispatches] == ["content"]
    assert explained.sentence.endswith("bob acknowledged it 0.9 s after it was published")


def test_a_cancelled_message_says_so() -> None:
    alice = Peer("alice")
    accepted = alice.send(b"hello")
    alice.engine.cancel(accepted.message_ids, alice.now_ms)
    why = alice.engine.explain(accepted.message_ids[0], alice.now_ms).sentence
    assert why == "the application cancelled it"


def test_a_reconciled_message_names_the_participant_that_sent_it() -> None:
    message_traces = MessageTraces("bob", proves_copies=True)
    received = MessageReceived("m", "alice", b"x", START_MS, 0)
    for event in (received, MessageReconciled("m", "carol")):
        message_traces.notes[type(event)](event, START_MS + 9_000)
    explained = message_traces.explain(
        "m", LogEntry("m", "alice", START_MS, b"x"), START_MS + 9_000
    )
    assert (explained.way, explained.answered_by) == (Way.RECONCILIATION, "carol")
    assert explained.sentence == (
        "it did not arrive; carol sent it to repair a difference of the logs, after 9.0 s"
    )


def test_the_oldest_are_forgotten_and_notes_of_one_message_are_bounded() -> None:
    message_traces = MessageTraces("bob", proves_copies=True)
    for number in range(MAX_EXPLAINED + 1):
        message_traces.arrived(f"{number}", 1, START_MS, from_store=False, is_parked=True)
    assert message_traces.explain("0", None, START_MS).arrived_ms is None
    assert message_traces.explain("1", None, START_MS).arrived_ms == START_MS
    for number in range(2 * MAX_NOTED):
        message_traces.searched("x", StoreSearch(START_MS, "time", 10, "not found"))
        request = RepairRequestReceived(("x",), f"p{number}")
        message_traces.notes[RepairRequestReceived](request, START_MS)
    explained = message_traces.explain("x", None, START_MS)
    assert len(explained.searches) == len(explained.requests) == MAX_NOTED
    message_traces.notes[RepairRequestReceived](RepairRequestReceived(("other",), "p"), START_MS)
    assert (
        message_traces.explain("other", None, START_MS).requests == ()
    )  # nothing of ours is missing


def test_a_request_is_noted_of_each_message_that_did_not_come() -> None:
    message_traces = MessageTraces("bob", proves_copies=True)
    message_traces.arrived("came", 1, START_MS, from_store=False, is_parked=True)
    request = RepairRequested(("came", "one", "other"), "sync")
    message_traces.notes[RepairRequested](request, START_MS)
    counts = [
        len(message_traces.explain(each, None, START_MS).requests) for each in request.message_ids
    ]
    assert counts == [0, 1, 1]


def test_so_many_messages_that_one_waits_for_are_noted() -> None:
    message_traces = MessageTraces("bob", proves_copies=True)
    message_traces.arrived("m", 1, START_MS, from_store=False, is_parked=True)
    names = [f"u{number}" for number in range(MAX_NOTED + 4)]
    for part in (names[:10], names[10:]):
        missing = MessageMissing(tuple(map(HistoryEntry, part)), "m", "alice")
        message_traces.notes[MessageMissing](missing, START_MS)
    assert message_traces.explain("m", None, START_MS).waited_for == tuple(names[:MAX_NOTED])
