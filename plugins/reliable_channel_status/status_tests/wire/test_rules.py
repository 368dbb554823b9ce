"""What a payload may say, and clocks."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel_status import (
    AudioMessage,
    AudioType,
    BridgeMessage,
    ChatClock,
    ChatPayload,
    CommunityDescription,
    CommunityRequestToJoin,
    CommunityRequestToLeave,
    ContactUpdate,
    ContentType,
    DeleteMessage,
    EditMessage,
    EmojiReaction,
    ImageFormat,
    ImageMessage,
    MessageType,
    Payload,
    PinMessage,
    Reaction,
    RefusalReason,
    StatusType,
    StatusUpdate,
    StickerMessage,
    invalid,
    review,
)
from reliable_channel_status.wire.rules import MAX_CLOCK_AHEAD_MS
from status_tests.world import ALICE, CHAT_ID, NOW_MS, received, said

EDIT = EditMessage(clock=NOW_MS, text="new", chat_id=CHAT_ID, message_id="0x1")
DELETE = DeleteMessage(clock=NOW_MS, chat_id=CHAT_ID, message_id="0x1")
PIN = PinMessage(clock=NOW_MS, chat_id=CHAT_ID, message_id="0x1")
REACTION = EmojiReaction(clock=NOW_MS, chat_id=CHAT_ID, message_id="0x1", type=Reaction.SAD)
STATUS = StatusUpdate(clock=1, status_type=StatusType.INACTIVE)
REQUEST = CommunityRequestToJoin(clock=1, community_id=ALICE.public_key.compressed)
BRIDGED = BridgeMessage(bridge_name="irc", user_name="eve", content="hi")
IMAGE = ImageMessage(payload=b"p", format=ImageFormat.PNG)
AUDIO = AudioMessage(payload=b"p", type=AudioType.AAC)


@pytest.mark.parametrize(
    "payload",
    [
        *(said(), said("x" * 4096), EDIT, DELETE, PIN, REACTION, STATUS, REQUEST),
        said("", content_type=ContentType.IMAGE, image=IMAGE),
        said("", content_type=ContentType.BRIDGE_MESSAGE, bridge_message=BRIDGED),
        said("", content_type=ContentType.DISCORD_MESSAGE),
        said(content_type=ContentType.AUDIO, audio=AUDIO),
        said(content_type=ContentType.STICKER, sticker=StickerMessage(hash="h")),
        said(content_type=ContentType(77)),
        CommunityDescription(clock=1),
        CommunityRequestToLeave(clock=1, community_id=bytes(33)),
        ContactUpdate(clock=1),
    ],
)
def test_what_is_right(payload: Payload) -> None:
    assert invalid(payload) is None


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        *((replace(p, clock=0), "clock is 0") for p in (said(), EDIT, DELETE, PIN, STATUS)),
        *((replace(p, chat_id=""), "chat_id is empty") for p in (said(), EDIT, PIN, REACTION)),
        *((replace(p, message_id=""), "message_id is empty") for p in (EDIT, DELETE, REACTION)),
        *(
            (replace(p, message_type=MessageType.UNKNOWN_MESSAGE_TYPE), "message_type is UNKNOWN")
            for p in (said(), EDIT, DELETE, PIN, REACTION)
        ),
        (said(timestamp=0), "timestamp is 0"),
        (said(" \n"), "text is empty"),
        (said("x" * 4097), "text has 4097 characters; at most 4096"),
        (replace(EDIT, text=""), "text is empty"),
        (said(content_type=ContentType.UNKNOWN_CONTENT_TYPE), "content_type is UNKNOWN"),
        (said(content_type=ContentType.SYSTEM_MESSAGE_GAP), "content_type is SYSTEM"),
        (said(content_type=ContentType.STICKER), "no sticker"),
        (said(content_type=ContentType.IMAGE), "no image"),
        (
            said(
                content_type=ContentType.IMAGE,
                image=replace(IMAGE, format=ImageFormat.UNKNOWN_IMAGE_FORMAT),
            ),
            "the image's format is unknown",
        ),
        (said(content_type=ContentType.AUDIO), "no audio"),
        (
            said(
                content_type=ContentType.AUDIO,
                audio=replace(AUDIO, type=AudioType.UNKNOWN_AUDIO_TYPE),
            ),
            "the audio's type is unknown",
        ),
        (said(content_type=ContentType.BRIDGE_MESSAGE), "no bridge_name"),
        (
            said(
                content_type=ContentType.BRIDGE_MESSAGE,
                bridge_message=replace(BRIDGED, user_name=""),
            ),
            "no bridge_name",
        ),
        (replace(REACTION, type=Reaction.UNKNOWN_EMOJI_REACTION_TYPE), "type is unknown"),
        (replace(STATUS, status_type=StatusType.UNKNOWN_STATUS_TYPE), "status_type is unknown"),
        (replace(STATUS, custom_text="x" * 129), "custom_text has more than 128"),
        (replace(REQUEST, community_id=b""), "community_id has 0 bytes, not 33"),
    ],
)
def test_what_is_wrong(payload: Payload, reason: str) -> None:
    assert (invalid(payload) or "").startswith(reason)
    refused = review(received(payload), NOW_MS)
    assert refused is not None
    assert refused.reason is RefusalReason.INVALID
    assert refused.detail.startswith(f"{type(payload).__name__}: {reason}")
    assert refused.signer == ALICE.public_key


@pytest.mark.parametrize("payload", [said(), EDIT, DELETE, PIN, REACTION, ContactUpdate(clock=1)])
def test_a_clock_may_be_120_seconds_ahead_and_no_more(
    payload: ChatPayload | ContactUpdate,
) -> None:
    early = replace(payload, clock=NOW_MS + 120_000)
    late = replace(payload, clock=NOW_MS + 120_001)
    assert review(received(early), NOW_MS) is None
    refused = review(received(late), NOW_MS)
    assert refused is not None
    assert refused.reason is RefusalReason.CLOCK_AHEAD
    assert "120001 ms ahead" in refused.detail


def test_neither_the_waku_timestamp_nor_our_own_clock_lets_the_future_in() -> None:
    ahead = said(clock=NOW_MS + 3_600_000)
    assert review(received(ahead, timestamp_ms=NOW_MS + 3_600_000), NOW_MS) is not None
    assert review(received(ahead), NOW_MS + 3_600_000) is not None
    assert review(received(ahead, timestamp_ms=0), NOW_MS) is not None
    assert review(received(said(), timestamp_ms=0), NOW_MS) is None
    assert review(received(said(clock=5)), NOW_MS) is None  # history is old


def test_clocks_in_seconds_are_not_measured_in_milliseconds() -> None:
    assert review(received(replace(STATUS, clock=2**63)), NOW_MS) is None


@given(st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 2**40)), min_size=1))
def test_a_chat_clock_only_grows_and_follows_the_time(steps: list[tuple[int, int]]) -> None:
    clock = ChatClock()
    for now_ms, seen in steps:
        earlier = clock.last
        clock.observe(seen, now_ms)
        before = clock.last
        assert before == max(earlier, min(seen, now_ms + MAX_CLOCK_AHEAD_MS // 2))
        assert clock.next(now_ms) == max(now_ms, before + 1) == clock.last
