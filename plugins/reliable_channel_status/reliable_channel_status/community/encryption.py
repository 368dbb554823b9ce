"""Encryption of communities, with their encrypted parts and readers (status-go,
`protocol/communities`).

A community is encrypted if a token permission admits members. A channel is encrypted if a
permission applies to it, unless all users may view it. In an encrypted community, members, channels
and categories are encrypted in `private_data`. The module has only pure functions.

Tests check the functions with recorded bytes of a real client
(`tests/vectors/data/status-ratchet`).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from ..wire.chats import Community
from ..wire.codec import decode_payload, encode_payload
from ..wire.community_payloads import CommunityChat, CommunityDescription
from ..wire.enums import PayloadType, TokenPermissionType
from ..wire.keys import PublicKey

MAX_PARTS: Final = 1_000
"""Maximum number of parts of a description that are decrypted. status-go writes a part for each
encrypted channel."""
_ID_DIGITS: Final = 64

SealPart: TypeAlias = Callable[[bytes, bytes], tuple[bytes, int, bytes]]
"""Function that encrypts for a group, and returns a key id, a number and the ciphertext."""
OpenPart: TypeAlias = Callable[[bytes, int, bytes], bytes | None]
"""Function that returns the plaintext for a key id, a number and a ciphertext. Without the key, the
function returns None."""


def is_encrypted(description: CommunityDescription) -> bool:
    """Return True if the community is encrypted. In an encrypted community, channels without a key
    of their own are also encrypted."""
    return any(one.type.lets_members_in for one in description.token_permissions.values())


def is_channel_encrypted(
    description: CommunityDescription, community: Community, channel: str
) -> bool:
    """Return True if a channel has an encryption key of its own."""
    chat_id = community.channel_id(channel)
    gates = [one for one in description.token_permissions.values() if chat_id in one.chat_ids]
    view = TokenPermissionType.CAN_VIEW_CHANNEL
    return bool(gates) and not any(one.type is view and not one.token_criteria for one in gates)


def group_of_chat(
    description: CommunityDescription, community: Community, chat_id: str
) -> bytes | None:
    """Return the group whose key encrypts a channel's messages, or None for an unencrypted
    channel."""
    channel = chat_id.removeprefix(community.id)
    if is_channel_encrypted(description, community, channel):
        return chat_id.encode()
    return community.public_key.compressed if is_encrypted(description) else None


def groups_of(
    description: CommunityDescription, community: Community
) -> dict[bytes, frozenset[PublicKey]]:
    """Return the groups of a community that need a key, with the members that get the key."""
    groups: dict[bytes, frozenset[PublicKey]] = {}
    if is_encrypted(description):
        groups[community.public_key.compressed] = _users(description.members)
    for channel, chat in description.chats.items():
        if is_channel_encrypted(description, community, channel):
            groups[community.channel_id(channel).encode()] = _users(chat.members)
    return groups


def is_hidden(description: CommunityDescription) -> bool:
    """Return True if the members are unknown, because the description's key is missing. In a
    readable description, the member list is never empty, because an owner is a member."""
    return bool(description.private_data) and not description.members


def hide(
    description: CommunityDescription, community: Community, seal: SealPart
) -> CommunityDescription:
    """Return the description for publication, with its private parts encrypted.

    Raises:
        ValueError: a group has no key.
    """
    parts: dict[str, bytes] = {}
    chats = dict(description.chats)

    def add(group_id: bytes, part: CommunityDescription) -> None:
        key_id, number, sealed = seal(group_id, encode_payload(part))
        parts[f"{key_id.hex()}{number}"] = sealed

    for channel, chat in description.chats.items():
        if is_channel_encrypted(description, community, channel):
            part = CommunityDescription(clock=0, chats={channel: chat})
            add(community.channel_id(channel).encode(), part)
            chats[channel] = replace(chat, members={})
    if is_encrypted(description):
        part = CommunityDescription(
            clock=0,
            members=description.members,
            active_members_count=description.active_members_count,
            chats=chats,
            categories=description.categories,
        )
        add(community.public_key.compressed, part)
        description = replace(description, members={}, active_members_count=0, categories={})
        chats = {}
    return replace(description, chats=chats, private_data=parts)


def show(description: CommunityDescription, open_part: OpenPart) -> CommunityDescription:
    """Return the description with all parts that a member's keys decrypt. Parts that no key
    decrypts stay in `private_data`."""
    left: dict[str, bytes] = {}
    for name, sealed in list(description.private_data.items())[:MAX_PARTS]:
        named = read_name(name)
        plain = None if named is None else open_part(*named, sealed)
        part = None
        if plain is not None:
            part = decode_payload(PayloadType.COMMUNITY_DESCRIPTION, plain)
        if isinstance(part, CommunityDescription):
            description = _merged(description, part)
        else:
            left[name] = sealed
    return replace(description, private_data=left)


def read_name(name: str) -> tuple[bytes, int] | None:
    """Return the key id and the number in the name of an encrypted part, or None for another
    name."""
    digits, number = name[:_ID_DIGITS], name[_ID_DIGITS:]
    if not number.isascii() or not number.isdigit() or len(number) > 10:
        return None
    try:
        return bytes.fromhex(digits), int(number)
    except ValueError:
        return None


def _merged(whole: CommunityDescription, part: CommunityDescription) -> CommunityDescription:
    chats: dict[str, CommunityChat] = dict(whole.chats)
    for channel, chat in part.chats.items():
        if (known := chats.get(channel)) is None:
            chats[channel] = chat
        elif chat.members:
            chats[channel] = replace(known, members=chat.members)
    return replace(
        whole,
        members=part.members or whole.members,
        active_members_count=part.active_members_count or whole.active_members_count,
        categories=part.categories or whole.categories,
        chats=chats,
    )


def _users(members: Mapping[str, object]) -> frozenset[PublicKey]:
    found = set()
    for text in members:
        try:
            found.add(PublicKey.parse(text))
        except ValueError:  # an owner's client wrote it; nobody has such a key
            continue
    return frozenset(found)
