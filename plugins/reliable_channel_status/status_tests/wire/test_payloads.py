"""Payloads and their bytes."""

from dataclasses import fields, is_dataclass, replace
from enum import IntEnum
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reliable_channel_status import (
    PAYLOADS,
    BridgeMessage,
    ChatMessage,
    CommunityDescription,
    CommunityRequestToJoinResponse,
    ContentType,
    DeleteMessage,
    EmojiReaction,
    ImageFormat,
    ImageMessage,
    MembershipUpdateMessage,
    MessageType,
    Payload,
    PayloadType,
    Reaction,
    StickerMessage,
    decode_payload,
    encode_payload,
)
from reliable_channel_status.wire import status_pb2
from reliable_channel_status.wire.codec import MAX_PARTS, TYPES, UNKNOWN
from status_tests.world import CHAT_ID, NOW_MS, said

FOREIGN = bytes([0x80, 0x7D, 7])
"""Field 2000 with the number 7, which no message has."""
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = {"position": st.integers(-(2**31), 2**31 - 1), "pack": st.integers(-5, 5)}
LONG = {"clock", "timestamp", "duration_ms", "archive_magnetlink_clock"}


@cache
def values(hint: Any, name: str) -> st.SearchStrategy[Any]:
    """Anything that a field may hold."""
    if name == UNKNOWN:
        return st.sampled_from([b"", FOREIGN])
    if isinstance(hint, UnionType):
        return st.none() | values(get_args(hint)[0], name)
    if get_origin(hint) is tuple:
        return st.lists(values(get_args(hint)[0], name), max_size=2).map(tuple)
    if get_origin(hint) is not None:
        keys, items = get_args(hint)
        return st.dictionaries(values(keys, "key"), values(items, name), max_size=2)
    if is_dataclass(hint):
        return made(hint)
    if issubclass(hint, IntEnum):
        return st.sampled_from(list(hint)) | st.integers(0, 300).map(hint)
    if hint is int:
        return NUMBERS.get(name, st.integers(0, 2**63 if name in LONG else 2**31 - 1))
    return {bool: st.booleans(), str: TEXTS, bytes: st.binary(max_size=8)}[hint]


hints_of = cache(get_type_hints)


@st.composite
def made(draw: st.DrawFn, kind: Any) -> Any:
    hints = hints_of(kind)
    content = {name: draw(values(hint, name)) for name, hint in hints.items()}
    if kind is ChatMessage:
        one_of = ("sticker", "image", "audio", "community", "bridge_message")
        chosen = draw(st.sampled_from(one_of))
        content |= {name: None for name in one_of if name != chosen}
    if kind is MembershipUpdateMessage:
        content[draw(st.sampled_from(["message", "emoji_reaction"]))] = None
    return kind(**content)


@pytest.mark.parametrize("kind", PAYLOADS.values(), ids=lambda kind: kind.__name__)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])  # a matter of the machine
@given(data=st.data())
def test_a_payload_means_the_same_read_again(kind: type[Payload], data: st.DataObject) -> None:
    payload = data.draw(made(kind))
    assert decode_payload(TYPES[kind], encode_payload(payload)) == payload


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (  # field by field from the table of 62/STATUS-PAYLOADS
            ChatMessage(clock=1, timestamp=2, text="a", response_to="b", ens_name="c", chat_id="d"),
            "080110021a01612201622a016332016438054001",
        ),
        (
            EmojiReaction(
                clock=1, chat_id="c", message_id="m", type=Reaction.ANGRY, retracted=True
            ),
            "08011201631a016d200528063001",
        ),
        (DeleteMessage(clock=1, chat_id="c", message_id="m"), "08011201631a016d2805"),
        (
            ChatMessage(
                clock=1,
                timestamp=0,
                text="",
                chat_id="",
                content_type=ContentType.BRIDGE_MESSAGE,
                bridge_message=BridgeMessage(bridge_name="b", user_name="u", content="c"),
            ),
            "080138054012a206090a01621201752a0163",
        ),
    ],
)
def test_bytes_are_those_of_the_field_numbers(payload: Payload, expected: str) -> None:
    assert encode_payload(payload).hex() == expected


def test_unknown_numbers_and_fields_are_borne() -> None:
    newer = encode_payload(said(content_type=ContentType(77))) + bytes.fromhex("f80701")
    payload = decode_payload(PayloadType.CHAT_MESSAGE, newer)
    assert isinstance(payload, ChatMessage)
    assert payload.content_type == 77
    assert payload.content_type.name == "UNKNOWN_77"
    assert payload == said(content_type=ContentType(77))


def test_a_payload_is_not_read_as_one_whose_fields_have_other_wire_types() -> None:
    reaction = EmojiReaction(clock=1, chat_id=CHAT_ID, message_id="0x", type=Reaction.LOVE)
    data = encode_payload(reaction)
    # Else somebody could make Alice's reaction to her own message delete it.
    assert decode_payload(PayloadType.DELETE_MESSAGE, data) is None
    assert decode_payload(PayloadType.CHAT_MESSAGE, data) is None
    assert decode_payload(PayloadType.EMOJI_REACTION, data) == reaction


def test_a_chat_message_shows_one_thing() -> None:
    sticker, image = StickerMessage(hash="h"), ImageMessage(payload=b"p", format=ImageFormat.PNG)
    with pytest.raises(ValueError, match="one of sticker, image"):
        said(sticker=sticker, image=image)


def test_what_cannot_be_written_is_told() -> None:
    for wrong in (said(clock=-1), said(clock=2**64), said("\ud800")):
        with pytest.raises(ValueError, match=r"range|surrogates|utf-8|UTF-8"):
            encode_payload(wrong)
    with pytest.raises(TypeError):
        encode_payload(said(text=5))  # type: ignore[arg-type]


def test_a_payload_of_empty_parts_is_not_read() -> None:
    """A megabyte of them took more than a second."""
    for count, is_read in ((MAX_PARTS, True), (MAX_PARTS + 1, False)):
        message = status_pb2.ChatMessage(
            clock=1, unfurled_links=[status_pb2.UnfurledLink()] * count
        )
        data = message.SerializeToString()
        assert (decode_payload(PayloadType.CHAT_MESSAGE, data) is not None) == is_read


def test_every_dataclass_has_the_fields_of_its_message() -> None:
    for kind in PAYLOADS.values():
        message = getattr(status_pb2, kind.__name__).DESCRIPTOR
        names = {field.name for field in fields(kind)} - {UNKNOWN}
        assert names == {field.name for field in message.fields}


def test_a_key_in_a_payload_is_not_shown() -> None:
    response = CommunityRequestToJoinResponse(
        clock=1, accepted=True, community_id=bytes(33), protected_topic_private_key=b"secret"
    )
    assert "secret" not in repr(response)


def test_enumerations_refuse_what_is_no_number() -> None:
    with pytest.raises(ValueError, match="'text' is not a valid MessageType"):
        MessageType("text")  # type: ignore[arg-type]
    assert CommunityDescription(clock=NOW_MS).members == {}


def test_fields_that_are_not_known_are_written_again() -> None:
    raw = status_pb2.CommunityDescription(clock=5)
    raw.members["0x1"].MergeFromString(FOREIGN)
    raw.chats["c"].identity.MergeFromString(FOREIGN)
    raw.chats["c"].position = 3
    data = raw.SerializeToString() + FOREIGN
    description = decode_payload(PayloadType.COMMUNITY_DESCRIPTION, data)
    assert isinstance(description, CommunityDescription)
    assert description.unknown == description.members["0x1"].unknown == FOREIGN
    later = encode_payload(replace(description, clock=6, intro_message="edited"))
    again = decode_payload(PayloadType.COMMUNITY_DESCRIPTION, later)
    assert again == replace(description, clock=6, intro_message="edited")
    identity = description.chats["c"].identity
    assert identity is not None and identity.unknown == FOREIGN
    assert later.count(FOREIGN) == 3
