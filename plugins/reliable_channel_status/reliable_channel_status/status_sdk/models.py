"""What listeners yield, under the names of `status_sdk.models` and `status_sdk.types`."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Self

from .. import enums
from ..bot import ContactChange, JoinRequest
from ..bot import ContactRequest as BotContactRequest
from ..bot import Message as BotMessage
from ..payloads import BridgeMessage


class Content(Enum):
    """Kinds of content."""

    TEXT = 1
    STICKER = 2
    EMOJI = 4
    IMAGE = 7
    BRIDGED = 18


class Chat(Enum):
    """Kinds of chat."""

    PRIVATE = 1
    COMMUNITY = 2
    GROUP = 3


class Event(Enum):
    """Kinds of event."""

    MESSAGE = 1
    MENTION = 2
    CONTACT_REQUEST = 3
    COMMUNITY_REQUEST = 4


_CHATS = {
    enums.MessageType.ONE_TO_ONE: Chat.PRIVATE,
    enums.MessageType.COMMUNITY_CHAT: Chat.COMMUNITY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of another user."""

    id: str
    timestamp: datetime
    """By the author's clock."""
    chat_id: str
    content: str
    content_type: Content
    from_public_key: str
    chat_type: Chat
    source: str
    """`status`, or the name of the network that it was bridged from."""
    text: str | None = None
    image: bytes = b""
    reply_id: str | None = None
    bridge_id: str | None = None

    @classmethod
    def of(cls, message: BotMessage) -> Self | None:
        """The same message; None for a kind of content that the other package does not yield."""
        payload = message.payload
        try:
            content_type = Content(payload.content_type.value)
        except ValueError:
            return None
        bridged = payload.bridge_message or BridgeMessage(bridge_name="", user_name="", content="")
        text = bridged.content or message.text
        return cls(
            id=message.message_id,
            timestamp=datetime.fromtimestamp(payload.clock / 1000, UTC),
            chat_id=payload.chat_id,
            content=text,
            content_type=content_type,
            from_public_key=message.author.hex,
            chat_type=_CHATS.get(payload.message_type, Chat.GROUP),
            source=bridged.bridge_name or "status",
            text=text,
            image=payload.image.payload if payload.image else b"",
            reply_id=payload.response_to or bridged.parent_message_id or None,
            bridge_id=bridged.message_id or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactRequest:
    """A contact request, or what became of one."""

    id: str
    timestamp: datetime
    public_key: str
    text: str = ""
    incoming: bool = False
    accepted: bool = False
    removed: bool = False

    @classmethod
    def of(cls, request: BotContactRequest | ContactChange) -> Self:
        """The same request or change."""
        is_request = isinstance(request, BotContactRequest)
        is_contact = isinstance(request, ContactChange) and request.is_contact
        return cls(
            id=request.received.message_id,
            timestamp=datetime.fromtimestamp(request.received.timestamp_ms / 1000, UTC),
            public_key=request.author.hex,
            text=request.text if isinstance(request, BotContactRequest) else "",
            incoming=is_request,
            accepted=is_contact,
            removed=not is_request and not is_contact,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityRequest:
    """A request to join a community that the bot runs."""

    id: str
    """The public key of the user, by which `Community.accept` and `decline` know the request."""
    timestamp: datetime
    public_key: str
    community_id: str
    pending: bool = True
    display_name: str = ""

    @classmethod
    def of(cls, request: JoinRequest, community_id: str) -> Self:
        """The same request."""
        return cls(
            id=request.author.hex,
            timestamp=datetime.fromtimestamp(request.received.timestamp_ms / 1000, UTC),
            public_key=request.author.hex,
            community_id=community_id,
            display_name=request.display_name,
        )
