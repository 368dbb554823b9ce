"""From a payload to Waku messages and back, and what is refused on the way."""

from dataclasses import replace
from random import Random

import pytest

from reliable_channel.segmentation import PayloadTooLarge, ReassemblyLimits
from reliable_channel_status import (
    ChatMessage,
    Community,
    CommunityDescription,
    CommunityRequestToJoin,
    DeleteMessage,
    EmojiReaction,
    Ignored,
    ImageFormat,
    ImageMessage,
    Opener,
    Outcome,
    Payload,
    PayloadType,
    PinMessage,
    PrivateKey,
    Reaction,
    Received,
    RefusalReason,
    Refused,
    Sealer,
    SignedPayload,
    StatusType,
    StatusUpdate,
    Topic,
    message_id,
    seal_ecies,
    seal_symmetric,
    to_protocol,
    unwrap,
    wrap,
)
from reliable_channel_status.wire import status_pb2
from reliable_channel_status.wire.keys import keccak256
from status_tests.world import (
    ALICE,
    BOB,
    CHAT_ID,
    COMMUNITY,
    GENERAL,
    MALLORY,
    NOW_MS,
    OTHER,
    OWNER,
    TOPIC,
    changed,
    opened,
    said,
    sealed,
)
from waku import WakuMessage

IMAGE = ImageMessage(payload=Random(7).randbytes(300_000), format=ImageFormat.PNG)


def refused(message: WakuMessage, *topics: Topic, now_ms: int = NOW_MS) -> Refused:
    """Why the only outcome is a refusal."""
    (outcome,) = Opener(topics or [TOPIC]).receive(message, now_ms)
    assert isinstance(outcome, Refused), outcome
    return outcome


def enveloped(plain: bytes, key: PrivateKey | None = ALICE, topic: Topic = TOPIC) -> WakuMessage:
    """Any bytes in an honest envelope."""
    payload = seal_symmetric(plain, topic.key, key)
    return WakuMessage(payload, topic.content_topic, 1, NOW_MS * 1_000_000)


def test_a_message_arrives_with_its_author_id_and_time() -> None:
    outgoing = sealed(said())
    (message,) = outgoing.messages
    assert (message.version, message.ephemeral) == (1, False)
    assert message.content_topic == TOPIC.content_topic
    assert message.timestamp == NOW_MS * 1_000_000
    arrived = opened(outgoing)
    assert arrived.payload == said()
    assert arrived.signer == arrived.envelope_signer == ALICE.public_key
    assert arrived.message_id == outgoing.message_id == arrived.signed.message_id
    assert arrived.timestamp_ms == NOW_MS
    assert arrived.topic == TOPIC
    assert not arrived.is_private
    assert not arrived.is_ephemeral


def test_the_id_is_the_hash_of_key_and_whole_wrapped_message() -> None:
    signed = wrap(said(), ALICE)
    expected = keccak256(ALICE.public_key.uncompressed + signed.data).hex()
    assert signed.message_id == f"0x{expected}" == message_id(ALICE.public_key, signed.data)


@pytest.mark.parametrize(
    "payload",
    [
        DeleteMessage(clock=NOW_MS, chat_id=CHAT_ID, message_id="0x1"),
        PinMessage(clock=NOW_MS, chat_id=CHAT_ID, message_id="0x1"),
        EmojiReaction(clock=NOW_MS, chat_id=CHAT_ID, message_id="0x1", type=Reaction.LOVE),
        CommunityDescription(clock=NOW_MS),
        CommunityRequestToJoin(clock=NOW_MS // 1000, community_id=OWNER.public_key.compressed),
    ],
    ids=lambda payload: type(payload).__name__,
)
def test_every_payload_goes_out_and_comes_in(payload: Payload) -> None:
    assert opened(sealed(payload)).payload == payload


def test_a_topic_of_one_channel() -> None:
    topic = COMMUNITY.channel_topic(GENERAL, "per-channel")
    assert opened(sealed(said(), topic=topic), topic).payload == said()


def test_automatic_status_updates_are_ephemeral() -> None:
    for status, expected in ((StatusType.AUTOMATIC, True), (StatusType.INACTIVE, False)):
        update = StatusUpdate(clock=NOW_MS // 1000, status_type=status)
        assert opened(sealed(update, topic=COMMUNITY.ping_topic), COMMUNITY.ping_topic) == replace(
            opened(sealed(update)), topic=COMMUNITY.ping_topic, is_ephemeral=expected
        )


def test_a_request_to_join_is_for_the_owner_alone() -> None:
    request = CommunityRequestToJoin(clock=1, community_id=OWNER.public_key.compressed)
    topic = COMMUNITY.requests_topic
    outgoing = Sealer(ALICE).seal(request, topic, NOW_MS, receiver=OWNER.public_key)
    (arrived,) = Opener([topic], private_keys=[BOB, OWNER]).receive(outgoing.messages[0], NOW_MS)
    assert isinstance(arrived, Received)
    assert arrived.payload == request
    assert arrived.is_private
    assert refused(outgoing.messages[0], topic).reason is RefusalReason.NOT_FOR_US


@pytest.mark.parametrize("order", [range(3), (2, 0, 1)])
def test_what_is_too_large_for_a_message_goes_in_segments(order: list[int]) -> None:
    outgoing = sealed(said(image=IMAGE))
    assert len(outgoing.messages) == 3
    assert all(len(message.payload) < 150 * 1024 for message in outgoing.messages)
    opener = Opener([TOPIC])
    outcomes = [opener.receive(outgoing.messages[at], NOW_MS) for at in order]
    assert outcomes[:2] == [[], []]
    (arrived,) = outcomes[2]
    assert isinstance(arrived, Received)
    assert arrived.payload == said(image=IMAGE)
    assert arrived.message_id == outgoing.message_id


def test_a_message_of_150_kb_is_two_segments_and_one_in_a_single_message_is_read() -> None:
    text = "x" * 150_000
    assert len(sealed(said(text)).messages) == 2
    large = Sealer(ALICE, max_message_bytes=1024 * 1024).seal(said(text), TOPIC, NOW_MS)
    assert len(large.messages) == 1
    assert opened(large).payload == said(text)


def test_what_no_client_sends_is_not_even_opened() -> None:
    message = changed(sealed(said()).messages[0], bytes(1024 * 1024 + 1))
    assert refused(message).reason is RefusalReason.TOO_LARGE
    with pytest.raises(PayloadTooLarge):
        Sealer(ALICE, max_message_bytes=1024).seal(said(image=IMAGE), TOPIC, NOW_MS)


def test_segments_of_others_do_not_mix_and_wait_not_forever() -> None:
    first, _, last = sealed(said(image=IMAGE)).messages
    theirs = sealed(said(image=IMAGE), MALLORY).messages[1]
    limits = ReassemblyLimits(reconstruction_timeout_ms=1000)
    opener = Opener([TOPIC], limits=limits)
    assert [opener.receive(m, NOW_MS) for m in (first, theirs, last)] == [[], [], []]
    assert opener.next_deadline_ms() == NOW_MS + 1000
    dropped = opener.on_deadline(NOW_MS + 1000)
    assert {outcome.reason for outcome in dropped} == {RefusalReason.SEGMENTS_DROPPED}
    assert {outcome.detail for outcome in dropped} == {
        "2 of 3 segments: expired",
        "1 of 3 segments: expired",
    }
    assert opener.next_deadline_ms() is None


def _segment(**fields: object) -> bytes:
    content = {
        "entire_message_hash": bytes(32),
        "index": 0,
        "segments_count": 2,
        "payload": b"half",
    } | fields
    return status_pb2.SegmentMessage(**content).SerializeToString()  # type: ignore[arg-type]


def test_bad_segments_are_told_and_parity_is_passed_over() -> None:
    assert refused(enveloped(_segment(index=2))).reason is RefusalReason.BAD_SEGMENT
    parity = _segment(segments_count=0, parity_segments_count=1)
    assert Opener([TOPIC]).receive(enveloped(parity), NOW_MS) == []
    opener = Opener([TOPIC])
    opener.receive(enveloped(_segment()), NOW_MS)
    (outcome,) = opener.receive(enveloped(_segment(index=1)), NOW_MS)
    assert isinstance(outcome, Refused)
    assert outcome.reason is RefusalReason.BAD_SEGMENT
    assert "hash_mismatch" in outcome.detail


def test_other_peoples_topics_and_keys() -> None:
    (message,) = sealed(said()).messages
    elsewhere = Community(BOB.public_key).universal_topic
    assert refused(message, elsewhere).reason is RefusalReason.UNKNOWN_TOPIC
    same_topic = replace(message, content_topic=elsewhere.content_topic)
    outcome = refused(same_topic, elsewhere)
    assert outcome.reason is RefusalReason.NOT_FOR_US
    assert "no key opens them" in outcome.detail


def test_topics_come_and_go() -> None:
    opener = Opener()
    (message,) = sealed(said()).messages
    opener.listen(TOPIC)
    opener.listen(TOPIC)
    assert list(opener.content_topics) == [TOPIC.content_topic]
    assert isinstance(opener.receive(message, NOW_MS)[0], Received)
    opener.ignore(TOPIC)
    opener.ignore(TOPIC)
    assert list(opener.content_topics) == []
    (outcome,) = opener.receive(message, NOW_MS)
    assert isinstance(outcome, Refused)


def test_truncated_and_changed_envelopes() -> None:
    (message,) = sealed(said()).messages
    for size in range(0, len(message.payload), 7):
        outcome = refused(changed(message, message.payload[:size]))
        assert outcome.reason is RefusalReason.NOT_FOR_US
        flipped = bytearray(message.payload)
        flipped[size] ^= 1
        assert refused(changed(message, bytes(flipped))).reason is RefusalReason.NOT_FOR_US


def test_an_envelope_without_signature_is_dropped_as_by_status_go_or_taken_by_option() -> None:
    signed = wrap(said(), ALICE)
    message = enveloped(to_protocol(signed), None)
    assert refused(message).reason is RefusalReason.UNSIGNED_ENVELOPE
    (arrived,) = Opener([TOPIC], needs_signed_envelope=False).receive(message, NOW_MS)
    assert isinstance(arrived, Received)
    assert (arrived.signer, arrived.envelope_signer) == (ALICE.public_key, None)


def test_an_envelope_that_another_signed_has_still_its_author() -> None:
    arrived = opened(Sealer(BOB).seal_signed(wrap(said(), ALICE), TOPIC, NOW_MS))
    assert arrived.signer == ALICE.public_key
    assert arrived.envelope_signer == BOB.public_key


def test_a_payload_without_protocol_layer_is_read_too() -> None:
    signed = wrap(said(), ALICE)
    (arrived,) = Opener([TOPIC]).receive(enveloped(signed.data), NOW_MS)
    assert isinstance(arrived, Received)
    assert arrived.signed == signed
    description = wrap(CommunityDescription(clock=1), OWNER)
    assert to_protocol(description) == description.data


@pytest.mark.parametrize(
    ("encrypted", "reason"),
    [
        (b"\x1a\x01x", RefusalReason.DIRECT_MESSAGE_NOT_SUPPORTED),
        (b"\xaa\x06\x03\x0a\x01x", RefusalReason.DIRECT_MESSAGE_NOT_SUPPORTED),
        (b"\xb2\x06\x00", RefusalReason.ENCRYPTED),
    ],
    ids=["payload", "DH_header", "HR_header"],
)
def test_what_is_encrypted_is_named_by_whom_it_is_for(
    encrypted: bytes, reason: RefusalReason
) -> None:
    one = status_pb2.EncryptedMessageProtocol.FromString(encrypted)
    message = status_pb2.ProtocolMessage(installation_id="i", encrypted_message={"none": one})
    assert refused(enveloped(message.SerializeToString())).reason is reason


@pytest.mark.parametrize("version", [0, 1, None])
def test_versions_0_and_1_and_none_are_read_alike(version: int | None) -> None:
    """Clients from 2.40 on send 0, older ones 1, and some gateways leave it out."""
    (message,) = sealed(said()).messages
    (arrived,) = Opener([TOPIC]).receive(replace(message, version=version), NOW_MS)
    assert isinstance(arrived, Received) and arrived.payload == said()


def test_a_version_that_no_client_writes_is_refused() -> None:
    (message,) = sealed(said()).messages
    outcome = refused(replace(message, version=2))
    assert outcome.reason is RefusalReason.UNKNOWN_VERSION
    assert outcome.detail == "version is 2; Status clients write 0 or 1"


def test_version_1_is_sent_and_0_by_option() -> None:
    assert [m.version for m in Sealer(ALICE).seal(said(), TOPIC, NOW_MS).messages] == [1]
    later = Sealer(ALICE, waku_version=0).seal(said(), TOPIC, NOW_MS)
    assert [m.version for m in later.messages] == [0]
    assert opened(later).payload == said()
    with pytest.raises(ValueError, match=r"`waku_version` must be 0 or 1 \(got 2\)"):
        Sealer(ALICE, waku_version=2)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "payload_type",
    [
        PayloadType.CONTACT_CODE_ADVERTISEMENT,
        PayloadType.CHAT_IDENTITY,
        PayloadType.COMMUNITY_PUBLIC_SHARD_INFO,
    ],
    ids=lambda payload_type: payload_type.name,
)
def test_what_clients_broadcast_about_themselves_is_ignored_by_name(
    payload_type: PayloadType,
) -> None:
    outcome = _rewrapped(said(), type=payload_type)
    assert isinstance(outcome, Ignored)
    assert (outcome.payload_type, outcome.signer) == (payload_type, ALICE.public_key)
    forged = _rewrapped(said(), type=payload_type, signature=b"\x01" * 64)
    assert isinstance(forged, Refused) and forged.reason is RefusalReason.BAD_SIGNATURE


def test_a_malformed_envelope_is_told() -> None:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    sealed_badly = AESGCM(TOPIC.key.reveal()).encrypt(bytes(12), b"\x02\xff\xff", None) + bytes(12)
    message = changed(sealed(said()).messages[0], sealed_badly)
    assert refused(message).reason is RefusalReason.MALFORMED_ENVELOPE


@pytest.mark.parametrize("plain", [b"", b"hello", b"\xff" * 40, bytes(300)])
def test_what_is_no_message_is_told(plain: bytes) -> None:
    assert refused(enveloped(plain)).reason is RefusalReason.MALFORMED_MESSAGE


def _rewrapped(payload: Payload, **changes: object) -> Outcome:
    """What Mallory makes of something that Alice signed, without her key."""
    message = status_pb2.ApplicationMetadataMessage.FromString(wrap(payload, ALICE).data)
    for name, value in changes.items():
        setattr(message, name, value)
    (outcome,) = Opener([TOPIC]).receive(enveloped(message.SerializeToString(), MALLORY), NOW_MS)
    return outcome


def test_the_signature_of_another_message_is_not_its_authors() -> None:
    other = status_pb2.ApplicationMetadataMessage.FromString(wrap(said("other"), ALICE).data)
    outcome = _rewrapped(said(), signature=other.signature)
    assert outcome.signer != ALICE.public_key
    nobody = _rewrapped(said(), signature=b"\x01" * 64)
    assert isinstance(nobody, Refused)
    assert nobody.reason is RefusalReason.BAD_SIGNATURE
    assert nobody.signer is None


def test_the_type_is_not_signed_but_a_payload_of_another_type_is_refused() -> None:
    reaction = EmojiReaction(clock=1, chat_id=CHAT_ID, message_id="0x", type=Reaction.LOVE)
    outcome = _rewrapped(reaction, type=PayloadType.DELETE_MESSAGE)
    assert isinstance(outcome, Refused)
    assert outcome.reason is RefusalReason.MALFORMED_PAYLOAD
    assert outcome.signer == ALICE.public_key
    unsupported = _rewrapped(said(), type=PayloadType.BACKUP)
    assert isinstance(unsupported, Refused)
    assert (unsupported.reason, unsupported.detail) == (RefusalReason.UNSUPPORTED_TYPE, "BACKUP")
    newer = _rewrapped(said(), type=777)
    assert isinstance(newer, Refused)
    assert newer.detail == "UNKNOWN_777"


def test_another_wrapping_is_another_id_and_the_same_fingerprint() -> None:
    signed = wrap(said(), ALICE)
    again = unwrap(signed.data + b"\xf8\x07\x01")
    assert isinstance(again, SignedPayload)
    assert again.message_id != signed.message_id
    assert again.fingerprint == signed.fingerprint


def test_a_message_of_another_chat_is_not_taken_over_to_this_one() -> None:
    elsewhere = Community(BOB.public_key)
    foreign = said(chat_id=elsewhere.channel_id(GENERAL))
    outcome = refused(sealed(foreign).messages[0])
    assert outcome.reason is RefusalReason.WRONG_CHAT
    assert outcome.signer == ALICE.public_key
    channel = COMMUNITY.channel_topic(OTHER, "per-channel")
    assert refused(sealed(said(), topic=channel).messages[0], channel).reason is (
        RefusalReason.WRONG_CHAT
    )
    sibling = said(chat_id=COMMUNITY.channel_id(OTHER))
    assert opened(sealed(sibling)).payload == sibling


def test_in_private_the_chat_id_says_nothing() -> None:
    message = ChatMessage(clock=NOW_MS, timestamp=NOW_MS, text="psst", chat_id="anything")
    payload = seal_ecies(to_protocol(wrap(message, ALICE)), BOB.public_key, ALICE)
    waku_message = WakuMessage(payload, TOPIC.content_topic, 1, 0)
    (arrived,) = Opener([TOPIC], private_keys=[BOB]).receive(waku_message, NOW_MS)
    assert isinstance(arrived, Received)
    assert arrived.payload == message
    assert arrived.timestamp_ms == 0


def test_nothing_secret_is_shown() -> None:
    secret = ALICE.reveal().hex()
    assert secret not in repr(Sealer(ALICE)) + repr(sealed(said())) + repr(opened(sealed(said())))
    assert TOPIC.key.reveal().hex() not in repr(TOPIC)
