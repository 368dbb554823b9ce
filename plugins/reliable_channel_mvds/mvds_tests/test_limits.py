"""Bad input is named, and memory has an end."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mvds_tests.world import GROUP, START_MS, World
from reliable_channel_mvds import (
    PROFILES,
    SEED,
    BodyTooLong,
    DeliveryFailed,
    Element,
    ElementsRejected,
    GroupId,
    LimitReached,
    Limits,
    Message,
    MessageId,
    MessageReceived,
    Mode,
    MvdsNode,
    NodeFull,
    NodeOptions,
    Payload,
    PayloadRejected,
    PeerId,
    Reason,
    RecordType,
)

A, B, C = PeerId(b"a"), PeerId(b"b"), PeerId(b"c")
SECONDS = START_MS // 1000


def _node(*peers: PeerId, limits: Limits | None = None, **options: object) -> MvdsNode:
    chosen = NodeOptions(limits=limits or Limits(), **options)  # type: ignore[arg-type]
    node = MvdsNode(A, now_ms=START_MS, random=Random(7).random, options=chosen)
    for peer_id in peers or (B,):
        node.add_peer(GROUP, peer_id)
    return node


def _receive(node: MvdsNode, payload: Payload, peer_id: PeerId = B) -> list[object]:
    node.receive(peer_id, SEED.encode(payload), START_MS)
    return list(node.events())


def _id(number: int) -> MessageId:
    return MessageId(number.to_bytes(32))


def _messages(count: int, size: int = 8) -> tuple[Message, ...]:
    return tuple(Message(GROUP, SECONDS, number.to_bytes(size)) for number in range(count))


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("peer_id", "data", "why"),
    [
        (B, b"\xff", "1 bytes are not an MVDS payload"),
        (B, b"\xe2\xb8\x02\x05\x8a\xf7\x02\x20a", "not an MVDS payload"),
        (C, b"", "the peer is in no group"),
        (A, b"", "this node itself"),
        (B, b"\x08" * 2_000, "2000 bytes; received_payload_bytes is 1000"),
    ],
)
def test_a_bad_payload_is_named(peer_id: PeerId, data: bytes, why: str) -> None:
    node = _node(limits=Limits(received_payload_bytes=1000))
    node.receive(peer_id, data, START_MS)
    (event,) = node.events()
    assert isinstance(event, PayloadRejected)
    assert event.peer_id == peer_id
    assert why in event.detail
    assert node.next_deadline_ms() is None


def test_bad_elements_are_counted_and_the_rest_is_taken() -> None:
    node = _node()
    good = Message(GROUP, SECONDS, b"good")
    short, long = MessageId(b"short"), MessageId(b"l" * 33)
    payload = Payload(
        acks=(short, long),
        offers=(short, _id(1)),
        requests=(long,),
        messages=(Message(GroupId(b"short"), SECONDS, b"bad"), good),
    )
    assert _receive(node, payload) == [
        MessageReceived(good.id, GROUP, SECONDS, b"good", B),
        ElementsRejected(B, Element.ACK, Reason.MALFORMED_ID, 2, short),
        ElementsRejected(B, Element.MESSAGE, Reason.MALFORMED_GROUP, 1, b"short"),
        ElementsRejected(B, Element.OFFER, Reason.MALFORMED_ID, 1, short),
        ElementsRejected(B, Element.REQUEST, Reason.MALFORMED_ID, 1, long),
    ]
    assert [record.type for record in node.records()] == [RecordType.REQUEST]


_IDS = st.lists(st.binary(max_size=40).map(MessageId), max_size=4).map(tuple)
_MESSAGES = st.builds(
    Message,
    st.binary(max_size=40).map(GroupId),
    st.integers(-(2**63), 2**63 - 1),
    st.binary(max_size=100),
)


@given(
    payload=st.builds(Payload, _IDS, _IDS, _IDS, st.lists(_MESSAGES, max_size=3).map(tuple)),
    name=st.sampled_from(sorted(PROFILES)),
    cut=st.integers(0, 400),
)
def test_payloads_survive_the_wire_and_truncation(payload: Payload, name: str, cut: int) -> None:
    profile = PROFILES[name]
    data = profile.encode(payload)
    assert profile.decode(data) == payload
    node = _node()
    node.receive(B, data[:cut], START_MS)


# -- limits ----------------------------------------------------------------------------------------


def test_a_payload_has_an_end_and_what_is_left_goes_later() -> None:
    options = NodeOptions(epoch_ms=50, limits=Limits(payload_bytes=2_000))
    world = World("a", "b", options=options)
    for number in range(100):
        world.append("a", b"%d" % number * 100)
    world.run()
    assert len(world.bodies("b")) == 100
    assert max(len(data) for *_, data in world.sent) <= 2_000
    with pytest.raises(BodyTooLong, match="payload_bytes"):
        world.append("a", bytes(2_000))


def test_offers_beyond_the_limit_are_left() -> None:
    node = _node(limits=Limits(requests_per_peer=10))
    assert _receive(node, Payload(offers=tuple(map(_id, range(25))))) == [
        ElementsRejected(B, Element.OFFER, Reason.NO_ROOM, 15, _id(10))
    ]
    assert node.statistics().records == 10


def test_acks_beyond_the_limit_are_not_given() -> None:
    node = _node(limits=Limits(acks_per_peer=5))
    *_, rejected = _receive(node, Payload(messages=_messages(8)))
    assert rejected == ElementsRejected(B, Element.MESSAGE, Reason.NO_ROOM, 3, _messages(8)[5].id)
    assert node.statistics().acks == 5


def test_what_nobody_waits_for_makes_room() -> None:
    node = _node(limits=Limits(messages=4, remembered_ids=3))
    messages = _messages(9)
    events = _receive(node, Payload(messages=messages))
    forgotten = [e.message_id for e in events if isinstance(e, LimitReached)]
    assert forgotten[:4] == [m.id for m in messages[:3]] + [messages[3].id]
    assert node.statistics().messages == 4
    assert node.get(messages[-1].id) == messages[-1]
    assert _receive(node, Payload(messages=messages[4:])) == []  # still known
    assert [type(e) for e in _receive(node, Payload(messages=messages[:1]))] == [
        LimitReached,
        LimitReached,
        MessageReceived,  # long forgotten
    ]


def test_bytes_have_a_limit_too() -> None:
    node = _node(limits=Limits(message_bytes=1_000))
    _receive(node, Payload(messages=_messages(20, size=100)))
    statistics = node.statistics()
    assert (statistics.messages, statistics.message_bytes) == (10, 1_000)


def test_what_is_waited_for_does_not_make_room() -> None:
    node = _node(limits=Limits(messages=4))
    for number in range(4):
        node.append(GROUP, b"%d" % number, START_MS)
    with pytest.raises(NodeFull, match="messages"):
        node.append(GROUP, b"one too many", START_MS)
    message = Message(GROUP, SECONDS, b"theirs")
    assert _receive(node, Payload(messages=(message,))) == [
        ElementsRejected(B, Element.MESSAGE, Reason.NO_ROOM, 1, message.id)
    ]


def test_others_use_up_at_most_half_of_what_own_messages_need() -> None:
    limits = Limits(records_per_peer=20, messages=30)
    node = _node(B, C, limits=limits)
    events = _receive(node, Payload(messages=_messages(100)))
    assert LimitReached("records_per_peer", _messages(100)[50].id, C) in events
    assert node.statistics().records == 10
    for number in range(10):
        node.append(GROUP, b"own %d" % number, START_MS)
    with pytest.raises(NodeFull, match="remove_peer"):
        node.append(GROUP, b"own", START_MS)


def test_what_is_too_long_is_not_passed_on() -> None:
    node = _node(B, C, limits=Limits(payload_bytes=1_024))
    (message,) = _messages(1, size=2_000)
    received, limit = _receive(node, Payload(messages=(message,)))
    assert isinstance(received, MessageReceived)
    assert limit == LimitReached("payload_bytes", message.id)
    assert _receive(node, Payload(requests=(message.id,)), C) == [
        ElementsRejected(C, Element.REQUEST, Reason.NO_ROOM, 1, message.id)
    ]


def test_memberships_have_a_limit() -> None:
    node = _node(B, limits=Limits(memberships=1))
    node.add_peer(GROUP, B)
    with pytest.raises(NodeFull, match="memberships"):
        node.add_peer(GROUP, C)


@pytest.mark.parametrize("mode", Mode)
def test_a_record_may_be_given_up(mode: Mode) -> None:
    node = _node(mode=mode, max_send_count=3, first_interval=1, longest_interval=4)
    message_id = node.append(GROUP, b"to nobody", START_MS)
    while (deadline_ms := node.next_deadline_ms()) is not None:
        node.on_deadline(deadline_ms)
    element = Element.MESSAGE if mode is Mode.BATCH else Element.OFFER
    assert list(node.events()) == [DeliveryFailed(message_id, B, element, 3)]
    assert len(list(node.outgoing())) == 3


@pytest.mark.parametrize(
    "options",
    [
        {"epoch_ms": 0},
        {"first_interval": 0},
        {"first_interval": 9, "longest_interval": 8},
        {"jitter": 1.5},
        {"max_send_count": 0},
    ],
    ids=str,
)
def test_options_that_cannot_be_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=str(next(iter(options)))):
        NodeOptions(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("limits", [{"messages": 0}, {"payload_bytes": 1_000}], ids=str)
def test_limits_that_cannot_be_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(limits))):
        Limits(**limits)
