"""Payloads of chats and contacts, field by field as in status-go's protobuf.

`rules.py` checks the fields of received messages. Unlisted fields are skipped, so payloads are
passed on as their original bytes.
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
    """Sticker of a pack."""

    hash: str
    pack: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageMessage:
    """Image. The images of an album share its id."""

    payload: bytes
    format: ImageFormat
    album_id: str = ""
    width: int = 0
    height: int = 0
    album_images_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioMessage:
    """Recording in a message."""

    payload: bytes
    type: AudioType
    duration_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeMessage:
    """Message that a bot brought from another network."""

    bridge_name: str
    """Name of the network, shown beside the name of the author."""
    user_name: str
    content: str
    user_avatar: str = ""
    user_id: str = ""
    message_id: str = ""
    """Id of the message in the other network."""
    parent_message_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactRequestPropagatedState:
    """State of a contact request on both sides."""

    local_clock: int = 0
    local_state: int = 0
    remote_clock: int = 0
    remote_state: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfurledLink:
    """Preview that the author's client made of a link in the text."""

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
    """Id of the message that this one answers."""
    ens_name: str = ""
    message_type: MessageType = MessageType.COMMUNITY_CHAT
    content_type: ContentType = ContentType.TEXT_PLAIN
    sticker: StickerMessage | None = None
    image: ImageMessage | None = None
    audio: AudioMessage | None = None
    community: bytes | None = None
    bridge_message: BridgeMessage | None = None
    display_name: str = ""
    """Name that the author uses. Anybody may use any name."""
    contact_request_propagated_state: ContactRequestPropagatedState | None = None
    unfurled_links: tuple[UnfurledLink, ...] = ()
    shard: Shard | None = None
    customization_color: int = 0

    def __post_init__(self) -> None:
        contents = (self.sticker, self.image, self.audio, self.community, self.bridge_message)
        if sum(content is not None for content in contents) > 1:
            raise ValueError(
                "a chat message has one of sticker, image, audio, community and bridge_message"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class EditMessage:
    """Edit: a new text for a message of the same author."""

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
    """Public key of the moderator."""
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
    """Reaction to a message, or its retraction: one of six by number, or any emoji."""

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
        """Emoji of the reaction in either form, or the name of an unknown number."""
        return SIX_EMOJI.get(self.type) or self.emoji or self.type.name


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusUpdate:
    """Presence of a user. Its clock is in seconds, unlike those of the other payloads."""

    clock: int
    status_type: StatusType
    custom_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactUpdate:
    """Profile that a user shows to contacts."""

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
    """Acceptance of a contact request."""

    id: str
    """Message id of the request."""
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
    """Id of the group: a uuid, a hyphen and the creator's public key in hex."""
    events: tuple[bytes, ...] = ()
    """Events, each with 65 bytes of signature and an encoded event (`direct.groups`)."""
    message: ChatMessage | None = None
    emoji_reaction: EmojiReaction | None = None

    def __post_init__(self) -> None:
        if self.message is not None and self.emoji_reaction is not None:
            raise ValueError("a membership update has one of message and emoji_reaction")


ChatPayload: TypeAlias = ChatMessage | EditMessage | DeleteMessage | PinMessage | EmojiReaction
"""Payloads that belong to a chat, which `chat_id` names."""

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
"""Payloads of an `ApplicationMetadataMessage`, of the types that are read here."""
