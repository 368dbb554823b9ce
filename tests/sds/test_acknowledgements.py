import pytest

from reliable_channel.sds import Behaviour, HistoryEntry
from reliable_channel.sds.acknowledgements import Participants
from reliable_channel.sds.bloom import BloomFilter
from reliable_channel.sds.events import (
    AcknowledgementSource,
    BloomFilterIgnored,
    MessageAcknowledged,
    MessagePossiblyAcknowledged,
)

from .world import (
    NOW_MS,
    SMALL_BLOOM,
    events,
    forge,
    give,
    only,
    participant,
    send,
    sync,
    taken,
)


def bloom(*message_ids: str) -> bytes:
    made = BloomFilter(SMALL_BLOOM.layout)
    for message_id in message_ids:
        made.insert(message_id)
    return bytes(made)


def test_participants_are_forgotten_in_order_of_silence() -> None:
    participants = Participants(2)
    for name in ("a", "b", "a", "c"):
        participants.heard(name, 0)
    assert list(participants) == ["a", "c"]
    assert len(participants) == 2


@pytest.mark.conformance("LD-SEMANTICS-2", "JS-RC-6", "SDS-ACK-1")
def test_causal_history_is_proof() -> None:
    alice, bob = participant("alice"), participant("bob")
    message = send(alice, b"hi")
    give(bob, message)
    give(alice, send(bob, b"answer"))
    assert events(alice, MessageAcknowledged) == [
        MessageAcknowledged(message.message_id, AcknowledgementSource.CAUSAL_HISTORY, "bob")
    ]
    assert alice.outgoing_buffer.entries == {}


def test_causal_history_acknowledges_a_message_that_is_already_possibly_acknowledged() -> None:
    alice = participant("alice")
    alice.receive(forge("hello", sender="carol"), NOW_MS)
    message_id = send(alice, b"hi").message_id
    alice.receive(forge("b", sender="bob", bloom=bloom(message_id)), NOW_MS)
    assert events(alice, MessageAcknowledged) == []
    alice.receive(forge("c", sender="carol", after=[message_id]), NOW_MS)
    assert only(events(alice, MessageAcknowledged)).acknowledged_by == "carol"


@pytest.mark.conformance("JS-RC-5", "SDS-ACK-3")
def test_two_filters_of_two_participants_acknowledge() -> None:
    alice = participant("alice")
    alice.receive(forge("c", sender="carol"), NOW_MS)
    message_id = send(alice, b"hi").message_id
    alice.receive(forge("s1", sender="bob", content=None, bloom=bloom(message_id)), NOW_MS)
    assert events(alice, MessagePossiblyAcknowledged) == [
        MessagePossiblyAcknowledged(message_id, 1)
    ]
    assert message_id in alice.outgoing_buffer.entries
    alice.receive(forge("s2", sender="carol", content=None, bloom=bloom(message_id)), NOW_MS)
    assert events(alice, MessageAcknowledged) == [
        MessageAcknowledged(message_id, AcknowledgementSource.BLOOM_FILTER, "carol", 2)
    ]


@pytest.mark.conformance("SDS-SYNC-5")
def test_the_only_other_participant_is_enough() -> None:
    alice, bob = participant("alice"), participant("bob", causal_history_size=0)
    give(bob, send(alice, b"hi"))
    give(alice, sync(bob))
    assert only(events(alice, MessageAcknowledged)).source is AcknowledgementSource.BLOOM_FILTER


def test_the_threshold_does_not_fit_the_group_where_that_is_off() -> None:
    alice = participant("alice", behaviour=Behaviour(threshold_fits_group=False))
    bob = participant("bob", causal_history_size=0)
    give(bob, send(alice, b"hi"))
    give(alice, sync(bob))
    assert events(alice, MessageAcknowledged) == []


@pytest.mark.parametrize("threshold", [1, 2, 3, 5])
def test_as_many_participants_as_the_threshold_asks(threshold: int) -> None:
    alice = participant("alice", possible_acks_threshold=threshold)
    names = [f"p{i}" for i in range(6)]
    for name in names:
        alice.receive(forge(f"hello {name}", sender=name), NOW_MS)
    message_id = send(alice, b"hi").message_id
    for count, name in enumerate(names, start=1):
        alice.receive(forge("s", sender=name, content=None, bloom=bloom(message_id)), NOW_MS)
        assert (message_id in alice.outgoing_buffer.entries) is (count < threshold)


@pytest.mark.conformance("JS-RC-4", "JS-SYNC-4", "SDS-ACK-2", "SDS-ACK-4")
def test_own_messages_acknowledge_nothing() -> None:
    alice = participant("alice")
    first = send(alice, b"one")
    second = send(alice, b"two")
    give(alice, first, second, sync(alice))
    assert len(alice.outgoing_buffer) == 2
    assert events(alice, MessageAcknowledged) == []
    assert alice.counters.own_echoes == 3


@pytest.mark.conformance("SDS-ACK-5")
def test_a_message_that_was_missed_is_acknowledged_after_it_is_sent_again() -> None:
    alice, bob = participant("alice"), participant("bob")
    message = send(alice, b"hi")
    give(alice, send(bob, b"unrelated"))
    assert events(alice, MessageAcknowledged) == []
    alice.on_deadline(NOW_MS + 30_000)
    retried = only(o for o in taken(alice.outgoing) if o.message_id == message.message_id)
    give(bob, retried)
    give(alice, send(bob, b"related"))
    assert only(events(alice, MessageAcknowledged)).message_id == message.message_id


def test_messages_with_unmet_dependencies_and_duplicates_acknowledge_all_the_same() -> None:
    alice = participant("alice")
    one, two = send(alice, b"1").message_id, send(alice, b"2").message_id
    alice.receive(forge("m", after=["unknown", one]), NOW_MS)
    assert two in alice.outgoing_buffer.entries and one not in alice.outgoing_buffer.entries
    alice.receive(forge("m", after=["unknown", two]), NOW_MS)
    assert alice.outgoing_buffer.entries == {}


@pytest.mark.parametrize(
    "unreadable",
    [b"", b"\xff", bytes(8), bytes(18_752), b"\xff" * SMALL_BLOOM.layout.byte_count],
)
def test_an_unreadable_filter_says_nothing_and_is_told_once(unreadable: bytes) -> None:
    alice = participant("alice")
    send(alice, b"hi")
    for i in range(3):
        alice.receive(forge(f"m{i}", sender="bob", bloom=unreadable), NOW_MS)
    assert only(events(alice, BloomFilterIgnored)).sender_id == "bob"
    assert len(alice.outgoing_buffer) == 1
    assert len(alice.log) == 4


def test_an_absent_filter_is_fine() -> None:
    alice = participant("alice")
    send(alice, b"hi")
    alice.receive(forge("m", bloom=None), NOW_MS)
    assert events(alice, BloomFilterIgnored) == []


def test_a_reference_without_a_sender_acknowledges_too() -> None:
    alice = participant("alice")
    message_id = send(alice, b"hi").message_id
    alice.receive(forge("m", after=[HistoryEntry(message_id)]), NOW_MS)
    assert alice.outgoing_buffer.entries == {}
