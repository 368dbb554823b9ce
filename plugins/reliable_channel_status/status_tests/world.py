"""A community, its people, and what they say, for the tests of reliable_channel_status."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from reliable_channel_status import (
    Access,
    ChatMessage,
    Community,
    CommunityDescription,
    CommunityMember,
    CommunityPermissions,
    Opener,
    Outgoing,
    Payload,
    PrivateKey,
    PublicKey,
    Received,
    Sealer,
    Topic,
    wrap,
)
from reliable_channel_status.community.edits import with_channel
from waku import WakuMessage

NOW_MS: Final = 1_700_000_000_000
ALICE: Final = PrivateKey(bytes([1]) * 32)
BOB: Final = PrivateKey(bytes([2]) * 32)
MALLORY: Final = PrivateKey(bytes([3]) * 32)
OWNER: Final = PrivateKey(bytes([4]) * 32)
COMMUNITY: Final = Community(OWNER.public_key)
GENERAL: Final = "1dc14fd8-9a8b-4df5-a358-2c3067be5439"
OTHER: Final = "00000000-9a8b-4df5-a358-2c3067be5439"
CHAT_ID: Final = COMMUNITY.channel_id(GENERAL)
TOPIC: Final = COMMUNITY.universal_topic
HOURLY: Final[Mapping[str, Any]] = {"confirm_ms": 3_600_000}
"""Options of bots that live for days: a look into Store each minute is most of what they cost."""


def describing(
    members: Mapping[PublicKey, CommunityMember], clock: int = NOW_MS
) -> CommunityDescription:
    """A description as clients take it: its channels are GENERAL and OTHER."""
    description = CommunityDescription(
        clock=clock,
        members={user.hex: member for user, member in members.items()},
        permissions=CommunityPermissions(access=Access.AUTO_ACCEPT),
        id=COMMUNITY.id,
    )
    for channel in (GENERAL, OTHER):
        description = with_channel(channel, channel)(description)
    return description


def said(text: str = "hello", **fields: Any) -> ChatMessage:
    """A chat message of now."""
    message = ChatMessage(clock=NOW_MS, timestamp=NOW_MS, text=text, chat_id=CHAT_ID)
    return replace(message, **fields)


def sealed(payload: Payload, key: PrivateKey = ALICE, topic: Topic = TOPIC) -> Outgoing:
    return Sealer(key).seal(payload, topic, NOW_MS)


def changed(message: WakuMessage, payload: bytes) -> WakuMessage:
    """The message with another payload."""
    return replace(message, payload=payload)


def received(payload: Payload, key: PrivateKey = ALICE, timestamp_ms: int = NOW_MS) -> Received:
    """What a member said, as it arrives."""
    return Received(wrap(payload, key), TOPIC, timestamp_ms, key.public_key, False, False)


def opened(outgoing: Outgoing, *topics: Topic) -> Received:
    """What arrives of it, whole."""
    opener = Opener(topics or [TOPIC])
    outcomes = [o for message in outgoing.messages for o in opener.receive(message, NOW_MS)]
    (outcome,) = outcomes
    assert isinstance(outcome, Received), outcome
    return outcome
