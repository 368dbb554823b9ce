"""Payloads of communities, field by field as in status-go's protobuf.

Keys of maps are uncompressed public keys (`PublicKey.hex`) for members, and uuids for channels.
Token metadata and member lists of encrypted channels are kept as unread bytes (`unknown`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .enums import Access, ChannelRole, ImageFormat, Role, TokenPermissionType, TokenType

_AMOUNT_DIGITS = 80
"""Of what others write is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensible:
    """Part of a description that newer clients may extend with fields."""

    unknown: bytes = field(default=b"", repr=False)
    """Encoded fields that the bot does not read. Unknown fields are written unchanged, so that a
    control node keeps them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Static shard of a community (51/WAKU2-RELAY-SHARDING)."""

    cluster: int
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityMember(Extensible):
    """Roles of a community's member."""

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
    """Kind of the picture, which is 1 for an image in `payload` and 2 for an ENS name's avatar."""
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
    """Time of the first message (seconds since 1970). The value 0 means that the time is unknown,
    and 1 that there is no message yet."""
    customization_color: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityChat(Extensible):
    """Channel in a Status community."""

    members: Mapping[str, CommunityMember] = field(default_factory=dict)
    permissions: CommunityPermissions | None = None
    identity: ChatIdentity | None = None
    category_id: str = ""
    position: int = 0
    viewers_can_post_reactions: bool = False
    hide_if_permissions_not_met: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityCategory(Extensible):
    """Category of a community, which is a heading over channels."""

    category_id: str
    name: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityAdminSettings(Extensible):
    """Users with the rights of a community's admins."""

    pin_message_all_members_enabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityBanInfo(Extensible):
    """Record of a ban, with the way in which the member was banned."""

    delete_all_messages: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCriteria(Extensible):
    """Condition that a user owns an amount of certain tokens."""

    contract_addresses: Mapping[int, str] = field(default_factory=dict)
    """Contract addresses by the id of their blockchain."""
    type: TokenType = TokenType.UNKNOWN_TOKEN_TYPE
    symbol: str = ""
    name: str = ""
    amount: str = ""
    """Deprecated amount of tokens, which `amount_in_wei` replaced."""
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
    """Permission of users that own certain tokens. A user must meet all criteria of the
    permission."""

    id: str = ""
    type: TokenPermissionType = TokenPermissionType.UNKNOWN_TOKEN_PERMISSION
    token_criteria: tuple[TokenCriteria, ...] = ()
    chat_ids: tuple[str, ...] = ()
    """Channels that the permission opens, if it applies to channels."""
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
    """Deprecated list of banned members, which `banned_members` replaced."""
    categories: Mapping[str, CommunityCategory] = field(default_factory=dict)
    archive_magnetlink_clock: int = 0
    admin_settings: CommunityAdminSettings | None = None
    intro_message: str = ""
    outro_message: str = ""
    encrypted: bool = False
    """Deprecated flag of encrypted communities. `private_data` contains the encrypted parts for
    members with a key."""
    tags: tuple[str, ...] = ()
    token_permissions: Mapping[str, CommunityTokenPermission] = field(default_factory=dict)
    """Permissions of users that own certain tokens, by permission id."""
    active_members_count: int = 0
    id: str = ""
    banned_members: Mapping[str, CommunityBanInfo] = field(default_factory=dict)
    resend_accounts_clock: int = 0
    private_data: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevealedAccount:
    """Wallet account whose tokens a user reveals to be admitted."""

    address: str
    signature: bytes
    chain_ids: tuple[int, ...] = ()
    is_airdrop_address: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityRequestToJoin:
    """Request of a user to join a community. The clock of a request to join is in seconds."""

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
    """Answer of a community's owner to a request to join."""

    clock: int
    accepted: bool
    community_id: bytes
    community: CommunityDescription | None = None
    """Deprecated description of the community, which `community_description_protocol_message`
    replaced."""
    grant: bytes = b""
    magnet_uri: str = ""
    protected_topic_private_key: bytes = field(default=b"", repr=False)
    shard: Shard | None = None
    community_description_protocol_message: bytes = b""
    """Whole `ApplicationMetadataMessage` with the signed description. `unwrap` reads the message
    and returns its signer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityRequestToLeave:
    """Notice of a member that it leaves the community."""

    clock: int
    community_id: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactCodeAdvertisement:
    """Name and picture of a user, for all readers of the user's contact code."""

    chat_identity: ChatIdentity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityUserKicked:
    """Notice of the owner that a member was removed from an encrypted community. The removed member
    needs the notice, because it cannot decrypt the next description."""

    clock: int
    """Clock of the description without the member, plus 1."""
    community_id: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityEncryptionKeysRequest:
    """Request of a member to the control node for group keys."""

    community_id: bytes
    """Compressed public key of the community."""
    chat_ids: tuple[str, ...] = ()
    """Uuids of the channels whose keys are missing. An empty tuple requests the keys of all
    channels."""


def _decimal(digits: str, decimals: int) -> str:
    """A number of smallest units as people write it: 1500 of 3 decimals is 1.5."""
    whole, part = digits[:-decimals] if decimals else digits, digits[-decimals:] if decimals else ""
    part = part.rjust(decimals, "0").rstrip("0")
    return f"{whole.lstrip('0') or '0'}{'.' if part else ''}{part}"
