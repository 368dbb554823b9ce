"""One participant whole, without an event loop."""

from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, cast
from unittest.mock import patch

import pytest

from reliable_channel import MessageAcknowledged, MessageReceived, MessageSent
from reliable_channel.diagnostics import (
    MessageRejected,
    RejectionReason,
    SegmentDiscarded,
    SendingFellBehind,
)
from reliable_channel.engine.engine import (
    CANCELLED,
    LOOKS_APART_MS,
    REORDERED_MS,
    RESTART_MARGIN_MS,
)
from reliable_channel.engine.logged import Logged
from reliable_channel.engine.recovery import Repairs
from reliable_channel.engine.steps import Wake
from reliable_channel.engine.sync_core import MissingEntry, SyncCore
from reliable_channel.engine.translation import Translation
from reliable_channel.errors import ContentTooLong, OutgoingBufferFull
from reliable_channel.events import (
    EphemeralDropped,
    HistoryEntry,
    MessageStored,
    PayloadDropped,
    RateLimitReached,
    ReceiveProgress,
    SendFailed,
    SendingMessage,
    SendProgress,
    StateDegraded,
    StateRecovered,
)
from reliable_channel.options import ChannelOptions, Limits, RateLimitOptions
from reliable_channel.runtime.runtime import DAMAGE
from reliable_channel.sds import SdsProtocol
from reliable_channel.sds.agenda import Slot
from reliable_channel.sds.events import Outgoing, OutgoingKind
from reliable_channel.sds.receiving import Outcome
from reliable_channel.segmentation import LAYOUTS
from reliable_channel.segmentation.segment import Segment
from reliable_channel.state import Identity, MemoryStateStore, StateUnavailable

from .world import FULL, START_MS, Peer, hash_of


def test_a_message_goes_from_one_end_to_the_other() -> None:
    alice, bob = Peer("alice"), Peer("bob")
    accepted = alice.send(b"hello")
    (sent,) = alice.publish()
    bob.receive(sent.data)
    bob.send(b"thanks")
    alice.receive(bob.publish()[0].data)
    (message_id,) = accepted.message_ids
    assert [event.content for event in bob.of(MessageReceived)] == [b"hello"]
    assert alice.of(SendingMessage) == [SendingMessage(message_id, accepted.request_id)]
    assert alice.of(MessageSent)[0].message_hash == hash_of(sent.data)
    assert alice.of(MessageAcknowledged)[0].message_id == message_id


def test_an_own_message_that_comes_back_is_counted_and_not_read() -> None:
    alice, bob = Peer("alice"), Peer("bob")
    alice.send(b"hello")
    (sent,) = alice.publish()
    message_hash = hash_of(sent.data)
    assert bob.engine.repeated(message_hash, is_live=True) is None
    assert alice.engine.repeated(message_hash, is_live=False) is None
    assert alice.engine.repeated(message_hash, is_live=True) is Outcome.OWN
    assert alice.engine.repeated(message_hash, is_live=False) is Outcome.DUPLICATE
    assert alice.engine.counters.received_live == alice.engine.counters.repeated == 1
    assert alice.engine.sds_statistics().counters.own_echoes == 1
    assert alice.engine.core.statistics().counters.own_echoes == 0


def test_an_input_returns_all_that_follows_from_it() -> None:
    alice = Peer("alice")
    accepted, step = alice.engine.send([b"hello"], START_MS * 1_000_000)
    assert [type(event) for event in step.events] == [SendingMessage]
    assert [each.message_id for each in step.outgoing] == list(accepted.message_ids)
    assert (step.is_due, step.changes, step.wakes) == (True, None, [])
    assert step.due_ms == alice.engine.agenda.next_ms
    nothing = alice.engine.step(START_MS)
    assert (nothing.is_due, nothing.events, list(nothing.outgoing)) == (True, [], [])


def test_a_step_with_state_is_due_once_it_is_written() -> None:
    alice = Peer("alice", MemoryStateStore())
    alice.write()
    _, step = alice.engine.send([b"hello"], START_MS * 1_000_000)
    assert (step.is_due, step.wakes) == (False, [Wake.WRITE])
    assert step.changes and alice.engine.begin_write(START_MS) is step.changes
    assert list(alice.engine.end_write(START_MS, tried=True)) == [step]


def test_a_step_names_the_tasks_that_it_gives_something_to_do() -> None:
    alice, bob = Peer("alice"), Peer("bob", opens_contents=True)
    alice.send(b"one")
    alice.send(b"two")
    _, two = alice.publish()
    _, step = bob.engine.receive(
        two.data, START_MS, message_hash=hash_of(two.data), timestamp_ns=START_MS * 1_000_000
    )
    assert step.wakes == [Wake.FETCH]
    (ephemeral,) = alice.engine.send_ephemeral(b"now", START_MS * 1_000_000)[1].outgoing
    _, step = bob.engine.receive(
        ephemeral.data, START_MS, message_hash=bytes(32), timestamp_ns=START_MS * 1_000_000
    )
    assert step.wakes == [Wake.DECRYPT, Wake.FETCH]


def test_a_long_payload_is_one_request_and_one_message() -> None:
    values: Any = {"segmentation": LAYOUTS[0].name, "segment_size_bytes": 1_000}
    alice, bob = Peer("alice", **values), Peer("bob", **values)
    payload = bytes(range(250)) * 10
    accepted = alice.send(payload)
    for sent in alice.publish():
        bob.receive(sent.data)
    assert [event.content for event in bob.of(MessageReceived)] == [payload]
    assert [event.chunks for event in alice.of(SendProgress)] == [1, 2, 3, 4]
    assert [event.chunks for event in bob.of(ReceiveProgress)] == [1, 2, 3, 4]
    (sent_event,) = alice.of(MessageSent)
    assert (sent_event.request_id, len(accepted.message_ids)) == (accepted.request_id, 4)


def test_a_payload_without_room_for_all_its_segments_is_refused_whole() -> None:
    alice = Peer(
        "alice",
        segmentation=LAYOUTS[0].name,
        segment_size_bytes=1_000,
        limits=Limits(payload_bytes=10_000, outgoing_messages=2),
    )
    with pytest.raises(OutgoingBufferFull, match="4 segments"):
        alice.send(bytes(2_500))
    with pytest.raises(ContentTooLong):
        alice.send(bytes(20_000))
    assert alice.publish() == []


class WithoutWithdraw:
    """A core as of a plugin that cannot withdraw a message."""

    def __init__(self, core: SyncCore) -> None:
        self._core = core

    def __getattr__(self, name: str) -> Any:
        if name == "withdraw":
            raise AttributeError(name)
        return getattr(self._core, name)


@pytest.mark.parametrize("can_withdraw", [True, False])
def test_of_a_payload_with_a_refused_segment_nothing_is_sent(can_withdraw: bool) -> None:
    disk = MemoryStateStore()
    values: Any = {"segmentation": LAYOUTS[0].name, "segment_size_bytes": 1_000}
    alice = Peer("alice", disk, limits=Limits(outgoing_messages=6), **values)
    if not can_withdraw:
        alice.engine.core = cast("Any", WithoutWithdraw(alice.engine.core))
    # Both are cut while there is room. Then a channel may wait for their encryption.
    first, second = alice.engine.split(bytes(3_900)), alice.engine.split(bytes(3_900))
    accepted, step = alice.engine.send(first, START_MS * 1_000_000)
    alice.end(step)
    with pytest.raises(OutgoingBufferFull):
        alice.engine.send(second, START_MS * 1_000_000, "key")
    alice.end(alice.engine.step(alice.now_ms))
    alice.write()
    assert [each.message_id for each in alice.publish()] == list(accepted.message_ids)
    assert list(alice.engine.core.unacknowledged) == list(accepted.message_ids)
    assert alice.engine.accepted_before("key") is None
    again = Peer("alice", disk)
    again.write()
    assert [each.message_id for each in again.publish()] == list(accepted.message_ids)


def test_a_key_makes_a_repeated_send_one_message() -> None:
    alice = Peer("alice")
    first, again = alice.send(b"hello", "key"), alice.send(b"hello", "key")
    assert first is again
    assert len(alice.publish()) == 1


def test_a_backlog_that_grows_for_a_minute_is_an_event_each_minute() -> None:
    alice = Peer("alice")
    for _ in range(122):
        alice.send(b"too much")
        alice.now_ms += 1_000
    grown = [SendingFellBehind(61, 61_000), SendingFellBehind(121, 121_000)]
    assert alice.of(SendingFellBehind) == grown
    assert alice.engine.outbox.oldest_ms(alice.now_ms) == 122_000
    alice.publish()
    for _ in range(120):
        alice.send(b"a pair at a time")
        alice.send(b"is not too much")
        alice.publish()
        alice.now_ms += 1_000
    assert alice.of(SendingFellBehind) == grown
    assert alice.engine.outbox.oldest_ms(alice.now_ms) == 0


def test_the_budget_keeps_back_what_waits_until_the_next_epoch() -> None:
    alice = Peer(
        "alice",
        rate_limit=RateLimitOptions(enabled=True, messages_per_epoch=2, epoch_period_s=10),
    )
    for number in range(3):
        alice.send(b"%d" % number)
    assert len(alice.publish()) == 2
    assert len(alice.of(RateLimitReached)) == 1
    alice.end(alice.engine.send_ephemeral(b"typing", alice.now_ms * 1_000_000)[1])
    (dropped,) = alice.of(EphemeralDropped)
    assert dropped.reason == "rate_limit_reached"
    goes_at_ms = alice.engine.sends_at_ms(alice.now_ms)
    assert goes_at_ms is not None
    assert alice.engine.explain_budget(alice.now_ms).waiting_goes_at_ms == goes_at_ms
    alice.now_ms = goes_at_ms - 1
    assert alice.publish() == []
    alice.now_ms = goes_at_ms
    assert len(alice.publish()) == 1


def test_an_ephemeral_message_goes_out_from_the_first_moment_of_an_epoch_on() -> None:
    alice = Peer(
        "alice",
        rate_limit=RateLimitOptions(enabled=True, messages_per_epoch=1, epoch_period_s=10),
    )
    alice.send(b"all there is")
    alice.publish()
    begins_ms = alice.engine.explain_budget(alice.now_ms).epoch_ends_at_ms
    for at_ms in (begins_ms - 1, begins_ms):
        alice.now_ms = at_ms
        alice.end(alice.engine.send_ephemeral(b"typing", at_ms * 1_000_000)[1])
    assert len(alice.of(EphemeralDropped)) == 1
    assert len(alice.publish()) == 1


def test_a_retry_that_was_acknowledged_meanwhile_does_not_go_out() -> None:
    alice, bob = Peer("alice"), Peer("bob")
    alice.send(b"hello")
    (sent,) = alice.publish()
    due_ms = alice.engine.agenda.next_ms
    assert due_ms is not None
    alice.now_ms = due_ms
    alice.end(alice.engine.on_deadline(alice.now_ms))
    bob.receive(sent.data)
    bob.send(b"thanks")
    alice.receive(bob.publish()[0].data)
    assert OutgoingKind.RETRY not in {each.kind for each in alice.publish()}


def test_a_message_that_store_lacks_twice_is_sent_again() -> None:
    alice = Peer("alice", confirm_interval_ms=30_000)
    alice.send(b"one")
    alice.send(b"two")
    one, _ = alice.publish()
    for _ in range(2):
        alice.now_ms += 30_000
        alice.end(alice.engine.in_store([hash_of(one.data)], alice.now_ms))
        alice.end(alice.engine.store_checked(alice.now_ms * 1_000_000, alice.now_ms))
    assert [event.message_hash for event in alice.of(MessageStored)] == [hash_of(one.data)]
    (again,) = (each for each in alice.publish() if each.kind is OutgoingKind.RETRY)
    assert again.message_id != one.message_id


def test_what_goes_out_and_comes_in_is_counted() -> None:
    alice, bob = Peer("alice"), Peer("bob")
    for text in (b"one", b"two", b"three"):
        alice.send(text)
    one, two, three = alice.publish()
    assert alice.engine.counters.published == 3
    bob.receive(three.data)
    bob.now_ms += REORDERED_MS - 1
    bob.receive(two.data)
    bob.now_ms += 1
    bob.receive(one.data, from_store=True)
    bob.receive(one.data, from_store=True)
    counters = bob.engine.counters
    assert (counters.received_live, counters.received_from_store) == (2, 2)
    assert (counters.retrieved, counters.repaired) == (1, 0)


def test_what_was_missing_for_long_and_came_by_itself_is_repaired() -> None:
    alice, bob = Peer("alice"), Peer("bob")
    for text in (b"one", b"two"):
        alice.send(text)
    one, two = alice.publish()
    bob.receive(two.data)
    bob.now_ms += REORDERED_MS
    for _ in range(2):
        bob.receive(one.data)
    assert bob.engine.counters.repaired == 1


def test_after_an_error_in_a_step_nothing_of_it_comes_again() -> None:
    """Of the policy of a plugin, for example."""
    alice, bob = Peer("alice"), Peer("bob")
    for text in (b"one", b"two"):
        alice.send(text)
    one, two = alice.publish()
    with patch.object(Translation, "public", side_effect=ValueError), pytest.raises(ValueError):
        bob.receive(one.data)
    bob.engine.core.wanted.append(MissingEntry(HistoryEntry("gone"), bob.now_ms))
    with patch.object(Repairs, "notice", side_effect=ValueError), pytest.raises(ValueError):
        bob.engine.step(bob.now_ms)
    bob.receive(two.data)
    assert [event.content for event in bob.of(MessageReceived)] == [b"two"]


def test_a_journal_is_told_what_enters_the_log() -> None:
    values: Any = {"segmentation": LAYOUTS[0].name, "segment_size_bytes": 1_000}
    alice, bob = Peer("alice", notes_log=True, **values), Peer("bob", notes_log=True, **values)
    accepted = alice.send(bytes(1_500))
    sent = alice.publish()
    for each in sent:
        bob.receive(each.data)
        assert alice.engine.repeated(hash_of(each.data), is_live=True) is None  # it is to be read
    first, second = accepted.message_ids
    own, others = alice.of(Logged), bob.of(Logged)
    assert [(e.message_id, e.position, e.first_segment_id) for e in own] == [
        (first, 0, first),
        (second, 1, first),
    ]
    assert [(e.message_id, e.position, e.message_hash) for e in others] == [
        (first, 0, hash_of(sent[0].data)),
        (second, 1, hash_of(sent[1].data)),
    ]
    for mine, theirs in zip(own, others, strict=True):
        assert mine.sender_id == theirs.sender_id == "alice"
        assert mine.content == theirs.content and mine.evicted == theirs.evicted == 0
        assert mine.lamport_timestamp == theirs.lamport_timestamp
        assert (mine.message_hash, theirs.first_segment_id) == (None, None)


def test_what_is_encrypted_inside_is_emitted_once_it_is_opened() -> None:
    alice, bob = Peer("alice"), Peer("bob", opens_contents=True)
    for text in (b"1", b"2"):
        alice.send(text)
    for sent in alice.publish():
        bob.receive(sent.data)
    assert bob.of(MessageReceived) == []
    one, two = bob.engine.to_decrypt
    bob.end(bob.engine.decrypted(one, b"opened", bob.now_ms))
    bob.end(bob.engine.undecryptable(two, "another key", bob.now_ms))
    (received,), (rejected,) = bob.of(MessageReceived), bob.of(MessageRejected)
    assert (received.message_id, received.content) == (one.event.message_id, b"opened")
    assert (rejected.message_id, rejected.sender_id) == (two.event.message_id, "alice")
    assert (rejected.reason, rejected.detail) == (RejectionReason.UNDECRYPTABLE, "another key")


def test_what_the_application_cancels_goes_out_no_more_and_has_failed() -> None:
    alice = Peer("alice")
    gone, kept = alice.send(b"gone"), alice.send(b"kept")
    was_pending, step = alice.engine.cancel(gone.message_ids, alice.now_ms)
    assert was_pending
    alice.end(step)
    assert not alice.engine.cancel(gone.message_ids, alice.now_ms)[0]
    assert [each.message_id for each in alice.publish()] == list(kept.message_ids)
    (failed,) = alice.of(SendFailed)
    assert (failed.request_id, failed.reason) == (gone.request_id, CANCELLED)
    assert not alice.engine.cancel(["unknown"], alice.now_ms)[0]


def test_cancelled_messages_leave_the_outbox_while_the_transport_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reliable_channel.engine.engine.CANCELLED_REMEMBERED", 2)
    alice = Peer("alice", limits=Limits(outgoing_messages=2))
    in_hand = alice.send(b"in hand")
    item = alice.engine.take(alice.now_ms)
    assert item is not None
    alice.engine.cancel(in_hand.message_ids, alice.now_ms)
    for number in range(20):
        alice.engine.cancel(alice.send(b"%d" % number).message_ids, alice.now_ms)
    alice.now_ms += 1_000
    assert (len(alice.engine.outbox), alice.engine.outbox.oldest_ms(alice.now_ms)) == (1, 0)
    assert not alice.engine.failed(item, alice.now_ms)
    kept = alice.send(b"kept")
    assert [each.message_id for each in alice.publish()] == list(kept.message_ids)


def test_a_message_that_is_cancelled_before_it_is_written_does_not_go_out() -> None:
    alice = Peer("alice", MemoryStateStore())
    accepted = alice.send(b"gone")
    alice.engine.cancel(accepted.message_ids, alice.now_ms)
    alice.write()
    assert alice.publish() == []


def test_what_the_transport_refuses_has_failed_and_is_not_tried_again() -> None:
    alice = Peer("alice")
    accepted = alice.send(b"refused")
    item = alice.engine.take(alice.now_ms)
    assert item is not None
    alice.end(alice.engine.refused(item.outgoing, "too large", alice.now_ms))
    assert [event.reason for event in alice.of(SendFailed)] == ["too large"]
    assert not alice.engine.core.unacknowledged
    (message_id,) = accepted.message_ids
    assert message_id in alice.engine.core.log
    assert "too large" in str(alice.engine.explain(message_id, alice.now_ms))


# -- with state ------------------------------------------------------------------------------------


def test_nothing_of_a_step_goes_out_before_it_is_written() -> None:
    alice = Peer("alice", MemoryStateStore())
    alice.send(b"hello")
    assert (alice.of(SendingMessage), alice.publish()) == ([], [])
    alice.write()
    assert len(alice.of(SendingMessage)) == 1
    assert len(alice.publish()) == 1


def test_steps_of_one_write_are_emitted_in_their_order() -> None:
    alice = Peer("alice", MemoryStateStore())
    ids = [alice.send(b"%d" % number).message_ids[0] for number in range(3)]
    alice.write()
    assert [event.message_id for event in alice.of(SendingMessage)] == ids


def test_what_was_not_confirmed_is_delivered_again_after_a_restart() -> None:
    disk, bob = MemoryStateStore(), Peer("bob")
    alice = Peer("alice", disk)
    for text in (b"one", b"two"):
        bob.send(text)
    for sent in bob.publish():
        alice.receive(sent.data)
    alice.write()
    first, _ = alice.of(MessageReceived)
    step = alice.engine.confirm(first)
    assert step and step.changes and set(step.changes.rows.values()) == {None}
    assert (step.events, step.outgoing, step.is_due) == ([], (), False)
    assert step.wakes == [Wake.WRITE_LATER]
    assert alice.engine.confirm(first) is None
    alice.write()
    again = Peer("alice", disk)
    again.write()
    assert [(e.content, e.redelivered) for e in again.of(MessageReceived)] == [(b"two", True)]


def test_after_a_restart_it_listens_from_a_while_before_the_last_look() -> None:
    """Messages may be stored late, or stamped by a slow clock. Not each look is saved."""
    disk, first_ms, saved = MemoryStateStore(), START_MS - 3_600_000, list[int]()
    alice = Peer("alice", disk)
    for later_ms in (0, LOOKS_APART_MS - 1, LOOKS_APART_MS, 0):
        alice.engine.listened(first_ms + later_ms)
        alice.send(b"hello")
        alice.write()
        wanted_from_ms = Peer("alice", disk).listens_from_ms
        saved.append(wanted_from_ms + RESTART_MARGIN_MS - first_ms)
    assert saved == [0, 0, LOOKS_APART_MS, 0]


def test_a_payload_that_stays_half_finished_is_given_up_in_time() -> None:
    values: Any = {"segmentation": LAYOUTS[0].name, "segment_size_bytes": 1_000}
    alice, bob = Peer("alice", **values), Peer("bob", **values)
    alice.send(bytes(2_500))
    bob.receive(alice.publish()[0].data)
    assert bob.engine.agenda.is_planned(Slot.SEGMENTS)
    due_ms = START_MS + ChannelOptions().segment_reconstruction_timeout_ms
    while (next_ms := bob.engine.agenda.next_ms) is not None and next_ms <= due_ms:
        bob.now_ms = next_ms
        bob.end(bob.engine.on_deadline(next_ms))
    assert bob.now_ms == due_ms
    assert [(event.chunks, event.total_chunks) for event in bob.of(PayloadDropped)] == [(1, 4)]
    assert not bob.engine.agenda.is_planned(Slot.SEGMENTS)


def test_a_segment_that_contradicts_itself_is_reported_and_the_next_payload_arrives() -> None:
    values: Any = {"segmentation": LAYOUTS[0].name, "segment_size_bytes": 1_000}
    alice, bob = Peer("alice", segmentation="none"), Peer("bob", **values)
    wrong = LAYOUTS[0].encode(Segment(bytes(32), 1_500, 7, 2, 0, False, b"x"))
    for payload in (wrong, b"fine"):
        alice.send(payload)
    for sent in alice.publish():
        bob.receive(sent.data)
    assert [(e.sender_id, e.reason) for e in bob.of(SegmentDiscarded)] == [("alice", "invalid")]
    assert [event.content for event in bob.of(MessageReceived)] == [b"fine"]


def test_a_key_outlives_a_restart_and_so_does_its_request() -> None:
    disk = MemoryStateStore()
    alice = Peer("alice", disk)
    accepted = alice.send(b"hello", "key")
    alice.write()
    again = Peer("alice", disk)
    assert again.engine.accepted_before("key") == accepted
    again.write()
    again.publish()
    again.write()
    assert [event.request_id for event in again.of(MessageSent)] == [accepted.request_id]


def test_the_spent_budget_outlives_a_restart() -> None:
    disk = MemoryStateStore()
    values: Any = {"rate_limit": {"enabled": True, "messages_per_epoch": 1}}
    alice = Peer("alice", disk, **values)
    alice.send(b"one")
    alice.send(b"two")
    alice.write()
    assert len(alice.publish()) == 1
    alice.write()
    again = Peer("alice", disk, **values)
    again.write()
    assert again.publish() == []


def test_a_message_that_cannot_be_written_is_withdrawn_and_its_key_is_free() -> None:
    alice = Peer("alice", MemoryStateStore())
    accepted = alice.send(b"hello", "key")
    alice.write(FULL)
    alice.write(at_once=False)
    assert isinstance(accepted.failure, StateUnavailable)
    assert not alice.of(SendingMessage)
    assert not alice.publish()
    assert alice.engine.accepted_before("key") is None
    assert len(alice.of(StateDegraded)) == 1
    with pytest.raises(StateUnavailable, match="nothing was sent"):
        alice.engine.split(b"more")


def test_a_message_that_waited_behind_a_failed_write_is_not_sent_after_a_restart() -> None:
    disk = MemoryStateStore()
    alice = Peer("alice", disk)
    alice.send(b"first")
    assert alice.engine.begin_write(alice.now_ms)
    accepted = alice.send(b"second", "key")
    alice.engine.end_write(alice.now_ms, tried=True, failure=FULL)
    alice.write()
    assert isinstance(accepted.failure, StateUnavailable)
    again = Peer("alice", disk)
    again.write()
    assert again.publish() == []
    assert again.engine.accepted_before("key") is None


@pytest.mark.parametrize(("mode", "acknowledges"), [("raise", False), ("accept", True)])
def test_an_unsaved_message_is_acknowledged_only_if_the_channel_lives_in_memory(
    mode: str, acknowledges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = partial(SdsProtocol, assembles_late=True)
    monkeypatch.setattr("tests.engine.world.SdsProtocol", late)
    alice, bob = Peer("alice", MemoryStateStore(), on_state_failure=mode), Peer("bob")
    alice.send(b"saved")
    alice.write()
    bob.send(b"of bob")
    alice.receive(bob.publish()[0].data)
    alice.write(FULL)
    cast("SdsProtocol", alice.engine.core).send_sync(alice.now_ms)
    alice.end(alice.engine.step(alice.now_ms))
    alice.write(at_once=False)
    for sent in alice.publish():
        bob.receive(sent.data)
    assert bool(bob.of(MessageAcknowledged)) == acknowledges


def test_what_was_not_written_is_written_once_the_disk_takes_it() -> None:
    bob, disk = Peer("bob"), MemoryStateStore()
    alice = Peer("alice", disk, on_state_failure="accept")
    bob.send(b"one")
    alice.receive(bob.publish()[0].data)
    alice.write(FULL)
    assert len(alice.of(MessageReceived)) == 1, "the channel goes on in memory"
    alice.now_ms = START_MS + 5_000
    alice.write()
    assert alice.of(StateRecovered) == [StateRecovered(5_000, 0)]
    again = Peer("alice", disk)
    again.write()
    assert [event.content for event in again.of(MessageReceived)] == [b"one"]


def test_a_failing_disk_is_left_alone_for_a_while() -> None:
    alice = Peer("alice", MemoryStateStore(), on_state_failure="accept")
    alice.send(b"one")
    alice.write(FULL)
    alice.send(b"two")
    assert alice.engine.begin_write(alice.now_ms) is None
    alice.engine.end_write(alice.now_ms, tried=False)
    assert alice.engine.unwritten is not None
    retry_at_ms = alice.engine.unwritten.retry_at_ms
    assert retry_at_ms is not None
    assert alice.engine.begin_write(retry_at_ms) is not None


@pytest.mark.parametrize(
    ("kind", "waits"),
    [(kind, kind not in (OutgoingKind.CONTROL, OutgoingKind.EPHEMERAL)) for kind in OutgoingKind],
)
def test_what_the_transport_does_not_take_waits_unless_it_is_worth_nothing_later(
    kind: OutgoingKind, waits: bool
) -> None:
    engine = Peer("alice").engine
    engine.outbox.put(Outgoing(kind, "m1", b"data"))
    item = engine.take(START_MS)
    assert item is not None
    assert engine.failed(item, START_MS) == waits
    assert len(engine.outbox) == waits


def test_what_is_on_its_way_when_an_epoch_ends_counts_in_the_next_one() -> None:
    alice = Peer("alice", rate_limit=RateLimitOptions(enabled=True, messages_per_epoch=2))
    for number in range(4):
        alice.send(b"message %d" % number)
    first = alice.engine.take(alice.now_ms)
    assert first is not None
    alice.now_ms += 600_000  # the node has not answered yet, and may publish it only now
    alice.engine.dispatched(first, b"h" * 32, alice.now_ms * 1_000_000, alice.now_ms)
    assert len(alice.publish()) == 1
    assert alice.of(RateLimitReached)
    alice.now_ms += 600_000
    assert len(alice.publish()) == 2


def test_of_what_store_has_own_and_handled_messages_are_known() -> None:
    alice, bob, carol = Peer("alice"), Peer("bob"), Peer("carol")
    alice.send(b"hello")
    (sent,) = alice.publish()
    bob.receive(sent.data)
    known = [each.engine.is_known(hash_of(sent.data)) for each in (alice, bob, carol)]
    assert known == [True, True, False]


def with_a_long_past() -> MemoryStateStore:
    """A state with rows in most tables."""
    values: Any = {"segmentation": LAYOUTS[0].name, "segment_size_bytes": 1_000}
    disk = MemoryStateStore()
    alice, bob = Peer("alice", disk, **values), Peer("bob", **values)
    for number in range(6):
        alice.send(b"own %d" % number, key=f"key {number}")
        alice.write()
        sent = alice.publish()
        if number % 2:
            bob.receive(sent[0].data)
        bob.send(bytes(3_000 if number == 3 else 10))
        for each in bob.publish()[:: 1 + number % 2]:
            if number != 1:
                alice.receive(each.data)
        alice.write()
    return disk


def test_changed_rows_are_damage_and_no_other_error() -> None:
    disk = with_a_long_past()
    saved = disk.open(Identity("general", "alice", "spec"))
    assert sum(bool(rows) for rows in saved.tables.values()) >= 12
    damaged = 0
    for seed in range(400):
        random = Random(seed)
        tables = {name: list(rows) for name, rows in saved.tables.items() if rows}
        rows = tables[random.choice(sorted(tables))]
        number = random.randrange(len(rows))
        row = list(rows[number])
        row[random.randrange(len(row))] = random.choice(
            (None, -1, 2**40, "", "[1]", "null", "{}", b"", b"x", bytes(40))
        )
        rows[number] = tuple(row)
        changed = patch.object(disk, "open", return_value=replace(saved, tables=tables))
        try:
            with changed:
                Peer("alice", disk)
        except DAMAGE:
            damaged += 1
    assert damaged > 100
