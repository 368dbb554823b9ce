"""Rules by which clients refuse a community's description, and messages in it. The module has only
pure functions.

The rules and their error texts are those of status-go (`protocol/communities`, validator.go and
community.go). Clients accept the descriptions of a control node that follows these rules. A
scripted client that applies the rules refuses the same messages as a real client.
"""

from collections.abc import Iterable
from typing import Final

from ..wire.chats import Community
from ..wire.community_payloads import CommunityDescription, CommunityMember
from ..wire.enums import Access, ChannelRole, Role
from ..wire.keys import PublicKey
from ..wire.payloads import (
    ChatMessage,
    ChatPayload,
    DeleteMessage,
    EditMessage,
    EmojiReaction,
    PinMessage,
)

PRIVILEGED: Final = frozenset({Role.ROLE_OWNER, Role.ROLE_ADMIN, Role.ROLE_TOKEN_MASTER})
"""Roles that may pin messages, and delete messages of others."""
CANNOT_POST: Final = "user can't post in community"
CANNOT_DELETE: Final = "don't have enough permission to delete"
OUTDATED_CLOCK: Final = "invalid community description outdated clock"
NOT_AUTHORIZED: Final = "not authorized"


def why_invalid(description: CommunityDescription) -> str | None:
    """Return the reason why clients refuse a description of any signer, or None."""
    permissions = description.permissions
    if permissions is None:
        return "invalid community description no org permissions"
    if permissions.access is Access.UNKNOWN_ACCESS:
        return "invalid community description unknown org access"
    for category in description.categories.values():
        if not category.category_id:
            return "invalid community category id"
        if not category.name:
            return "invalid community category name"
    for chat in description.chats.values():
        if chat.permissions is None:
            return "invalid community description no chat permissions"
        if chat.permissions.access is Access.UNKNOWN_ACCESS:
            return "invalid community description unknown chat access"
        if chat.category_id and chat.category_id not in description.categories:
            return "invalid community category in chat"
        if chat.identity is None:
            return "invalid community chat name, missing"
        if any(key not in description.members for key in chat.members):
            return "invalid community description member in chat but not in org"
    return None


def is_privileged(description: CommunityDescription, user: PublicKey) -> bool:
    """Return True if a user may pin messages, and delete messages of others. The community's own
    key may neither pin nor delete messages, because it is not a member."""
    member = description.members.get(user.hex)
    return member is not None and not PRIVILEGED.isdisjoint(member.roles)


def is_banned(description: CommunityDescription, user: PublicKey) -> bool:
    """Return True if the description bans a user, in its old list or its new list."""
    return user.hex in description.banned_members or user.hex in description.ban_list


def why_not_heard(
    description: CommunityDescription, community: Community, user: PublicKey, payload: ChatPayload
) -> str | None:
    """Return the reason why clients drop a message of a user in a community, or None.

    `Conversation` checks that a user may edit or delete only own messages.
    """
    channel = payload.chat_id.removeprefix(community.id)
    chat = description.chats.get(channel)
    if chat is None:
        return CANNOT_POST
    if user == community.public_key:
        return None
    member = description.members.get(user.hex)
    if member is None or is_banned(description, user):
        return CANNOT_POST
    if any(payload.chat_id in gate.chat_ids for gate in description.token_permissions.values()):
        if user.hex not in chat.members:  # elsewhere all members are in, and not listed again
            return CANNOT_POST
        member = chat.members[user.hex]
    match payload:
        case PinMessage():
            settings = description.admin_settings
            may = settings is not None and settings.pin_message_all_members_enabled
            may = may or is_privileged(description, user)
        case EmojiReaction():
            may = _may_post(member) or chat.viewers_can_post_reactions
        case ChatMessage() | EditMessage() | DeleteMessage():
            may = _may_post(member)
    return None if may else CANNOT_POST


def why_closed(description: CommunityDescription, user: PublicKey) -> str | None:
    """Return the reason why a bot without tokens and ENS name cannot become a member, or None. The
    returned text names the permission that the bot lacks."""
    if is_banned(description, user):
        return "banned"
    permissions = description.permissions
    if permissions is not None and permissions.ens_only:
        return "only users with an ENS name are let in"
    if permissions is not None and permissions.access not in (
        Access.AUTO_ACCEPT,
        Access.MANUAL_ACCEPT,
    ):
        return f"access is {permissions.access.name}"
    gates = [p for p in description.token_permissions.values() if p.type.lets_members_in]
    if not gates or not all(permission.token_criteria for permission in gates):
        return None  # without criteria a permission only says that the community is encrypted
    return "tokens are needed: " + _listed(str(permission) for permission in gates)


def _may_post(member: CommunityMember) -> bool:
    return member.channel_role is ChannelRole.CHANNEL_ROLE_POSTER


def _listed(texts: Iterable[str]) -> str:
    return ", or ".join(sorted(texts))
