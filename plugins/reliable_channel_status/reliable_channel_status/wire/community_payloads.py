"""The payloads of communities, field by field as in status-go's protobuf.

Members are keyed by their uncompressed public key (`PublicKey.hex`), channels by their uuid.
Metadata of tokens and lists of an encrypted channel's members are kept without reading (`unknown`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .enums import Access, ChannelRole, ImageFormat, Role, TokenPermissionType, TokenType

_AMOUNT_DIGITS = 80
"""Of what others write is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensible:
    """Part of a description that newer clients may extend."""

    unknown: bytes = field(default=b"", repr=False)
    """Encoded fields that are not read here. They are written unchanged, so that a control node
    keeps them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Static shard of a community (51/WAKU2-RELAY-SHARDING)."""

    cluster: int
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityMember(Extensible):
    """Permissions of a member."""

    roles: tuple[Role, ...] = ()
    last_update_clock: int = 0
    channel_role: ChannelRole = ChannelRole.CHANNEL_ROLE_POSTER


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityPermissions(Extensible):
    """Rule that determines which users may join."""

    access: Access = Access.UNKNOWN_ACCESS
    ens_only: bool = False
    private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityImage(Extensible):
    """Picture of a community or of a user."""

    payload: bytes = b""
    source_type: int = 1
    """Kind of the picture: 1 is an image in `payload`, 2 the avatar of an ENS name."""
    image_format: ImageFormat = ImageFormat.UNKNOWN_IMAGE_FORMAT


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatIdentity(Extensible):
    """Profile of a community or a channel."""

    clock: int = 0
    ens_name: str = ""
    images: Mapping[str, IdentityImage] = field(default_factory=dict)
    display_name: str = ""
    description: str = ""
    color: str = ""
    emoji: str = ""
    first_message_timestamp: int = 0
    """Seconds since 1970. 0 means unknown, 1 means none yet."""
    customization_color: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityChat(Extensible):
    """Channel of a community."""

    members: Mapping[str, CommunityMember] = field(default_factory=dict)
    permissions: CommunityPermissions | None = None
    identity: ChatIdentity | None = None
    category_id: str = ""
    position: int = 0
    viewers_can_post_reactions: bool = False
    hide_if_permissions_not_met: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityCategory(Extensible):
    """Category: a heading over channels."""

    category_id: str
    name: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityAdminSettings(Extensible):
    """Users with the rights of admins."""

    pin_message_all_members_enabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityBanInfo(Extensible):
    """Way in which a member was banned."""

    delete_all_messages: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCriteria(Extensible):
    """Tokens of which a user must own an amount."""

    contract_addresses: Mapping[int, str] = field(default_factory=dict)
    """Contract addresses by chain."""
    type: TokenType = TokenType.UNKNOWN_TOKEN_TYPE
    symbol: str = ""
    name: str = ""
    amount: str = ""
    """Amount of tokens. Deprecated: `amount_in_wei` replaced it."""
    token_ids: tuple[int, ...] = ()
    ens_pattern: str = ""
    decimals: int = 0
    amount_in_wei: str = ""

    def __str__(self) -> str:
        if self.type is TokenType.ENS:
            return f"the ENS name {self.ens_pattern or '*'}"
        amount = self.amount
        if not amount and self.amount_in_wei.isascii() and self.amount_in_wei.isdigit():
            amount = _decimal(self.amount_in_wei[:_AMOUNT_DIGITS], min(self.decimals, 36))
        return f"{amount[:_AMOUNT_DIGITS] or '?'} {(self.symbol or self.name or 'tokens')[:40]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityTokenPermission(Extensible):
    """Permission of users with some tokens. They must meet all of the criteria."""

    id: str = ""
    type: TokenPermissionType = TokenPermissionType.UNKNOWN_TOKEN_PERMISSION
    token_criteria: tuple[TokenCriteria, ...] = ()
    chat_ids: tuple[str, ...] = ()
    """Channels that the permission opens, if it concerns channels."""
    is_private: bool = False

    def __str__(self) -> str:
        wanted = " and ".join(str(criteria) for criteria in self.token_criteria[:5])
        return f"{self.type.name} ({wanted or 'no criteria'})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityDescription(Extensible):
    """Community as its owner describes it. The description with the highest clock counts."""

    clock: int
    members: Mapping[str, CommunityMember] = field(default_factory=dict)
    permissions: CommunityPermissions | None = None
    identity: ChatIdentity | None = None
    chats: Mapping[str, CommunityChat] = field(default_factory=dict)
    ban_list: tuple[str, ...] = ()
    """Banned members. Deprecated: `banned_members` replaced it."""
    categories: Mapping[str, CommunityCategory] = field(default_factory=dict)
    archive_magnetlink_clock: int = 0
    admin_settings: CommunityAdminSettings | None = None
    intro_message: str = ""
    outro_message: str = ""
    encrypted: bool = False
    """Deprecated data. `private_data` contains the parts for members with a key."""
    tags: tuple[str, ...] = ()
    token_permissions: Mapping[str, CommunityTokenPermission] = field(default_factory=dict)
    """Encrypted parts by key id. A part without an id is for all."""
    active_members_count: int = 0
    id: str = ""
    banned_members: Mapping[str, CommunityBanInfo] = field(default_factory=dict)
    resend_accounts_clock: int = 0
    private_data: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevealedAccount:
    """Account whose tokens a user shows to be admitted."""

    address: str
    signature: bytes
    chain_ids: tuple[int, ...] = ()
    is_airdrop_address: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityRequestToJoin:
    """Request to join. Its clock is in seconds."""

    clock: int
    community_id: bytes
    """Compressed public key of the community."""
    ens_name: str = ""
    chat_id: str = ""
    display_name: str = ""
    revealed_accounts: tuple[RevealedAccount, ...] = ()
    customization_color: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityRequestToJoinResponse:
    """Answer of the owner to a request."""

    clock: int
    accepted: bool
    community_id: bytes
    community: CommunityDescription | None = None
    """Description of the community. Deprecated: newer clients put the signed description in
    `community_description_protocol_message`."""
    grant: bytes = b""
    magnet_uri: str = ""
    protected_topic_private_key: bytes = field(default=b"", repr=False)
    shard: Shard | None = None
    community_description_protocol_message: bytes = b""
    """Whole `ApplicationMetadataMessage`. `unwrap` reads it and returns the signer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityRequestToLeave:
    """Notice that a member leaves."""

    clock: int
    community_id: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactCodeAdvertisement:
    """Name and picture of a user, for all readers of its contact code."""

    chat_identity: ChatIdentity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityUserKicked:
    """Notice of the owner that a member was removed from an encrypted community. The member does
    not get the key of the description that says so."""

    clock: int
    """Clock of that description, plus 1."""
    community_id: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityEncryptionKeysRequest:
    """Request of a member to the control node for group keys."""

    community_id: bytes
    """Compressed public key of the community."""
    chat_ids: tuple[str, ...] = ()
    """Uuids of the channels whose keys are missing. Empty for the keys of all."""


def _decimal(digits: str, decimals: int) -> str:
    """A number of smallest units as people write it: 1500 of 3 decimals is 1.5."""
    whole, part = digits[:-decimals] if decimals else digits, digits[-decimals:] if decimals else ""
    part = part.rjust(decimals, "0").rstrip("0")
    return f"{whole.lstrip('0') or '0'}{'.' if part else ''}{part}"
