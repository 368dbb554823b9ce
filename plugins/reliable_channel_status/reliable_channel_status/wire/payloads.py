"""Payloads of chats and contacts, field by field as in status-go's protobuf.

`rules.py` checks the fields of received messages. Unlisted fields are not read, so payloads are
forwarded as their original bytes.
"""

from dataclasses import dataclass
from typing import TypeAlias

from .community_payloads import (
    CommunityDescription,
    CommunityEncryptionKeysRequest,
    CommunityRequestToJoin,
    CommunityRequestToJoinResponse,
    CommunityRequestToLeave,
    CommunityUserKicked,
    ContactCodeAdvertisement,
    Shard,
)
from .enums import (
    SIX_EMOJI,
    AudioType,
    ContentType,
    ImageFormat,
    LinkType,
    MessageType,
    Reaction,
    StatusType,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StickerMessage:
    """Sticker of a sticker pack."""

    hash: str
    pack: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageMessage:
    """Image in a chat message. The images of an album have the same album id."""

    payload: bytes
    format: ImageFormat
    album_id: str = ""
    width: int = 0
    height: int = 0
    album_images_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioMessage:
    """Audio recording in a chat message."""

    payload: bytes
    type: AudioType
    duration_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeMessage:
    """Message that a bridge copied from another network."""

    bridge_name: str
    """Name of the other network, shown beside the author's name."""
    user_name: str
    content: str
    user_avatar: str = ""
    user_id: str = ""
    message_id: str = ""
    """Id of the message in the other network."""
    parent_message_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactRequestPropagatedState:
    """State of a contact request, as known to each of the two users."""

    local_clock: int = 0
    local_state: int = 0
    remote_clock: int = 0
    remote_state: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfurledLink:
    """Preview of a link in the text, which the author's client made."""

    url: str
    title: str = ""
    description: str = ""
    thumbnail_payload: bytes = b""
    thumbnail_width: int = 0
    thumbnail_height: int = 0
    type: LinkType = LinkType.LINK
    favicon_payload: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """Message of a chat (62/STATUS-PAYLOADS).

    Raises:
        ValueError: two of sticker, image, audio, community and bridge_message, of which the wire
            holds one.
    """

    clock: int
    """Lamport timestamp, near to milliseconds since 1970 (`ChatClock`)."""
    timestamp: int
    """Time of sending (ms since 1970)."""
    text: str
    chat_id: str
    response_to: str = ""
    """Id of the message that this message answers."""
    ens_name: str = ""
    message_type: MessageType = MessageType.COMMUNITY_CHAT
    content_type: ContentType = ContentType.TEXT_PLAIN
    sticker: StickerMessage | None = None
    image: ImageMessage | None = None
    audio: AudioMessage | None = None
    community: bytes | None = None
    bridge_message: BridgeMessage | None = None
    display_name: str = ""
    """Display name that the author uses. Display names are not unique, because any user may use any
    name."""
    contact_request_propagated_state: ContactRequestPropagatedState | None = None
    unfurled_links: tuple[UnfurledLink, ...] = ()
    shard: Shard | None = None
    customization_color: int = 0

    def __post_init__(self) -> None:
        contents = (self.sticker, self.image, self.audio, self.community, self.bridge_message)
        if sum(content is not None for content in contents) > 1:
            raise ValueError(
                "a chat message may have only one of sticker, image, audio, community and "
                "bridge_message"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class EditMessage:
    """Edit of a message by its author, with the new text."""

    clock: int
    text: str
    chat_id: str
    message_id: str
    message_type: MessageType = MessageType.COMMUNITY_CHAT
    content_type: ContentType = ContentType.TEXT_PLAIN
    unfurled_links: tuple[UnfurledLink, ...] = ()
    grant: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteMessage:
    """Deletion of a message by its author or by a moderator."""

    clock: int
    chat_id: str
    message_id: str
    message_type: MessageType = MessageType.COMMUNITY_CHAT
    deleted_by: str = ""
    """Public key of the moderator that deleted the message."""
    grant: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinMessage:
    """Pin of a message, or its removal."""

    clock: int
    chat_id: str
    message_id: str
    pinned: bool = True
    message_type: MessageType = MessageType.COMMUNITY_CHAT


@dataclass(frozen=True, slots=True, kw_only=True)
class EmojiReaction:
    """Reaction to a message, or its retraction, as a number or as any emoji."""

    clock: int
    chat_id: str
    message_id: str
    type: Reaction = Reaction.UNKNOWN_EMOJI_REACTION_TYPE
    retracted: bool = False
    message_type: MessageType = MessageType.COMMUNITY_CHAT
    grant: bytes = b""
    emoji: str = ""

    @property
    def text(self) -> str:
        """Emoji of the reaction, or the name of an unknown number."""
        return SIX_EMOJI.get(self.type) or self.emoji or self.type.name


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusUpdate:
    """Presence of a user, such as online. The clock of a presence is in seconds, unlike the clocks
    of other payloads."""

    clock: int
    status_type: StatusType
    custom_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactUpdate:
    """Profile that a user sends to contacts."""

    clock: int
    ens_name: str = ""
    profile_image: str = ""
    display_name: str = ""
    contact_request_clock: int = 0
    contact_request_propagated_state: ContactRequestPropagatedState | None = None
    public_key: str = ""
    customization_color: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptContactRequest:
    """Acceptance of another user's contact request."""

    id: str
    """Message id of the accepted contact request."""
    clock: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetractContactRequest:
    """End of a contact, or withdrawal of a contact request."""

    clock: int
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipUpdateMessage:
    """Change of the members of a private group, perhaps with a message (55/STATUS-1TO1).

    Raises:
        ValueError: both a message and a reaction, of which the wire holds one.
    """

    chat_id: str
    """Id of the group, which is a uuid, a hyphen and the creator's public key in hex."""
    events: tuple[bytes, ...] = ()
    """Membership events, each with a signature (65 bytes) and the encoded event
    (`direct.groups`)."""
    message: ChatMessage | None = None
    emoji_reaction: EmojiReaction | None = None

    def __post_init__(self) -> None:
        if self.message is not None and self.emoji_reaction is not None:
            raise ValueError("a membership update may have only one of message and emoji_reaction")


ChatPayload: TypeAlias = ChatMessage | EditMessage | DeleteMessage | PinMessage | EmojiReaction
"""Payloads of a chat, which their field `chat_id` names."""

Payload: TypeAlias = (
    ChatMessage
    | EditMessage
    | DeleteMessage
    | PinMessage
    | EmojiReaction
    | StatusUpdate
    | ContactUpdate
    | AcceptContactRequest
    | RetractContactRequest
    | MembershipUpdateMessage
    | CommunityDescription
    | CommunityRequestToJoin
    | CommunityRequestToJoinResponse
    | CommunityRequestToLeave
    | CommunityUserKicked
    | ContactCodeAdvertisement
    | CommunityEncryptionKeysRequest
)
"""Payloads of an `ApplicationMetadataMessage` that the bot reads."""
