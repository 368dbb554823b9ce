"""The payloads of chats and contacts, field by field as in status-go's protobuf.

The fields of received messages are not checked here, but in `rules.py`. Fields
that are not listed are skipped: what is to be passed on is passed on as the bytes it came in.
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
    """A sticker of a pack."""

    hash: str
    pack: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageMessage:
    """An image; those of an album share its id."""

    payload: bytes
    format: ImageFormat
    album_id: str = ""
    width: int = 0
    height: int = 0
    album_images_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioMessage:
    """A recording."""

    payload: bytes
    type: AudioType
    duration_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeMessage:
    """A message that a bot brought from another network."""

    bridge_name: str
    """The network: shown beside the name of the author."""
    user_name: str
    content: str
    user_avatar: str = ""
    user_id: str = ""
    message_id: str = ""
    """Of the other network."""
    parent_message_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactRequestPropagatedState:
    """Where both sides of a contact request are."""

    local_clock: int = 0
    local_state: int = 0
    remote_clock: int = 0
    remote_state: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfurledLink:
    """A preview that the author's client made of a link in the text."""

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
    """A message of a chat (62/STATUS-PAYLOADS).

    Raises:
        ValueError: two of sticker, image, audio, community and bridge_message, of which the wire
            holds one.
    """

    clock: int
    """Lamport timestamp, near to milliseconds since 1970 (`ChatClock`)."""
    timestamp: int
    """Milliseconds since 1970."""
    text: str
    chat_id: str
    response_to: str = ""
    """The id of the message that this one answers."""
    ens_name: str = ""
    message_type: MessageType = MessageType.COMMUNITY_CHAT
    content_type: ContentType = ContentType.TEXT_PLAIN
    sticker: StickerMessage | None = None
    image: ImageMessage | None = None
    audio: AudioMessage | None = None
    community: bytes | None = None
    bridge_message: BridgeMessage | None = None
    display_name: str = ""
    """What the author calls itself; anybody may use any name."""
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
    """A new text for a message of the same author."""

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
    """Takes a message away, its author's or, by a moderator, another's."""

    clock: int
    chat_id: str
    message_id: str
    message_type: MessageType = MessageType.COMMUNITY_CHAT
    deleted_by: str = ""
    """Public key of the moderator."""
    grant: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinMessage:
    """Pins a message, or takes the pin away."""

    clock: int
    chat_id: str
    message_id: str
    pinned: bool = True
    message_type: MessageType = MessageType.COMMUNITY_CHAT


@dataclass(frozen=True, slots=True, kw_only=True)
class EmojiReaction:
    """A reaction to a message, or its retraction: one of six by number, or any emoji."""

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
        """The emoji, whichever way it came; the name of a number that is unknown here."""
        return SIX_EMOJI.get(self.type) or self.emoji or self.type.name


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusUpdate:
    """Whether a user is there. Its clock is in seconds, unlike those of the other payloads."""

    clock: int
    status_type: StatusType
    custom_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactUpdate:
    """What a user shows to contacts."""

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
    """Accepts a contact request."""

    id: str
    """The message id of the request."""
    clock: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetractContactRequest:
    """Ends a contact, or takes a contact request back."""

    clock: int
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipUpdateMessage:
    """What happened to the members of a private group, and perhaps a message (55/STATUS-1TO1).

    Raises:
        ValueError: both a message and a reaction, of which the wire holds one.
    """

    chat_id: str
    """A uuid, a hyphen and the creator's public key in hex."""
    events: tuple[bytes, ...] = ()
    """Each is 65 bytes of signature and an encoded event (`direct.groups`)."""
    message: ChatMessage | None = None
    emoji_reaction: EmojiReaction | None = None

    def __post_init__(self) -> None:
        if self.message is not None and self.emoji_reaction is not None:
            raise ValueError("a membership update has one of message and emoji_reaction")


ChatPayload: TypeAlias = ChatMessage | EditMessage | DeleteMessage | PinMessage | EmojiReaction
"""What belongs to a chat, and names it in `chat_id`."""

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
"""What an `ApplicationMetadataMessage` carries, of the types that are read here."""
