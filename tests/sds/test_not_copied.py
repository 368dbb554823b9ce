"""Defects of js-waku that are not ours: `D` numbers as in the golden vectors' FORMAT.md.

Each test plays what makes js-waku fail and holds the core to what the specification asks.
"""

import pytest

from reliable_channel.sds import CoreLimits, HistoryEntry, Outcome, RepairOptions
from reliable_channel.sds.bloom import BloomFilter
from reliable_channel.sds.events import (
    AcknowledgementSource,
    BloomFilterIgnored,
    EphemeralReceived,
    MessageAcknowledged,
    MessageMissing,
    MessagePossiblyAcknowledged,
    MessageRejected,
    OutgoingKind,
    RejectionReason,
    RepairRequested,
    RepairRequestReceived,
    RepairSent,
)

from .world import (
    MINUTE,
    NOW_MS,
    SMALL_BLOOM,
    decode,
    delivered,
    events,
    forge,
    give,
    only,
    participant,
    send,
    sync,
    taken,
)

LATER_MS = NOW_MS + 2 * MINUTE


def bloom(*message_ids: str) -> bytes:
    made = BloomFilter(SMALL_BLOOM.layout)
    for message_id in message_ids:
        made.insert(message_id)
    return bytes(made)


def test_d01_a_duplicate_is_silent_but_its_acknowledgements_count() -> None:
    bob = participant("bob")
    message = forge("m")
    assert bob.receive(message, NOW_MS).outcome is Outcome.DELIVERED
    assert bob.receive(message, NOW_MS).outcome is Outcome.DUPLICATE
    assert len(taken(bob.events)) == 1
    own = send(bob, b"own").message_id
    bob.receive(forge("m", after=[own]), NOW_MS)
    assert taken(bob.events) == [
        MessageAcknowledged(own, AcknowledgementSource.CAUSAL_HISTORY, "mallory")
    ]


def test_d02_a_buffered_dependency_is_not_met() -> None:
    bob = participant("bob")
    third, second, first = (
        forge("m3", after=["m2"], content=b"3"),
        forge("m2", after=["m1"], content=b"2"),
        forge("m1", content=b"1"),
    )
    bob.receive(second, NOW_MS)
    assert bob.receive(third, NOW_MS).outcome is Outcome.PARKED
    bob.on_deadline(NOW_MS)
    assert delivered(bob) == []
    bob.receive(first, NOW_MS)
    assert delivered(bob) == [b"1", b"2", b"3"]


def test_d03_a_timeout_drops_nothing_and_cascades_nowhere() -> None:
    bob = participant("bob", timeout_for_lost_messages_ms=MINUTE)
    bob.receive(forge("m2", after=["m1"], content=b"2"), NOW_MS)
    bob.receive(forge("m3", after=["m1", "m2"], content=b"3"), NOW_MS)
    bob.on_deadline(LATER_MS)
    assert delivered(bob) == [b"2", b"3"]
    bob.receive(forge("m4", after=["m1", "m2", "m3"], content=b"4"), LATER_MS)
    bob.receive(forge("m1", lamport=1, content=b"1"), LATER_MS)
    bob.receive(forge("m2", after=["m1"], content=b"2"), LATER_MS)
    assert delivered(bob) == [b"4", b"1"]
    assert next(e.message_id for e in bob.log) == "m1"


def test_d04_ephemeral_messages_are_delivered() -> None:
    alice, bob = participant("alice"), participant("bob")
    alice.send_ephemeral(b"typing", NOW_MS)
    give(bob, *taken(alice.outgoing))
    assert only(events(bob, EphemeralReceived)).content == b"typing"


@pytest.mark.parametrize("size", [0, 1, 8, 2 * SMALL_BLOOM.layout.byte_count])
def test_d06_a_filter_of_another_size_does_no_harm(size: int) -> None:
    alice = participant("alice")
    own = send(alice, b"own").message_id
    assert alice.receive(forge("m", bloom=b"\xff" * size), NOW_MS).outcome is Outcome.DELIVERED
    assert len(events(alice, BloomFilterIgnored)) == 1
    assert own in alice.outgoing_buffer.entries


def test_d07_one_participant_counts_once() -> None:
    alice = participant("alice")
    alice.receive(forge("hello", sender="carol"), NOW_MS)
    own = send(alice, b"own").message_id
    replayed = forge("s", sender="bob", content=None, bloom=bloom(own))
    for _ in range(10):
        alice.receive(replayed, NOW_MS)
        alice.receive(forge("s2", sender="bob", content=None, bloom=bloom(own, "x")), NOW_MS)
    assert events(alice, MessagePossiblyAcknowledged) == [MessagePossiblyAcknowledged(own, 1)]
    assert own in alice.outgoing_buffer.entries


def test_d08_an_acknowledged_message_leaves_no_possible_acks() -> None:
    alice = participant("alice")
    alice.receive(forge("hello", sender="carol"), NOW_MS)
    own = send(alice, b"own").message_id
    alice.receive(forge("s", sender="bob", content=None, bloom=bloom(own)), NOW_MS)
    alice.receive(forge("m", sender="bob", after=[own]), NOW_MS)
    assert alice.outgoing_buffer.entries == {}
    again = send(alice, b"own").message_id
    assert alice.outgoing_buffer.entries[again].possible_acks == set()


def test_d09_the_filter_rolls_over() -> None:
    bob = participant("bob")
    for n in range(3 * SMALL_BLOOM.capacity):
        bob.receive(forge(f"m{n}"), NOW_MS)
    assert len(bob.bloom_filter) <= SMALL_BLOOM.capacity
    assert bob.bloom_filter.rollovers > 0
    assert sum(f"never {n}" in bob.bloom_filter for n in range(10_000)) < 20


def test_d09_a_filter_that_holds_everything_acknowledges_nothing() -> None:
    alice = participant("alice")
    own = send(alice, b"own").message_id
    full = b"\xff" * SMALL_BLOOM.layout.byte_count
    for sender in ("bob", "carol", "dave"):
        alice.receive(forge("s", sender=sender, content=None, bloom=full), NOW_MS)
    assert own in alice.outgoing_buffer.entries


@pytest.mark.parametrize("lamport", [NOW_MS * 1_000_000, 2**63, 2**64 - 1])
def test_d10_the_clock_cannot_be_moved_for_good(lamport: int) -> None:
    bob = participant("bob")
    for content in (b"c", None):
        bob.receive(forge("m", lamport=lamport, content=content), NOW_MS)
    assert {e.reason for e in events(bob, MessageRejected)} == {
        RejectionReason.LAMPORT_TOO_FAR_AHEAD
    }
    assert decode(send(bob, b"next")).lamport_timestamp == NOW_MS + 1


def test_d14_a_causal_history_of_size_zero_is_empty() -> None:
    bob = participant("bob", causal_history_size=0)
    for n in range(5):
        bob.receive(forge(f"m{n}"), NOW_MS)
    assert decode(send(bob, b"x")).causal_ids == []
    assert decode(sync(bob)).causal_ids == []


def test_d15_equal_timestamps_are_ordered_by_bytes() -> None:
    ids = ["é", "b", "B", "_z", "A", "9", "-z", "a", "10", "ä", "🙂", "\uffff"]
    bob = participant("bob")
    for message_id in ids:
        bob.receive(forge(message_id), NOW_MS)
    assert [entry.message_id for entry in bob.log] == sorted(ids, key=str.encode)


def test_d16_what_was_not_dispatched_is_not_believed_sent() -> None:
    alice = participant("alice", sync_min_interval_ms=0)
    alice.send(b"hi", NOW_MS)
    assert alice.agenda.next_ms is None
    assert alice.statistics().counters.retries == 0
    assert only(alice.outgoing_buffer).attempts == 0


def test_d16_a_newcomer_can_send_a_sync_message() -> None:
    assert decode(sync(participant("alice"))).causal_ids == []


def test_d17_requests_and_answers_are_told() -> None:
    alice, bob = participant("alice"), participant("bob")
    lost = send(alice, b"lost")
    give(bob, send(alice, b"refers to it"))
    carrier = send(bob, b"asks", LATER_MS)
    requested = only(events(bob, RepairRequested))
    assert (requested.message_ids, requested.carrier_id) == ((lost.message_id,), carrier.message_id)
    give(alice, carrier, now_ms=LATER_MS)
    assert only(events(alice, RepairRequestReceived)).message_ids == (lost.message_id,)
    alice.on_deadline(LATER_MS)
    assert only(events(alice, RepairSent)).message_id == lost.message_id


def test_d18_a_request_is_repeated_and_spent_ones_make_room() -> None:
    bob = participant("bob", repair=RepairOptions(buffer_size=1, max_request_attempts=2))
    bob.receive(forge("m", after=["u"]), NOW_MS)
    asked = []
    for minutes in (2, 4, 6, 8):
        bob.on_deadline(NOW_MS + minutes * MINUTE)
        asked += [e for o in taken(bob.outgoing) for e in decode(o).repair_request]
    assert [e.message_id for e in asked] == ["u", "u"]
    bob.receive(forge("n", after=["v"]), NOW_MS + 8 * MINUTE)
    assert set(bob.repair_requests.planned()) == {"v"}


def test_d18_nobody_is_asked_for_what_nobody_may_answer() -> None:
    bob = participant("bob")
    bob.receive(forge("m", after=[HistoryEntry("u")]), NOW_MS)
    assert len(bob.repair_requests) == 0
    assert len(bob.missing()) == 1


def test_d19_a_duplicate_cancels_the_answer() -> None:
    alice, bob = participant("alice"), participant("bob")
    one, two = send(alice, b"1"), send(alice, b"2")
    give(bob, two, one)  # `two` was buffered once
    request = HistoryEntry(two.message_id, None, "alice")
    bob.receive(forge("r", sender="carol", content=None, requests=[request]), NOW_MS)
    assert len(bob.repair_responses) == 1
    give(bob, two)
    bob.on_deadline(LATER_MS)
    assert [o for o in taken(bob.outgoing) if o.kind is OutgoingKind.REPAIR] == []


def test_d22_state_is_bounded() -> None:
    # More floods are in test_bounded.py. js-waku buffers 500 forged sync messages for ever.
    bob = participant("bob", limits=CoreLimits(missing_entries=100))
    for n in range(500):
        bob.receive(forge("s", content=None, after=[f"u{n}"], bloom=bloom()), NOW_MS)
    assert len(bob.incoming_buffer.parked) == 0
    assert len(bob.missing()) == 100


def test_d25_t_min_may_equal_t_max() -> None:
    bob = participant("bob", repair=RepairOptions(t_min_ms=1_000, t_max_ms=1_000))
    assert bob.receive(forge("m", after=["u"]), NOW_MS).outcome is Outcome.PARKED
    assert len(events(bob, MessageMissing)) == 1
    assert bob.repair_requests.planned() == {"u": NOW_MS + 1_000}


HOSTILE: dict[str, bytes] = {
    "a varint that is cut off": forge("m")[:-10] + b"\x50\x80",
    "an entry whose text runs past its end": forge("m") + b"\x5a\x02\x0a\x7f",
    "an end group without a start": forge("m") + b"\xac\x01",
    "an end group of another number": forge("m") + b"\xab\x06\xb4\x06",
    "text that is not UTF-8": forge("m") + b"\x0a\x01\xff",
    "overlong UTF-8": forge("m") + b"\x0a\x02\xc0\x80",
    "a surrogate in UTF-8": forge("m") + b"\x0a\x03\xed\xa0\x80",
    "50,000 nested groups": forge("m") + b"\xab\x06" * 50_000,
    "20,000 entries of two bytes": forge("m") + b"\x5a\x00" * 20_000,
    "a tag with number 0": forge("m") + b"\x02\x00",
    "a varint of eleven bytes": forge("m") + b"\x50" + b"\xff" * 10 + b"\x01",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_d28_hostile_bytes_are_refused(data: bytes) -> None:
    bob = participant("bob")
    assert bob.receive(data, NOW_MS).outcome is Outcome.REJECTED
    assert only(events(bob, MessageRejected)).reason is RejectionReason.MALFORMED


def test_d28_a_known_field_of_another_wire_type_is_not_read_as_if_it_were_right() -> None:
    bob = participant("bob")
    bob.receive(b"\x08\x05" + forge("m", sender=""), NOW_MS)  # sender_id as a number
    assert only(events(bob, MessageRejected)).reason is RejectionReason.MISSING_ID


def test_d30_what_one_message_releases_is_delivered_in_causal_order() -> None:
    bob = participant("bob")
    for n in (4, 2, 3):
        after = [f"m{i}" for i in range(1, n)]
        bob.receive(forge(f"m{n}", lamport=NOW_MS + n, after=after, content=b"%d" % n), NOW_MS)
    bob.receive(forge("m1", lamport=NOW_MS + 1, content=b"1"), NOW_MS)
    assert delivered(bob) == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("is_lost", [False, True])
def test_d30_independent_messages_are_released_in_log_order(is_lost: bool) -> None:
    bob = participant("bob", timeout_for_lost_messages_ms=MINUTE)
    for n in (4, 2, 3):
        message = forge(f"m{n}", lamport=NOW_MS + n, after=["m1"], content=b"%d" % n)
        bob.receive(message, NOW_MS)
    if is_lost:
        bob.on_deadline(LATER_MS)
    else:
        bob.receive(forge("m1", lamport=NOW_MS + 1, content=b"1"), NOW_MS)
    assert delivered(bob)[-3:] == [b"2", b"3", b"4"]


def test_d30_what_a_lost_message_releases_is_delivered_in_causal_order() -> None:
    bob = participant("bob", timeout_for_lost_messages_ms=MINUTE)
    for n in (4, 2, 3):
        after = [f"m{i}" for i in range(1, n)]
        bob.receive(forge(f"m{n}", lamport=NOW_MS + n, after=after, content=b"%d" % n), NOW_MS)
    bob.on_deadline(LATER_MS)
    assert delivered(bob) == [b"2", b"3", b"4"]
    bob.receive(forge("m1", lamport=NOW_MS + 1, content=b"1"), LATER_MS)
    assert [entry.content for entry in bob.log] == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("first_waits", [False, True])
def test_d32_another_content_under_a_known_id_is_refused_and_told(first_waits: bool) -> None:
    bob = participant("bob")
    after = ["u"] if first_waits else []
    bob.receive(forge("m", content=b"first", after=after), NOW_MS)
    assert bob.receive(forge("m", content=b"second"), NOW_MS).outcome is Outcome.REJECTED
    assert only(events(bob, MessageRejected)).reason is RejectionReason.ID_ALREADY_USED
    bob.receive(forge("u"), NOW_MS)
    assert bob.log.entries["m"].content == b"first"
