"""The rules of the specification, one by one, at a single node."""

from random import Random

import pytest

from mvds_tests.world import GROUP, START_MS
from reliable_channel_mvds import (
    GROUP_OFFERS,
    SEED,
    Element,
    ElementsRejected,
    Event,
    GroupId,
    GroupOffer,
    Message,
    MessageAcknowledged,
    MessageId,
    MessageReceived,
    Mode,
    MvdsNode,
    NodeOptions,
    Payload,
    PayloadRejected,
    PeerId,
    Reason,
    RecordType,
    TooManyRepeats,
    UnknownGroup,
    WireProfile,
)

A, B, C = PeerId(b"a"), PeerId(b"b"), PeerId(b"c")
OTHER_GROUP = GroupId(b"o" * 32)
EPOCH_MS = 100
SECONDS = START_MS // 1000


class Bench:
    """Node `a`, whose peers are played by the test."""

    def __init__(
        self,
        *peers: PeerId,
        options: NodeOptions | None = None,
        profile: WireProfile = SEED,
    ) -> None:
        self.options = options or NodeOptions(
            epoch_ms=EPOCH_MS, first_interval=2, longest_interval=8, jitter=0
        )
        self.now_ms, self.profile = START_MS, profile
        self.node = MvdsNode(
            A, now_ms=START_MS, random=Random(7).random, options=self.options, profile=profile
        )
        for peer_id in peers or (B,):
            self.node.add_peer(GROUP, peer_id)

    def append(self, body: bytes, mode: Mode | None = None) -> MessageId:
        return self.node.append(GROUP, body, self.now_ms, mode=mode)

    def receive(self, payload: Payload, peer_id: PeerId = B) -> list[Event]:
        self.node.receive(peer_id, SEED.encode(payload), self.now_ms)
        return list(self.node.events())

    def next_epoch(self) -> dict[PeerId, Payload]:
        self.now_ms += EPOCH_MS
        self.node.on_deadline(self.now_ms)
        return {o.peer_id: self.profile.decode(o.data) for o in self.node.outgoing()}

    def types(self, peer_id: PeerId = B) -> list[RecordType]:
        return [record.type for record in self.node.records() if record.peer_id == peer_id]


def _message(body: bytes, group_id: GroupId = GROUP) -> Message:
    return Message(group_id, SECONDS, body)


# -- batch mode ------------------------------------------------------------------------------------


def test_batch_a_message_is_in_the_next_payload_and_in_the_state() -> None:
    bench = Bench()
    bench.append(b"hello")
    assert not list(bench.node.outgoing())
    assert bench.node.next_deadline_ms() == START_MS + EPOCH_MS
    assert bench.next_epoch() == {B: Payload(messages=(_message(b"hello"),))}
    assert bench.types() == [RecordType.MESSAGE]


def test_batch_an_ack_removes_the_message() -> None:
    bench = Bench(B, C)
    message_id = bench.append(b"hello")
    assert bench.receive(Payload(acks=(message_id,))) == [MessageAcknowledged(message_id, B, 1)]
    assert bench.receive(Payload(acks=(message_id,))) == []
    assert bench.receive(Payload(acks=(message_id,)), C) == [MessageAcknowledged(message_id, C, 0)]
    assert bench.next_epoch() == {}
    assert bench.node.next_deadline_ms() is None


def test_a_message_is_acknowledged_each_time_and_told_once() -> None:
    bench = Bench()
    message = _message(b"hello")
    payload = Payload(messages=(message,))
    assert bench.receive(payload) == [
        MessageReceived(message.id, GROUP, SECONDS, b"hello", B),
    ]
    assert bench.next_epoch() == {B: Payload(acks=(message.id,))}
    assert bench.receive(payload) == []
    assert bench.next_epoch() == {B: Payload(acks=(message.id,))}


def test_an_ack_is_never_retransmitted() -> None:
    bench = Bench()
    bench.receive(Payload(messages=(_message(b"hello"),)))
    assert bench.next_epoch()
    assert bench.types() == []
    assert bench.node.next_deadline_ms() is None
    assert not any(bench.next_epoch() for _ in range(100))


# -- interactive mode ------------------------------------------------------------------------------


def test_interactive_offer_request_message_ack() -> None:
    """Figure 1."""
    bench = Bench()
    message_id = bench.append(b"hello", Mode.INTERACTIVE)
    assert bench.types() == [RecordType.OFFER]
    assert bench.next_epoch() == {B: Payload(offers=(message_id,))}
    bench.receive(Payload(requests=(message_id,)))
    assert bench.types() == [RecordType.MESSAGE]  # the OFFER is removed
    assert bench.next_epoch() == {B: Payload(messages=(_message(b"hello"),))}
    bench.receive(Payload(acks=(message_id,)))
    assert bench.types() == []


def test_interactive_at_the_other_end() -> None:
    bench = Bench()
    message = _message(b"hello")
    bench.receive(Payload(offers=(message.id,)))
    assert bench.types() == [RecordType.REQUEST]
    bench.receive(Payload(offers=(message.id,)))  # again, before the request is out
    assert bench.next_epoch() == {B: Payload(requests=(message.id,))}
    bench.receive(Payload(messages=(message,)))
    assert bench.types() == []
    assert bench.next_epoch() == {B: Payload(acks=(message.id,))}


def test_an_offer_of_something_held_is_acknowledged() -> None:
    bench = Bench(B, C)
    message = _message(b"hello")
    bench.receive(Payload(messages=(message,)))
    bench.next_epoch()
    assert C not in bench.next_epoch()
    # It was offered to c, whose own offer shows that it has it.
    assert bench.receive(Payload(offers=(message.id,)), C) == [
        MessageAcknowledged(message.id, C, 0)
    ]
    assert bench.next_epoch() == {C: Payload(acks=(message.id,))}
    assert bench.types(C) == []


def test_who_was_asked_as_well_is_spared() -> None:
    bench = Bench(B, C)
    message = _message(b"hello")
    bench.receive(Payload(offers=(message.id,)), B)
    bench.receive(Payload(offers=(message.id,)), C)
    assert set(bench.next_epoch()) == {B, C}
    bench.receive(Payload(messages=(message,)), B)
    assert bench.next_epoch() == {
        B: Payload(acks=(message.id,)),
        C: Payload(acks=(message.id,)),
    }


def test_a_message_that_comes_with_its_offer_is_not_asked_for() -> None:
    bench = Bench()
    message = _message(b"hello")
    bench.receive(Payload(offers=(message.id,), messages=(message,)))
    assert bench.next_epoch() == {B: Payload(acks=(message.id,))}


def test_a_repeated_request_is_answered_in_the_next_epoch() -> None:
    bench = Bench()
    message_id = bench.append(b"hello")
    for _ in range(4):
        bench.next_epoch()
    for _ in range(3):
        bench.receive(Payload(requests=(message_id,)))
    assert bench.next_epoch() == {B: Payload(messages=(_message(b"hello"),))}


def test_requests_after_an_unknown_one_are_served() -> None:
    bench = Bench()
    message_id = bench.append(b"hello", Mode.INTERACTIVE)
    unknown = MessageId(b"?" * 32)
    assert bench.receive(Payload(requests=(unknown, message_id))) == [
        ElementsRejected(B, Element.REQUEST, Reason.UNKNOWN_MESSAGE, 1, unknown)
    ]
    assert bench.next_epoch()[B].messages


def test_a_peer_that_lost_its_state_may_ask_again() -> None:
    bench = Bench()
    message_id = bench.append(b"hello")
    bench.receive(Payload(acks=(message_id,)))
    bench.receive(Payload(requests=(message_id,)))
    assert bench.next_epoch()[B].messages


# -- relay, groups ---------------------------------------------------------------------------------


def test_a_message_is_offered_to_the_others_of_its_group() -> None:
    bench = Bench(B, C)
    bench.node.add_peer(OTHER_GROUP, PeerId(b"d"))
    message = _message(b"hello")
    bench.receive(Payload(messages=(message,)))
    assert bench.next_epoch() == {
        B: Payload(acks=(message.id,)),
        C: Payload(offers=(message.id,)),
    }


@pytest.mark.parametrize("relay", [None, Mode.BATCH])
def test_how_it_is_passed_on_is_an_option(relay: Mode | None) -> None:
    bench = Bench(B, C, options=NodeOptions(epoch_ms=EPOCH_MS, relay=relay))
    bench.receive(Payload(messages=(_message(b"hello"),)))
    to_c = bench.next_epoch().get(C)
    assert to_c == (Payload(messages=(_message(b"hello"),)) if relay else None)


def test_groups_keep_apart() -> None:
    bench = Bench(B)
    bench.node.add_peer(OTHER_GROUP, C)
    message = _message(b"hello", OTHER_GROUP)
    assert bench.receive(Payload(messages=(message,))) == [
        ElementsRejected(B, Element.MESSAGE, Reason.NOT_IN_GROUP, 1, OTHER_GROUP)
    ]
    assert bench.next_epoch() == {}  # no ack: it may come again, once b is in the group
    secret = bench.node.append(OTHER_GROUP, b"secret", bench.now_ms)
    rejected = bench.receive(Payload(requests=(secret,)))
    assert [type(event) for event in rejected] == [ElementsRejected]
    assert B not in bench.next_epoch()


def test_group_offers_are_understood_and_where_asked_for_sent() -> None:
    message = _message(b"hello")
    offers = (GroupOffer(GROUP, (message.id,)), GroupOffer(OTHER_GROUP, (MessageId(b"x" * 32),)))
    bench = Bench()
    assert [type(event) for event in bench.receive(Payload(group_offers=offers))] == [
        ElementsRejected
    ]
    assert bench.next_epoch() == {B: Payload(requests=(message.id,))}
    bench = Bench(profile=GROUP_OFFERS)
    bench.append(b"hello", Mode.INTERACTIVE)
    assert bench.next_epoch() == {B: Payload(group_offers=offers[:1])}


def test_a_removed_peer_gets_nothing_more() -> None:
    bench = Bench(B, C)
    bench.append(b"hello")
    bench.receive(Payload(messages=(_message(b"from b"),)))
    bench.node.remove_peer(GROUP, B)
    bench.node.remove_peer(GROUP, B)
    assert set(bench.next_epoch()) == {C}
    assert bench.node.peers(GROUP) == (C,)
    assert [type(event) for event in bench.receive(Payload())] == [PayloadRejected]


# -- payloads --------------------------------------------------------------------------------------


def test_an_empty_payload_is_never_answered() -> None:
    bench = Bench()
    assert bench.receive(Payload()) == []
    assert bench.receive(Payload(unknown_fields=b"\x08\x01")) == []
    assert bench.node.next_deadline_ms() is None
    assert bench.next_epoch() == {}


def test_all_for_a_peer_is_in_one_payload() -> None:
    bench = Bench()
    got, wanted = _message(b"got"), MessageId(b"w" * 32)
    given, offered = bench.append(b"given"), bench.append(b"offered", Mode.INTERACTIVE)
    bench.receive(Payload(offers=(wanted,), messages=(got,)))
    payload = bench.next_epoch()[B]
    assert payload == Payload((got.id,), (offered,), (wanted,), (_message(b"given"),))
    assert payload.messages[0].id == given


def test_a_late_owner_sends_one_payload_all_the_same() -> None:
    bench = Bench()
    bench.append(b"one")
    bench.now_ms += 50 * EPOCH_MS
    bench.append(b"two")
    assert [len(payload.messages) for payload in bench.next_epoch().values()] == [2]


# -- retransmission --------------------------------------------------------------------------------


def test_the_interval_doubles_to_a_bound_and_goes_back() -> None:
    bench = Bench()
    bench.append(b"hello")
    sent = [epoch for epoch in range(1, 50) if bench.next_epoch()]
    assert sent == [1, 3, 7, 15, 17, 21, 29, 31, 35, 43, 45, 49]
    (record,) = bench.node.records()
    assert record.send_count == len(sent)
    assert bench.node.statistics().counters.retransmissions == len(sent) - 1


def test_jitter_is_drawn_from_the_given_source() -> None:
    options = NodeOptions(first_interval=10, longest_interval=100, jitter=0.5)
    assert [options.interval(count, lambda: 0.999) for count in range(1, 7)] == [
        *(14, 29, 59, 119),
        *(14, 29),
    ]
    assert options.interval(1, lambda: 0.0) == 10


def test_a_peer_that_is_back_gets_what_waits_soon() -> None:
    bench = Bench()
    bench.append(b"hello")
    for _ in range(8):
        bench.next_epoch()
    assert bench.node.next_deadline_ms() == START_MS + 15 * EPOCH_MS
    bench.node.peer_is_back(B, bench.now_ms)
    assert (bench.node.next_deadline_ms() or 0) <= bench.now_ms + 3 * EPOCH_MS


# -- ids -------------------------------------------------------------------------------------------


def test_equal_bodies_are_two_messages() -> None:
    """In the reference they are one if they fall into one second."""
    bench = Bench()
    assert bench.append(b"ok") != bench.append(b"ok")
    assert {m.timestamp for m in bench.next_epoch()[B].messages} == {SECONDS, SECONDS + 1}
    for _ in range(59):
        bench.append(b"ok")
    with pytest.raises(TooManyRepeats, match="wait a second"):
        bench.append(b"ok")


def test_a_group_without_peers_is_refused() -> None:
    with pytest.raises(UnknownGroup, match="add_peer"):
        Bench().node.append(OTHER_GROUP, b"to nobody", START_MS)


@pytest.mark.parametrize(
    ("group_id", "peer_id"), [(b"short", B), (GROUP, b""), (GROUP, A), (b"g" * 33, B)]
)
def test_ids_that_cannot_be_are_refused(group_id: GroupId, peer_id: PeerId) -> None:
    with pytest.raises(ValueError, match=r"group id|neither"):
        Bench().node.add_peer(group_id, peer_id)
    with pytest.raises(ValueError, match="empty"):
        MvdsNode(PeerId(b""), now_ms=0, random=Random(1).random)
