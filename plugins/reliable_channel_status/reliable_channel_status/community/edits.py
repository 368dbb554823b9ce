"""Changes of a community's description, as pure functions from one description to the next.

`ControlNode` later adds the clock and the signature of the description.
`community_rules.why_invalid` checks that clients would accept the changed description. The limits
of names, texts and numbers are those of status-go.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypeVar

from ..wire.community_payloads import (
    ChatIdentity,
    CommunityAdminSettings,
    CommunityBanInfo,
    CommunityCategory,
    CommunityChat,
    CommunityDescription,
    CommunityMember,
    CommunityPermissions,
    CommunityTokenPermission,
    IdentityImage,
)
from ..wire.enums import Access, ChannelRole, Role, TokenPermissionType
from ..wire.keys import PublicKey
from ..wire.payload_builders import image_format

Edit: TypeAlias = Callable[[CommunityDescription], CommunityDescription]
"""Function from a description to the next description. The function raises `ValueError` with a
reason if the change is impossible."""

MAX_NAME: Final = 30
MAX_DESCRIPTION: Final = 140
MAX_INTRO: Final = 1400
MAX_OUTRO: Final = 80
MAX_IMAGE_BYTES: Final = 40_000
"""Maximum size of an image, because each description carries the images, and nodes relay 150 KiB
unsplit."""
COLOR: Final = "#4360df"
LARGE, THUMBNAIL, BANNER = "large", "thumbnail", "banner"
"""How clients call a community's images."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunityProfile:
    """Profile of a community, with its rule for joining.

    Raises:
        ValueError: a text that is too long or missing, an image of an unknown kind or above 40 kB,
            an access that does not exist.
    """

    name: str
    description: str
    access: Access = Access.AUTO_ACCEPT
    """Rule for joining the community. `AUTO_ACCEPT` admits all requesters, and `MANUAL_ACCEPT` only
    requesters that the owner accepts."""
    color: str = COLOR
    intro_message: str = ""
    """Text that clients show before a user requests to join."""
    outro_message: str = ""
    tags: tuple[str, ...] = ()
    image: bytes | None = None
    """Icon of the community, a PNG, JPEG, GIF or WebP file that is best square."""
    banner: bytes | None = None
    members_may_pin: bool = False

    def __post_init__(self) -> None:
        for what, text, limit in (
            ("name", self.name, MAX_NAME),
            ("description", self.description, MAX_DESCRIPTION),
        ):
            if not 0 < len(text.encode()) <= limit:
                raise ValueError(
                    f"`{what}` must have 1 to {limit} bytes (got {len(text.encode())})"
                )
        for what, text, limit in (
            ("intro_message", self.intro_message, MAX_INTRO),
            ("outro_message", self.outro_message, MAX_OUTRO),
        ):
            if len(text.encode()) > limit:
                raise ValueError(
                    f"`{what}` must have at most {limit} bytes (got {len(text.encode())})"
                )
        if self.access not in (Access.AUTO_ACCEPT, Access.MANUAL_ACCEPT):
            raise ValueError(f"`access` must be AUTO_ACCEPT or MANUAL_ACCEPT (got {self.access!r})")
        if not self.color:
            raise ValueError("`color` must not be empty: write a color such as #4360df")
        for image in (self.image, self.banner):
            if image is not None:
                _image(image)


def founded(profile: CommunityProfile, owner: PublicKey, community_id: str) -> CommunityDescription:
    """Return the first description of a community. The owner is the only member of the new
    community, with all rights."""
    blank = CommunityDescription(
        clock=0,
        id=community_id,
        members={owner.hex: CommunityMember(roles=(Role.ROLE_OWNER,))},
    )
    return described(profile)(blank)


def described(profile: CommunityProfile) -> Edit:
    """Change the profile of the community. Images that the new profile omits stay."""

    def edit(before: CommunityDescription) -> CommunityDescription:
        identity = before.identity or ChatIdentity()
        images = dict(identity.images)
        if profile.image is not None:
            images |= {LARGE: _image(profile.image), THUMBNAIL: _image(profile.image)}
        if profile.banner is not None:
            images[BANNER] = _image(profile.banner)
        return replace(
            before,
            permissions=replace(
                before.permissions or CommunityPermissions(), access=profile.access
            ),
            identity=replace(
                identity,
                display_name=profile.name,
                description=profile.description,
                color=profile.color,
                images=images,
            ),
            admin_settings=CommunityAdminSettings(
                pin_message_all_members_enabled=profile.members_may_pin
            ),
            intro_message=profile.intro_message,
            outro_message=profile.outro_message,
            tags=profile.tags,
        )

    return edit


# -- channels and categories ----------------------------------------------------------------------


def with_channel(
    channel: str,
    name: str,
    description: str = "",
    *,
    emoji: str = "",
    color: str = "",
    category: str = "",
) -> Edit:
    """Add a channel, or change its profile and place.

    A new channel is the last of its category. An existing channel that stays in its category keeps
    its place.
    """

    def edit(before: CommunityDescription) -> CommunityDescription:
        if not name:
            raise ValueError("the name of the channel is empty; give a name")
        if category:
            _find(before.categories, category, "category")
        for uuid, other in before.chats.items():
            if uuid != channel and other.identity and other.identity.display_name == name:
                raise ValueError(f"a channel named {name!r} exists already: {uuid}")
        old = before.chats.get(channel)
        position = sum(1 for other in before.chats.values() if other.category_id == category)
        if old is not None and old.category_id == category:
            position = old.position
        chat = replace(
            old or CommunityChat(permissions=CommunityPermissions(access=Access.AUTO_ACCEPT)),
            identity=replace(
                (old and old.identity) or ChatIdentity(first_message_timestamp=1),
                display_name=name,
                description=description,
                emoji=emoji,
                color=color,
            ),
            category_id=category,
            position=position,
        )
        return replace(before, chats={**before.chats, channel: chat})

    return edit


def without_channel(channel: str) -> Edit:
    """Remove a channel of the community."""

    def edit(before: CommunityDescription) -> CommunityDescription:
        _find(before.chats, channel, "channel")
        return replace(before, chats=_without(before.chats, channel))

    return edit


def with_category(category: str, name: str) -> Edit:
    """Add a category of channels, or rename an existing category."""

    def edit(before: CommunityDescription) -> CommunityDescription:
        if not name:
            raise ValueError("the name of the category is empty; give a name")
        old = before.categories.get(category)
        position = len(before.categories) if old is None else old.position
        made = CommunityCategory(category_id=category, name=name, position=position)
        return replace(before, categories={**before.categories, category: made})

    return edit


def without_category(category: str) -> Edit:
    """Remove a category of channels. The channels of a removed category stay without a category."""

    def edit(before: CommunityDescription) -> CommunityDescription:
        _find(before.categories, category, "category")
        chats = {
            uuid: replace(chat, category_id="") if chat.category_id == category else chat
            for uuid, chat in before.chats.items()
        }
        return replace(before, chats=chats, categories=_without(before.categories, category))

    return edit


# -- encryption -----------------------------------------------------------------------------------


def encrypted(permission_id: str, *, is_encrypted: bool = True) -> Edit:
    """Encrypt the community, or end the encryption. For clients, a community is encrypted if a
    permission for members exists. The permission that is added has no criteria, so the owner alone
    admits members."""

    def edit(before: CommunityDescription) -> CommunityDescription:
        kept = {
            name: one
            for name, one in before.token_permissions.items()
            if one.token_criteria or not one.type.lets_members_in
        }
        if is_encrypted:
            kept[permission_id] = CommunityTokenPermission(
                id=permission_id, type=TokenPermissionType.BECOME_MEMBER
            )
        return replace(before, token_permissions=kept)

    return edit


def private(
    channel: str, chat_id: str, members: AbstractSet[PublicKey], permission_id: str
) -> Edit:
    """Restrict a channel to some members. A private channel gets an encryption key of its own."""

    def edit(before: CommunityDescription) -> CommunityDescription:
        chat = _find(before.chats, channel, "channel")
        listed = {one.hex: _find(before.members, one.hex, "member") for one in members}
        gates = before.token_permissions
        if not any(chat_id in one.chat_ids for one in gates.values()):
            gate = CommunityTokenPermission(
                id=permission_id,
                type=TokenPermissionType.CAN_VIEW_AND_POST_CHANNEL,
                chat_ids=(chat_id,),
            )
            gates = {**gates, permission_id: gate}
        chats = {**before.chats, channel: replace(chat, members=listed)}
        return replace(before, chats=chats, token_permissions=gates)

    return edit


def public(channel: str, chat_id: str) -> Edit:
    """Open a private channel to all members."""

    def edit(before: CommunityDescription) -> CommunityDescription:
        chat = _find(before.chats, channel, "channel")
        gates = {
            name: one
            for name, one in before.token_permissions.items()
            if chat_id not in one.chat_ids
        }
        chats = {**before.chats, channel: replace(chat, members={})}
        return replace(before, chats=chats, token_permissions=gates)

    return edit


# -- members --------------------------------------------------------------------------------------


def with_members(members: Mapping[PublicKey, int]) -> Edit:
    """Admit users, each with the clock of the user's request (s)."""
    listed = {user.hex: CommunityMember(last_update_clock=clock) for user, clock in members.items()}
    return lambda before: replace(before, members={**listed, **before.members})


def kicked(user: PublicKey) -> Edit:
    """Remove a user from the members of the community."""

    def edit(before: CommunityDescription) -> CommunityDescription:
        member = _find(before.members, user.hex, "member")
        if Role.ROLE_OWNER in member.roles:
            raise ValueError(
                "the owner must stay a member: no other member could delete and pin messages"
            )
        chats = {
            uuid: replace(chat, members=_without(chat.members, user.hex))
            for uuid, chat in before.chats.items()
        }
        return replace(before, members=_without(before.members, user.hex), chats=chats)

    return edit


def banned(user: PublicKey, *, delete_messages: bool = False) -> Edit:
    """Ban a user, which removes the user and refuses later requests to join. Clients may delete all
    messages of the user."""

    def edit(before: CommunityDescription) -> CommunityDescription:
        after = kicked(user)(before) if user.hex in before.members else before
        info = CommunityBanInfo(delete_all_messages=delete_messages)
        return replace(
            after,
            banned_members={**after.banned_members, user.hex: info},
            # Deprecated; clients before 2.30 read nothing else.
            ban_list=(*(key for key in after.ban_list if key != user.hex), user.hex),
        )

    return edit


def unbanned(user: PublicKey) -> Edit:
    """Let a banned user request to join again."""

    def edit(before: CommunityDescription) -> CommunityDescription:
        if user.hex not in before.ban_list:
            _find(before.banned_members, user.hex, "banned user")
        return replace(
            before,
            banned_members=_without(before.banned_members, user.hex),
            ban_list=tuple(key for key in before.ban_list if key != user.hex),
        )

    return edit


def with_role(user: PublicKey, role: Role) -> Edit:
    """Give a member a role, or take it away. `ROLE_ADMIN` and `ROLE_TOKEN_MASTER` are moderators,
    and `ROLE_NONE` takes a role away."""

    def edit(before: CommunityDescription) -> CommunityDescription:
        member = _find(before.members, user.hex, "member")
        if Role.ROLE_OWNER in (role, *member.roles):
            raise ValueError(
                "the role of the owner cannot be given or taken away; a community keeps its "
                "first owner"
            )
        roles = () if role is Role.ROLE_NONE else (role,)
        return replace(before, members={**before.members, user.hex: replace(member, roles=roles)})

    return edit


def with_owner(user: PublicKey) -> Edit:
    """List a user as an owner, like the bot with the community's key."""

    def edit(before: CommunityDescription) -> CommunityDescription:
        member = replace(before.members.get(user.hex, CommunityMember()), roles=(Role.ROLE_OWNER,))
        return replace(before, members={**before.members, user.hex: member})

    return edit


def muted(user: PublicKey, *, is_muted: bool = True) -> Edit:
    """Restrict a member to reading, or allow writing again."""

    def edit(before: CommunityDescription) -> CommunityDescription:
        member = _find(before.members, user.hex, "member")
        role = ChannelRole.CHANNEL_ROLE_VIEWER if is_muted else ChannelRole.CHANNEL_ROLE_POSTER
        changed = {user.hex: replace(member, channel_role=role)}
        chats = {
            uuid: replace(chat, members={**chat.members, **changed})
            if user.hex in chat.members  # of a private channel
            else chat
            for uuid, chat in before.chats.items()
        }
        return replace(before, members={**before.members, **changed}, chats=chats)

    return edit


def _find(items: Mapping[str, T], key: str, what: str) -> T:
    if (found := items.get(key)) is None:
        raise ValueError(f"there is no {what} {key[:140]!r}")
    return found


def _without(items: Mapping[str, T], key: str) -> dict[str, T]:
    return {name: item for name, item in items.items() if name != key}


def _image(data: bytes) -> IdentityImage:
    if len(data) > MAX_IMAGE_BYTES:
        raise ValueError(f"an image must have at most {MAX_IMAGE_BYTES} bytes (got {len(data)})")
    return IdentityImage(payload=data, image_format=image_format(data))
