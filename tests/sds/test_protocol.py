"""One participant: what it sends, what it does with what it receives, and when it wants to wake."""

import pytest

from reliable_channel.sds import (
    JS_WAKU,
    Arrival,
    Behaviour,
    CoreLimits,
    HistoryEntry,
    MessageKind,
    Outcome,
    SdsProtocol,
)
from reliable_channel.sds.bloom import BloomFilter
from reliable_channel.sds.changes import Recorder
from reliable_channel.sds.errors import (
    ContentTooLong,
    EmptyContent,
    MessageIdInUse,
    OutgoingBufferFull,
    SdsError,
)
from reliable_channel.sds.events import (
    DeliveryFailed,
    EphemeralReceived,
    MessageLost,
    MessageMissing,
    MessageReceived,
    MessageRejected,
    OutgoingKind,
    RejectionReason,
    SdsEvent,
    SyncReceived,
    SyncSent,
)
from reliable_channel.sds.ids import js_waku_id, reliable_channel_id

from .world import (
    CHANNEL,
    MINUTE,
    NOW_MS,
    SECOND,
    SMALL_BLOOM,
    World,
    decode,
    delivered,
    events,
    forge,
    next_ms,
    only,
    options,
    participant,
    send,
    sync,
    taken,
)


def in_filter(core: SdsProtocol, message_id: str) -> bool:
    return message_id in core.bloom_filter


# -- sending ---------------------------------------------------------------------------------------


@pytest.mark.conformance("SDS-SEND-1", "SDS-SEND-6")
def test_a_sent_message_carries_what_the_specification_asks() -> None:
    alice = participant("alice")
    first = decode(send(alice, b"one"))
    second = decode(send(alice, b"two"))
    assert (first.sender_id, first.channel_id, first.content) == ("alice", CHANNEL, b"one")
    assert first.kind is MessageKind.CONTENT
    assert first.lamport_timestamp == NOW_MS + 1
    assert second.lamport_timestamp == NOW_MS + 2
    assert first.causal_ids == []
    assert second.causal_ids == [first.message_id]
    assert second.causal_history[0].sender_id == "alice"
    expected = BloomFilter(SMALL_BLOOM.layout)
    assert first.bloom_filter == bytes(expected)
    expected.insert(first.message_id)
    assert second.bloom_filter == bytes(expected)


def test_the_id_is_that_of_the_reliable_channel_api() -> None:
    alice = participant("alice")
    message_id = alice.send(b"hi", NOW_MS, timestamp_ns=17)
    assert message_id == reliable_channel_id("alice", 17, b"hi")


@pytest.mark.conformance("SDS-SEND-2", "SDS-SEND-3")
def test_a_sent_message_is_in_log_filter_and_outgoing_buffer() -> None:
    alice = participant("alice")
    message_id = alice.send(b"hi", NOW_MS)
    assert message_id in alice.log
    assert in_filter(alice, message_id)
    assert message_id in alice.outgoing_buffer.entries
    assert alice.statistics().counters.sent == 1


@pytest.mark.conformance("SDS-SEND-4")
@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_the_causal_history_is_the_end_of_the_log(size: int) -> None:
    alice = participant("alice", causal_history_size=size)
    ids = [send(alice, b"%d" % i).message_id for i in range(4)]
    assert decode(send(alice, b"last")).causal_ids == (ids[-size:] if size else [])


@pytest.mark.conformance("SDS-SEND-5", "SDS-RECEIVE-5")
def test_retrieval_hints_travel_in_causal_histories() -> None:
    alice, bob = participant("alice"), participant("bob")
    message_id = alice.send(b"hi", NOW_MS)
    assert decode(sync(alice)).causal_history == [HistoryEntry(message_id, None, "alice")]
    alice.dispatched(message_id, NOW_MS, b"hint")
    assert decode(sync(alice)).causal_history == [HistoryEntry(message_id, b"hint", "alice")]
    bob.receive(forge("m"), NOW_MS, retrieval_hint=b"from the transport")
    assert decode(sync(bob)).causal_history[0].retrieval_hint == b"from the transport"


def test_a_hint_once_known_stays_and_a_duplicate_may_bring_it() -> None:
    bob = participant("bob")
    message = forge("m")
    bob.receive(message, NOW_MS)
    bob.receive(message, NOW_MS, retrieval_hint=b"first")
    bob.receive(message, NOW_MS, retrieval_hint=b"second")
    assert bob.log.entries["m"].retrieval_hint == b"first"


@pytest.mark.conformance("LD-SEMANTICS-5")
def test_equal_contents_are_two_messages() -> None:
    alice = participant("alice")
    assert alice.send(b"hi", NOW_MS) != alice.send(b"hi", NOW_MS)
    assert len(alice.log) == 2


def test_a_clock_set_back_makes_no_id_twice() -> None:
    alice = participant("alice")
    ids = {alice.send(b"hi", NOW_MS - n, timestamp_ns=10**18 - n) for n in range(50)}
    assert len(ids) == 50
    lamports = [entry.lamport_timestamp for entry in alice.log]
    assert lamports == sorted(set(lamports))


@pytest.mark.parametrize(
    ("content", "error"), [(b"", EmptyContent), (bytes(200_000), ContentTooLong)]
)
def test_what_cannot_be_sent_leaves_no_trace(content: bytes, error: type[SdsError]) -> None:
    alice = participant("alice")
    with pytest.raises(error):
        alice.send(content, NOW_MS)
    with pytest.raises(error):
        alice.send_ephemeral(content, NOW_MS)
    assert len(alice.log) == len(alice.outgoing_buffer) == 0
    assert [*taken(alice.events), *taken(alice.outgoing)] == []


def test_content_may_be_as_long_as_the_error_says() -> None:
    alice = participant("alice", max_message_bytes=10_000)
    with pytest.raises(ContentTooLong, match=r"which leaves (\d+) for content") as caught:
        alice.send(bytes(10_000), NOW_MS)
    most = int(str(caught.value).split("leaves ")[1].split(" ")[0])
    assert 9_990 <= len(send(alice, bytes(most)).data) <= 10_000


def test_too_many_unacknowledged_messages_are_refused() -> None:
    alice = participant("alice", limits=CoreLimits(outgoing_messages=2))
    first = send(alice, b"1")
    send(alice, b"2")
    with pytest.raises(OutgoingBufferFull, match="2 own messages wait"):
        alice.send(b"3", NOW_MS)
    alice.receive(forge("ack", after=[first.message_id]), NOW_MS)
    assert send(alice, b"3")


def test_an_id_function_that_repeats_itself_is_noticed() -> None:
    alice = SdsProtocol(
        CHANNEL,
        "alice",
        now_ms=NOW_MS,
        random=lambda: 0.5,
        options=options(),
        id_function=js_waku_id,
    )
    alice.send(b"hi", NOW_MS)
    with pytest.raises(MessageIdInUse):
        alice.send(b"hi", NOW_MS)


def test_a_participant_with_an_endless_id_silences_nobody() -> None:
    # Its entries stand in everybody's causal history: 200 of them are longer than a message may be.
    alice = participant("alice")
    for i in range(200):
        alice.receive(forge(f"{i:0>1000}", sender="x" * 1_000), NOW_MS)
    message = send(alice, b"hi")
    assert len(message.data) < alice.options.max_message_bytes
    assert decode(message).causal_ids == [f"{i:0>1000}" for i in range(163, 200)]
    assert len(sync(alice).data) < alice.options.max_message_bytes


def test_an_own_message_may_enter_the_log_on_dispatch_only() -> None:
    alice = participant("alice", behaviour=Behaviour(log_own_message="on_dispatch"))
    message_id = alice.send(b"hi", NOW_MS)
    assert message_id not in alice.log and not in_filter(alice, message_id)
    assert message_id in alice.outgoing_buffer.entries
    alice.dispatched(message_id, NOW_MS)
    alice.dispatched(message_id, NOW_MS)
    assert [e.message_id for e in alice.log] == [message_id]


# -- retries ---------------------------------------------------------------------------------------


@pytest.mark.conformance("JS-RETRY-2", "JS-RETRY-4")
def test_an_unacknowledged_message_is_sent_again_as_it_was() -> None:
    alice = participant("alice", sync_min_interval_ms=0)
    message = send(alice, b"hi")
    assert alice.agenda.next_ms == NOW_MS + 30_000
    alice.on_deadline(NOW_MS + 29_999)
    assert taken(alice.outgoing) == []
    alice.on_deadline(NOW_MS + 30_000)
    retry = only(taken(alice.outgoing))
    assert (retry.kind, retry.message_id, retry.data) == (
        OutgoingKind.RETRY,
        message.message_id,
        message.data,
    )
    assert next_ms(alice.agenda) is None
    alice.dispatched(message.message_id, NOW_MS + 40_000)
    assert alice.agenda.next_ms == NOW_MS + 70_000


@pytest.mark.conformance("JS-RETRY-3")
@pytest.mark.parametrize("attempts", [0, 1, 3])
def test_after_all_retries_the_delivery_fails_with_an_event(attempts: int) -> None:
    alice = participant("alice", max_retry_attempts=attempts, sync_min_interval_ms=0)
    message_id = send(alice, b"hi").message_id
    sent = 1
    while (due_ms := alice.agenda.next_ms) is not None:
        alice.on_deadline(due_ms)
        for outgoing in taken(alice.outgoing):
            alice.dispatched(outgoing.message_id, due_ms)
            sent += 1
    assert sent == attempts + 1
    failed = only(events(alice, DeliveryFailed))
    assert (failed.message_id, failed.attempts) == (message_id, attempts + 1)
    assert alice.outgoing_buffer.entries == {}
    assert message_id in alice.log


def test_dispatches_of_unknown_messages_are_ignored() -> None:
    alice = participant("alice")
    alice.dispatched("unknown", NOW_MS, b"hint")
    assert len(alice.outgoing_buffer) == 0


# -- sync and ephemeral messages -------------------------------------------------------------------


@pytest.mark.conformance("SDS-SYNC-1", "SDS-SYNC-3")
def test_a_sync_message_is_empty_and_leaves_no_trace() -> None:
    alice = participant("alice")
    sent = send(alice, b"hi")
    message = decode(sync(alice))
    assert message.kind is MessageKind.SYNC
    assert message.content is None
    assert message.lamport_timestamp == NOW_MS + 2
    assert message.causal_ids == [sent.message_id]
    assert message.bloom_filter == bytes(alice.bloom_filter)
    assert len(alice.log) == len(alice.outgoing_buffer) == len(alice.bloom_filter) == 1
    assert only(events(alice, SyncSent)).message_id == message.message_id


@pytest.mark.conformance("LD-SEMANTICS-4", "SDS-SYNC-3", "SDS-SYNC-4")
def test_a_received_sync_message_is_not_delivered_or_logged_or_waited_for() -> None:
    alice, bob = participant("alice"), participant("bob")
    message = send(alice, b"hi")
    synced = sync(alice)
    assert bob.receive(synced.data, NOW_MS) == Arrival(Outcome.SYNC, synced.message_id)
    assert bob.receive(synced.data, NOW_MS).outcome is Outcome.SYNC
    seen = taken(bob.events)
    assert len([e for e in seen if isinstance(e, SyncReceived)]) == 2
    assert [e.missing for e in seen if isinstance(e, MessageMissing)] == [
        (HistoryEntry(message.message_id, None, "alice"),)
    ]
    assert len(bob.log) == len(bob.bloom_filter) == len(bob.incoming_buffer.parked) == 0
    assert decode(send(bob, b"next")).causal_ids == []
    arrival = bob.receive(message.data, NOW_MS)
    assert arrival == Arrival(Outcome.DELIVERED, message.message_id, missing_for_ms=0)


@pytest.mark.conformance("SDS-SYNC-2")
def test_a_newcomer_may_stay_silent() -> None:
    alice = participant("alice", behaviour=JS_WAKU)
    assert not alice.send_sync(NOW_MS)
    assert [*taken(alice.events), *taken(alice.outgoing)] == []
    assert participant("alice").send_sync(NOW_MS)


@pytest.mark.conformance("SDS-EPHEMERAL-1", "SDS-EPHEMERAL-2")
def test_an_ephemeral_message_has_neither_place_nor_promise() -> None:
    alice, bob = participant("alice"), participant("bob")
    message_id = alice.send_ephemeral(b"typing", NOW_MS)
    outgoing = only(taken(alice.outgoing))
    message = decode(outgoing)
    assert outgoing.kind is OutgoingKind.EPHEMERAL
    assert (message.lamport_timestamp, message.causal_ids, message.bloom_filter) == (None, [], None)
    assert len(alice.log) == len(alice.outgoing_buffer) == len(alice.bloom_filter) == 0
    assert bob.receive(outgoing.data, NOW_MS).outcome is Outcome.EPHEMERAL
    assert taken(bob.events) == [EphemeralReceived(message_id, "alice", b"typing")]
    assert len(bob.log) == len(bob.bloom_filter) == len(bob.participants) == 0


# -- receiving -------------------------------------------------------------------------------------


@pytest.mark.conformance("LD-SEMANTICS-1", "SDS-RECEIVE-1", "SDS-RECEIVE-2", "SDS-RECEIVE-3")
def test_a_received_message_is_delivered_logged_and_merged() -> None:
    bob = participant("bob")
    arrival = bob.receive(forge("m", lamport=NOW_MS + 500), NOW_MS, retrieval_hint=b"hash")
    assert arrival == Arrival(Outcome.DELIVERED, "m")
    (event,) = taken(bob.events)
    assert event == MessageReceived("m", "mallory", b"content", NOW_MS + 500, 0, (), b"hash")
    assert bob.clock.value == NOW_MS + 500
    assert in_filter(bob, "m")
    assert decode(send(bob, b"next")).causal_ids == ["m"]


def test_an_older_timestamp_leaves_the_clock() -> None:
    bob = participant("bob")
    bob.receive(forge("m", lamport=5), NOW_MS)
    assert bob.clock.value == NOW_MS


@pytest.mark.conformance("SDS-RECEIVE-4")
def test_what_waits_is_in_the_filter_but_not_in_the_log_or_the_clock() -> None:
    bob = participant("bob")
    arrival = bob.receive(forge("m", after=["u"], lamport=NOW_MS + 9), NOW_MS)
    assert arrival.outcome is Outcome.PARKED
    assert in_filter(bob, "m")
    assert "m" not in bob.log and bob.clock.value == NOW_MS
    assert decode(send(bob, b"next")).causal_ids == []
    assert delivered(bob) == []


@pytest.mark.conformance("SDS-RECEIVE-6", "SDS-RECEIVE-7")
def test_the_log_is_ordered_by_time_then_id() -> None:
    bob = participant("bob")
    for message_id, lamport in [("b", 2), ("c", 1), ("a", 2), ("z", 0)]:
        bob.receive(forge(message_id, lamport=lamport), NOW_MS)
    assert [entry.message_id for entry in bob.log] == ["z", "c", "a", "b"]
    assert [e.position for e in events(bob, MessageReceived)] == [0, 0, 1, 0]


@pytest.mark.conformance("SDS-IN-1", "SDS-IN-6", "SDS-IN-7", "SDS-IN-8")
def test_missing_references_are_told_once_with_hint_and_sender() -> None:
    bob = participant("bob")
    with_hint, without = HistoryEntry("u", b"hint", "x"), HistoryEntry("v")
    bob.receive(forge("m1", after=[with_hint, without]), NOW_MS)
    bob.receive(forge("m2", after=[with_hint, without, "m1"]), NOW_MS + 5)
    assert events(bob, MessageMissing) == [MessageMissing((with_hint, without), "m1", "mallory")]
    assert [m.entry for m in bob.missing()] == [with_hint, without]
    assert {m.since_ms for m in bob.missing()} == {NOW_MS}


def test_repeated_references_in_one_message_count_once() -> None:
    bob = participant("bob")
    bob.receive(forge("m", after=["u", "u", "", "m", "u"]), NOW_MS)
    assert len(bob.missing()) == 1
    bob.receive(forge("u"), NOW_MS)
    assert len(delivered(bob)) == 2


REJECTED: list[tuple[bytes, RejectionReason]] = [
    (b"\xff\xff\xff", RejectionReason.MALFORMED),
    (b"", RejectionReason.MALFORMED),
    (forge("m", channel="other"), RejectionReason.WRONG_CHANNEL),
    (forge("m", channel=""), RejectionReason.WRONG_CHANNEL),
    (forge("", sender="x"), RejectionReason.MISSING_ID),
    (forge("m", sender=""), RejectionReason.MISSING_ID),
    (forge("m", sender="", lamport=None), RejectionReason.MISSING_ID),
    (forge("m", lamport=NOW_MS + 86_400_001), RejectionReason.LAMPORT_TOO_FAR_AHEAD),
    (forge("m", lamport=2**64 - 1), RejectionReason.LAMPORT_TOO_FAR_AHEAD),
    (forge("m", lamport=2**64 - 1, content=None), RejectionReason.LAMPORT_TOO_FAR_AHEAD),
]


@pytest.mark.conformance("LD-SDS-3")
@pytest.mark.parametrize(("data", "reason"), REJECTED)
def test_what_is_refused_is_told_and_leaves_no_trace(data: bytes, reason: RejectionReason) -> None:
    bob = participant("bob")
    before = bob.statistics()
    assert bob.receive(data, NOW_MS).outcome is Outcome.REJECTED
    event = only(taken(bob.events))
    assert isinstance(event, MessageRejected) and event.reason is reason and event.detail
    after = bob.statistics()
    assert after.counters.rejected == 1
    assert (after.log_length, after.bloom_filter_messages, after.participants) == (0, 0, 0)
    assert after.lamport_timestamp == before.lamport_timestamp


def test_a_message_as_far_ahead_as_allowed_is_taken() -> None:
    bob = participant("bob", max_lamport_ahead_ms=10)
    assert bob.receive(forge("a", lamport=NOW_MS + 11), NOW_MS).outcome is Outcome.REJECTED
    assert bob.receive(forge("a", lamport=NOW_MS + 11), NOW_MS + 1).outcome is Outcome.DELIVERED


# -- time ------------------------------------------------------------------------------------------


def test_a_deadline_is_never_in_the_past_for_long() -> None:
    world = World(["alice", "bob", "carol"])
    for number in range(5):
        world["alice"].send(b"%d" % number)
        world["bob"].receive(forge(f"m{number}", after=[f"u{number}"]))
    for _ in range(20):
        world.run(MINUTE)
        for driver in world.drivers.values():
            assert (driver.core.agenda.next_ms or 0) > world.now_ms


def test_a_waiting_message_is_swept_in_time() -> None:
    bob = participant("bob", sync_min_interval_ms=0, timeout_for_lost_messages_ms=12 * SECOND)
    bob.receive(forge("m", after=[HistoryEntry("u")]), NOW_MS)
    now_ms = NOW_MS
    while (due_ms := bob.agenda.next_ms) is not None:
        assert due_ms - now_ms == 5 * SECOND
        now_ms = due_ms
        bob.on_deadline(now_ms)
    assert now_ms == NOW_MS + 15 * SECOND
    seen: list[SdsEvent] = taken(bob.events)
    assert [type(e) for e in seen] == [MessageMissing, MessageLost, MessageReceived]


def test_statistics_are_a_snapshot() -> None:
    alice = participant("alice")
    before = alice.statistics()
    send(alice, b"hi")
    assert before.counters.sent == before.outgoing == before.log_length == 0
    after = alice.statistics()
    assert (after.counters.sent, after.outgoing, after.log_length) == (1, 1, 1)
    assert after.repair_cache_bytes > 0


def test_equal_inputs_make_equal_bytes() -> None:
    def run() -> list[bytes]:
        alice = participant("alice", seed=3)
        alice.receive(forge("m", after=["u"]), NOW_MS)
        alice.send(b"hi", NOW_MS)
        alice.on_deadline(NOW_MS + 2 * MINUTE)
        return [outgoing.data for outgoing in taken(alice.outgoing)]

    assert run() == run()


@pytest.mark.parametrize("logs", ["on_send", "on_dispatch"])
def test_a_message_that_is_withdrawn_is_referred_to_by_nothing(logs: str) -> None:
    behaviour = Behaviour(log_own_message=logs)  # type: ignore[arg-type]
    alice, bob = participant("alice", behaviour=behaviour), participant("bob")
    first = send(alice, b"first")
    alice.dispatched(first.message_id, NOW_MS)
    taken_back = send(alice, b"taken back")
    alice.withdraw(taken_back.message_id)
    assert taken_back.message_id not in alice.log
    assert taken_back.message_id not in alice.unacknowledged
    second = send(alice, b"second")
    alice.dispatched(second.message_id, NOW_MS)
    assert list(decode(second).causal_ids) == [first.message_id]
    for message in (first, second):
        assert bob.receive(message.data, NOW_MS).outcome is Outcome.DELIVERED
    assert bob.log.digest() == alice.log.digest()
    assert alice.counters.sent == 2


def test_what_is_counted_of_sending_is_what_was_sent() -> None:
    alice = participant("alice")
    message_id = send(alice, b"again").message_id
    for n in range(2):
        alice.resend(message_id, NOW_MS + n)
    sync(alice)
    alice.send_ephemeral(b"gone", NOW_MS)
    counters = alice.counters
    assert (counters.sent, counters.retries, counters.syncs_sent) == (1, 2, 1)
    assert counters.ephemeral_sent == 1


def test_a_log_is_trimmed_by_age_no_more_than_once_a_minute() -> None:
    alice = participant(
        "alice", limits=CoreLimits(retention_ms=10 * MINUTE), sync_min_interval_ms=0
    )
    assert alice.agenda.next_ms == NOW_MS
    alice.on_deadline(NOW_MS)
    for minute in range(1, 13):
        now_ms = NOW_MS + minute * MINUTE
        assert alice.agenda.next_ms == now_ms
        alice.receive(forge(f"m{minute}", lamport=now_ms), now_ms)
        alice.on_deadline(now_ms)
    assert [entry.message_id for entry in alice.log] == [f"m{n}" for n in range(2, 13)]


def test_a_delivery_that_failed_counts() -> None:
    alice = participant("alice", max_retry_attempts=0)
    for n in range(2):
        send(alice, b"%d" % n)
    alice.on_deadline(NOW_MS + alice.options.retry_interval_ms)
    assert len(events(alice, DeliveryFailed)) == alice.counters.delivery_failed == 2


def test_an_abandoned_message_is_not_sent_again_and_stays_in_the_log() -> None:
    alice = participant("alice", sync_min_interval_ms=0)
    message = send(alice, b"refused by the transport")
    assert list(alice.unacknowledged) == [message.message_id]
    alice.abandon(message.message_id)
    alice.on_deadline(NOW_MS + alice.options.retry_interval_ms)
    assert not alice.unacknowledged and not taken(alice.outgoing)
    assert alice.log.get(message.message_id) is not None


def test_all_that_is_due_is_sent_again() -> None:
    alice = participant("alice", sync_min_interval_ms=0)
    sent = [send(alice, b"%d" % n).message_id for n in range(3)]
    alice.on_deadline(NOW_MS + alice.options.retry_interval_ms)
    assert sorted(each.message_id for each in taken(alice.outgoing)) == sorted(sent)


@pytest.mark.parametrize("self_tuning", [False, True])
def test_only_a_sync_that_one_may_do_without_is_spare(self_tuning: bool) -> None:
    """A spare message is the first that a rate limit puts off."""
    alice = participant("alice", self_tuning=self_tuning)
    send(alice, b"hi")
    assert alice.send_sync(NOW_MS)
    assert only(taken(alice.outgoing)).is_redundant is self_tuning


def test_a_message_may_be_sent_again_early_as_long_as_it_has_attempts() -> None:
    alice = participant("alice", max_retry_attempts=2)
    message = send(alice, b"hi")
    again = []
    while alice.resend_early(message.message_id, NOW_MS):
        again.append(only(taken(alice.outgoing)))
        alice.dispatched(message.message_id, NOW_MS)
    assert [(each.kind, each.data) for each in again] == [(OutgoingKind.RETRY, message.data)] * 2
    assert not alice.resend_early("unknown", NOW_MS)


def test_a_sync_that_the_owner_asks_for_puts_off_the_next_one() -> None:
    alice = participant("alice")
    alice.receive(forge("m"), NOW_MS)
    due_ms = alice.agenda.next_ms
    assert due_ms is not None
    assert alice.send_sync(due_ms - 1)
    later_ms = alice.agenda.next_ms
    assert later_ms is not None and later_ms > due_ms


def test_a_step_in_which_nothing_changed_has_nothing_to_write() -> None:
    alice = SdsProtocol(*(CHANNEL, "alice"), now_ms=NOW_MS, random=lambda: 0.5, recorder=Recorder())
    send(alice, b"hi")
    assert alice.changes()
    assert not alice.changes()
    alice.on_deadline(NOW_MS)
    assert not alice.changes()
