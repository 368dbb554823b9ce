"""Rules for the fields and clocks of payloads, as in status-go's validators. The module has only
pure functions.

Clocks of chats are Lamport timestamps that follow the time in milliseconds.
"""

from typing import Final

from .community_payloads import (
    CommunityDescription,
    CommunityEncryptionKeysRequest,
    CommunityRequestToJoin,
    CommunityRequestToJoinResponse,
    CommunityRequestToLeave,
    CommunityUserKicked,
    ContactCodeAdvertisement,
)
from .enums import AudioType, ContentType, ImageFormat, MessageType, Reaction, StatusType
from .keys import COMPRESSED_BYTES
from .outcomes import Received, RefusalReason, Refused
from .payloads import (
    AcceptContactRequest,
    ChatMessage,
    ContactUpdate,
    DeleteMessage,
    EditMessage,
    EmojiReaction,
    MembershipUpdateMessage,
    Payload,
    PinMessage,
    RetractContactRequest,
    StatusUpdate,
)

MAX_CLOCK_AHEAD_MS: Final = 120_000
"""Lead of a clock over the Waku timestamp beyond which a payload is discarded
(62/STATUS-PAYLOADS)."""
MAX_EARLY_MS: Final = 1_800_000
"""Maximum lead of another user's clock over the local clock. Bots remember handled messages for an
hour, and Store may return them later."""
MAX_TEXT_LENGTH: Final = 4096
"""Maximum length of a chat message (code points)."""
MAX_STATUS_TEXT_LENGTH: Final = 128
MAX_EMOJI_LENGTH: Final = 32
"""Maximum length of a reaction (code points). The longest emoji, families with skin tones, have
eleven code points."""

_NO_CHAT: Final = (MessageType.UNKNOWN_MESSAGE_TYPE, MessageType.SYSTEM_MESSAGE_PRIVATE_GROUP)
_LOCAL_CONTENT: Final = (
    ContentType.TRANSACTION_COMMAND,
    ContentType.SYSTEM_MESSAGE_CONTENT_PRIVATE_GROUP,
    ContentType.SYSTEM_MESSAGE_GAP,
    ContentType.SYSTEM_MESSAGE_PINNED_MESSAGE,
    ContentType.SYSTEM_MESSAGE_MUTUAL_EVENT_SENT,
    ContentType.SYSTEM_MESSAGE_MUTUAL_EVENT_ACCEPTED,
    ContentType.SYSTEM_MESSAGE_MUTUAL_EVENT_REMOVED,
)
"""What a client only writes to itself."""


class ChatClock:
    """Logical clock of a chat, which is `max(now_ms, last + 1)` (62/STATUS-PAYLOADS)."""

    __slots__ = ("last",)

    def __init__(self, last: int = 0) -> None:
        self.last = last
        """The highest clock seen; keep it over a restart."""

    def next(self, now_ms: int) -> int:
        """Return the clock of a message that is sent now."""
        self.last = max(now_ms, self.last + 1)
        return self.last

    def observe(self, clock: int, now_ms: int) -> None:
        """Note the clock of another user's accepted message. A clock in the future moves the chat's
        clock ahead by at most a minute."""
        self.last = max(self.last, min(clock, now_ms + MAX_CLOCK_AHEAD_MS // 2))


def review(received: Received, now_ms: int) -> Refused | None:
    """Return the reason why a payload must be refused, or None.

    DIVERGES from status-go, which compares a clock only with the Waku timestamp by the same sender.
    A clock of more than half an hour ahead of the local time is also refused.
    """
    payload = received.payload
    detail = invalid(payload)
    reason = RefusalReason.INVALID
    if detail is None and isinstance(payload, _TIMED):
        now_ms = min(now_ms + MAX_EARLY_MS, received.timestamp_ms or now_ms)
        if payload.clock > now_ms + MAX_CLOCK_AHEAD_MS:
            reason = RefusalReason.CLOCK_AHEAD
            detail = f"clock {payload.clock} is {payload.clock - now_ms} ms ahead"
    if detail is None:
        return None
    detail = f"{type(payload).__name__}: {detail}"
    return Refused(reason, detail, received.signer, received.message_id)


_TIMED: Final = (
    ChatMessage,
    EditMessage,
    DeleteMessage,
    PinMessage,
    EmojiReaction,
    ContactUpdate,
    AcceptContactRequest,
    RetractContactRequest,
)
"""Those whose clock is in milliseconds."""


def invalid(payload: Payload) -> str | None:
    """Return the problem with the fields of a payload, or None.

    DIVERGES from status-go, which accepts a `DeleteMessage` and a `PinMessage` with clock 0.
    """
    if isinstance(payload, MembershipUpdateMessage):
        # Its clocks are in its events, which are signed one by one (`direct.groups`).
        return None if payload.chat_id else "chat_id is empty"
    if isinstance(payload, ContactCodeAdvertisement):
        return None
    if isinstance(payload, CommunityEncryptionKeysRequest):
        return _community_id(payload.community_id)
    if not payload.clock:
        return "clock is 0"
    match payload:
        case ChatMessage():
            return _chat(payload) or _message(payload)
        case EditMessage():
            return _chat(payload) or _target(payload) or _text(payload.text)
        case DeleteMessage() | PinMessage():
            return _chat(payload) or _target(payload)
        case EmojiReaction():
            if not payload.emoji and payload.type is Reaction.UNKNOWN_EMOJI_REACTION_TYPE:
                return "type is unknown, and emoji is empty"
            if len(payload.emoji) > MAX_EMOJI_LENGTH:
                return f"emoji has more than {MAX_EMOJI_LENGTH} characters"
            return _chat(payload) or _target(payload)
        case StatusUpdate():
            return _status(payload)
        case (
            CommunityRequestToJoin()
            | CommunityRequestToJoinResponse()
            | CommunityRequestToLeave()
            | CommunityUserKicked()
        ):
            return _community_id(payload.community_id)
        case AcceptContactRequest():
            return None if payload.id else "id is empty"
        case CommunityDescription() | ContactUpdate() | RetractContactRequest():
            pass
    return None


def _community_id(community_id: bytes) -> str | None:
    if len(community_id) != COMPRESSED_BYTES:
        return f"community_id has {len(community_id)} bytes, not {COMPRESSED_BYTES}"
    return None


def _chat(
    payload: ChatMessage | EditMessage | DeleteMessage | PinMessage | EmojiReaction,
) -> str | None:
    if not payload.chat_id:
        return "chat_id is empty"
    if payload.message_type in _NO_CHAT:
        return f"message_type is {payload.message_type.name}"
    return None


def _target(payload: EditMessage | DeleteMessage | PinMessage | EmojiReaction) -> str | None:
    return None if payload.message_id else "message_id is empty"


def _text(text: str) -> str | None:
    if not text.strip():
        return "text is empty"
    if len(text) > MAX_TEXT_LENGTH:
        return f"text has {len(text)} characters; at most {MAX_TEXT_LENGTH}"
    return None


def _status(payload: StatusUpdate) -> str | None:
    if payload.status_type is StatusType.UNKNOWN_STATUS_TYPE:
        return "status_type is unknown"
    if len(payload.custom_text) > MAX_STATUS_TEXT_LENGTH:
        return f"custom_text has more than {MAX_STATUS_TEXT_LENGTH} characters"
    return None


def _message(message: ChatMessage) -> str | None:
    if not message.timestamp:
        return "timestamp is 0"
    content = message.content_type
    if content is ContentType.UNKNOWN_CONTENT_TYPE or content in _LOCAL_CONTENT:
        return f"content_type is {content.name}"
    is_textless = content in (ContentType.DISCORD_MESSAGE, ContentType.BRIDGE_MESSAGE) or (
        content is ContentType.IMAGE and not message.text
    )
    return (None if is_textless else _text(message.text)) or _content(message)


def _content(message: ChatMessage) -> str | None:
    """What is missing of what `content_type` promises."""
    match message.content_type:
        case ContentType.STICKER:
            if message.sticker is None or not message.sticker.hash:
                return "no sticker"
        case ContentType.IMAGE:
            image = message.image
            if image is None or not image.payload:
                return "no image"
            if image.format is ImageFormat.UNKNOWN_IMAGE_FORMAT:
                return "the image's format is unknown"
        case ContentType.AUDIO:
            audio = message.audio
            if audio is None or not audio.payload:
                return "no audio"
            if audio.type is AudioType.UNKNOWN_AUDIO_TYPE:
                return "the audio's type is unknown"
        case ContentType.BRIDGE_MESSAGE:
            bridged = message.bridge_message
            if bridged is None or not (
                bridged.bridge_name and bridged.user_name and bridged.content
            ):
                return "no bridge_name, user_name or content"
    return None
