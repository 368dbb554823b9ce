"""Status: envelopes, payloads, the whole way in, conversations, and key files."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final

from reliable_channel.spi import HistoryEntry, Message
from reliable_channel_status import (
    PAYLOADS,
    STATUS_SDS,
    ChatMessage,
    Community,
    CommunityDescription,
    CommunityMember,
    Conversation,
    ConversationLimits,
    DeleteMessage,
    EditMessage,
    EmojiReaction,
    MalformedEnvelope,
    NotForThisKey,
    Opener,
    Payload,
    PayloadType,
    PinMessage,
    PrivateKey,
    PublicKey,
    Reaction,
    Received,
    Role,
    SdsArrival,
    SdsWrapper,
    Sealer,
    SignedPayload,
    decode_payload,
    encode_payload,
    mention,
    mentions,
    open_ecies,
    open_symmetric,
    recover,
    sds_message_id,
    seal_ecies,
    seal_symmetric,
    to_protocol,
    unwrap,
    wrap,
)
from reliable_channel_status.wire.codec import TYPES
from reliable_channel_status.wire.conversation import everybody
from reliable_channel_status.wire.envelope import pack, unpack
from reliable_channel_status.wire.segments import STATUS_SEGMENTATION
from waku import WakuMessage

from ..target import Target, joined, records

NOW_MS: Final = 1_700_000_000_000
ALICE: Final = PrivateKey(b"a" * 32)
BOB: Final = PrivateKey(b"b" * 32)
COMMUNITY: Final = Community(BOB.public_key)
CHAT_ID: Final = COMMUNITY.channel_id("1dc14fd8-9a8b-4df5-a358-2c3067be5439")
TOPIC: Final = COMMUNITY.universal_topic
SAID: Final = ChatMessage(clock=NOW_MS, timestamp=NOW_MS, text="hello", chat_id=CHAT_ID)
SIGNED: Final = wrap(SAID, ALICE)
LIMITS: Final = ConversationLimits(
    messages=4, waiting=4, waiting_for_one=2, reactions=4, fingerprints=8
)


def _payloads() -> Iterator[Payload]:
    target = {"clock": NOW_MS + 1, "chat_id": CHAT_ID, "message_id": SIGNED.message_id}
    yield SAID
    yield EditMessage(text="goodbye", **target)  # type: ignore[arg-type]
    yield DeleteMessage(**target)  # type: ignore[arg-type]
    yield PinMessage(**target)  # type: ignore[arg-type]
    yield EmojiReaction(type=Reaction.LOVE, **target)  # type: ignore[arg-type]
    member = CommunityMember(roles=(Role.ROLE_OWNER,))
    yield CommunityDescription(clock=1, members={BOB.public_key.hex: member}, tags=("a",))


def _envelopes() -> Iterator[bytes]:
    random = Random(7).randbytes
    for signer in (None, ALICE):
        yield pack(b"hello", signer, random=random)
        yield seal_symmetric(b"hello", TOPIC.key, signer, random=random)
        yield seal_ecies(b"hello", BOB.public_key, signer, random=random)


SEALED: Final = frozenset(_envelopes())


def _envelope(data: bytes) -> None:
    """Nothing opens but what was sealed, and what is inside is read or refused."""
    for open_ in (partial(open_symmetric, key=TOPIC.key), partial(open_ecies, key=BOB)):
        try:
            opened = open_(data)
        except NotForThisKey:
            continue
        assert opened.payload == b"hello"
    try:
        opened = unpack(data)
    except MalformedEnvelope:
        return
    assert opened.payload in data
    assert opened.signer is None or data[0] & 4


def _payload(data: bytes) -> None:
    """Written again it means the same, whatever type it is taken for."""
    for payload_type in PAYLOADS:
        payload = decode_payload(payload_type, data)
        if payload is not None:
            assert TYPES[type(payload)] is payload_type
            assert decode_payload(payload_type, encode_payload(payload)) == payload


def _message(data: bytes) -> None:
    """Who is told as the author has signed: Alice but one payload."""
    outcome = unwrap(data)
    if not isinstance(outcome, SignedPayload):
        return
    assert outcome.data == data
    assert outcome.signer != ALICE.public_key or encode_payload(SAID) in data


def _way_in(data: bytes) -> None:
    """Plain bytes of members, each in an honest envelope: a message or a refusal comes of each, and
    a conversation stays within its limits."""
    opener = Opener([TOPIC])
    conversation = Conversation(limits=LIMITS, may_pin=everybody)
    for now_ms, record in enumerate(records(data, most=8), NOW_MS):
        sealed = seal_symmetric(record, TOPIC.key, ALICE)
        message = WakuMessage(sealed, TOPIC.content_topic, 1, now_ms * 1_000_000)
        for outcome in opener.receive(message, now_ms):
            if isinstance(outcome, Received):
                conversation.apply(outcome, now_ms)
    for _ in range(9):
        if (deadline_ms := opener.next_deadline_ms()) is not None:
            opener.on_deadline(deadline_ms)
    assert opener.next_deadline_ms() is None


def _sds(data: bytes) -> None:
    """What Alice seals and a channel is given is of the community, under the id of its content, and
    of whom it says; its hints are hashes."""
    taken: list[SdsArrival] = []
    message = WakuMessage(
        seal_symmetric(data, TOPIC.key, ALICE), TOPIC.content_topic, 1, NOW_MS * 1_000_000
    )
    outcomes = Opener([TOPIC], on_sds=taken.append).receive(message, NOW_MS)
    for sds in taken:
        signer = ALICE.public_key
        for outcome in outcomes:
            signer = outcome.signer or signer
        assert sds.channel_id == COMMUNITY.id and sds.sender_id in ("", signer.hex)
        assert not sds.content or sds.message_id == sds_message_id("", 0, sds.content)
        read = STATUS_SDS.codec.decode(sds.data)
        for entry in (*read.causal_history, *read.repair_request):
            assert len(entry.retrieval_hint or bytes(32)) == 32
        again = STATUS_SDS.codec.decode(STATUS_SDS.codec.encode(read))
        assert tuple(again.causal_history) == tuple(read.causal_history)
        assert tuple(again.repair_request) == tuple(read.repair_request)


def _wrapped() -> Iterator[bytes]:
    wrapper = SdsWrapper(COMMUNITY.id)
    yield wrapper.wrap(SIGNED.data, NOW_MS)
    sync = Message(ALICE.public_key.hex, "sync", COMMUNITY.id, 1000)
    entry = HistoryEntry("earlier", b"h" * 32, BOB.public_key.hex)
    yield STATUS_SDS.codec.encode(replace(sync, causal_history=(entry,), repair_request=(entry,)))


def _plain() -> Iterator[bytes]:
    for payload in _payloads():
        yield to_protocol(wrap(payload, ALICE), "device")
    whole = to_protocol(SIGNED)
    half = len(whole) // 2
    segmenter = Sealer(ALICE, max_message_bytes=8 * (half // 6 + 1))
    outgoing = segmenter.seal_signed(SIGNED, TOPIC, NOW_MS)
    for message in outgoing.messages[:4]:
        yield open_symmetric(message.payload, TOPIC.key).payload


def _segment(data: bytes) -> None:
    """A segment is written again as it was read, but for what is not known of it."""
    segment = STATUS_SEGMENTATION.decode(data)
    if segment is not None and not segment.is_parity:
        assert segment.data_segment_count >= 2
        again = STATUS_SEGMENTATION.decode(STATUS_SEGMENTATION.encode(segment))
        assert again is not None
        assert again.payload == segment.payload
        assert again.index == segment.index


def _key_text(data: bytes) -> None:
    """A text is a public key or a `ValueError`; a signature is somebody's or nobody's."""
    try:
        key = PublicKey.parse(data.decode("utf-8", "surrogateescape"))
    except ValueError:
        pass
    else:
        assert PublicKey(key.compressed) == key == PublicKey.parse(key.hex)
        assert PublicKey.parse(key.multibase) == key
    mentions(data.decode("utf-8", "replace"))
    recover(b"hello", data)


TARGETS: Final = (
    Target("status_envelope", _envelope, lambda: sorted(SEALED)),
    Target("status_payload", _payload, lambda: map(encode_payload, _payloads())),
    Target(
        "status_message",
        _message,
        lambda: [SIGNED.data, SIGNED.data[:-1] + bytes([PayloadType.BACKUP])],
    ),
    Target("status_way_in", _way_in, lambda: [joined(_plain())]),
    Target("status_sds", _sds, _wrapped),
    Target("status_segment", _segment, lambda: list(_plain())[-4:]),
    Target(
        "status_keys",
        _key_text,
        lambda: [
            *(ALICE.public_key.multibase.encode(), mention(ALICE.public_key).encode()),
            *(COMMUNITY.id.encode(), ALICE.sign(b"hello")),
        ],
    ),
)
