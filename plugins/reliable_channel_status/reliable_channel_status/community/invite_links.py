"""Invite links, such as `https://status.app/c#zQ3…`, `…/c/…#zQ3…` with data, and `…/cc/…#zQ3…` of a
channel.

Only the key after `#` in a link counts. The data before `#` is a preview by the link's author, a
compressed `URLData` in base64. Like clients, this module writes short data uncompressed. The module
does not read compressed data, for which `data` is None.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from typing import Final, Self

from ..wire import status_pb2
from ..wire.chats import Community
from ..wire.codec import parsed
from ..wire.community_payloads import CommunityDescription, Shard

HOST: Final = "https://status.app"
MAX_LINK_LENGTH: Final = 8_000
_LINK: Final = re.compile(r"https://status\.app/(c|cc)(?:/([^#]*))?#(.+)", re.DOTALL)
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WINDOW_22: Final = 0x0B
"""The first byte of a Brotli stream as status-go writes it: a window of 22 bits, and a block that
is not the last. RFC 7932, 9.1 and 9.2."""
_END: Final = b"\x03"
"""A last block that is empty."""
_MAX_BLOCK: Final = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class InviteData:
    """Preview of a community or channel in an invite link. The preview in a link is not signed."""

    display_name: str = ""
    description: str = ""
    members_count: int = 0
    color: str = ""
    tag_indices: tuple[int, ...] = ()
    shard: Shard | None = None


@dataclass(frozen=True, slots=True)
class InviteLink:
    """Invite link to a community, or to a channel of it."""

    community: Community
    data: InviteData | None = None
    """Preview in the link. If the link has no preview or a compressed preview, `data` is None."""
    channel: str = ""
    """Uuid of the channel, or an empty string in a community's link."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an invite link from a text.

        Raises:
            ValueError: it is none, or without a key.
        """
        match = _LINK.fullmatch(text) if len(text) <= MAX_LINK_LENGTH else None
        if match is None:
            raise ValueError(
                f"{text[:150]!r} is not an invite link such as https://status.app/c#zQ3… or "
                "…/c/…#zQ3…"
            )
        kind, data, key = match.groups()
        community = Community.parse(key)
        if kind == "cc":
            return cls(community, channel=data if _UUID.fullmatch(data or "") else "")
        return cls(community, _read(data) if data else None)

    @classmethod
    def of(cls, community: Community, description: CommunityDescription | None = None) -> Self:
        """Return the link of a community, with a preview from its description."""
        if description is None or description.identity is None:
            return cls(community)
        identity = description.identity
        return cls(
            community,
            InviteData(
                display_name=identity.display_name,
                description=identity.description,
                members_count=len(description.members),
                color=identity.color,
            ),
        )

    @property
    def text(self) -> str:
        """Text of the link for people."""
        key = self.community.public_key.multibase
        if self.channel:
            return f"{HOST}/cc/{self.channel}#{key}"
        return f"{HOST}/c#{key}" if self.data is None else f"{HOST}/c/{_written(self.data)}#{key}"


def _read(text: str) -> InviteData | None:
    try:
        stored = _stored(urlsafe_b64decode(text))
    except (Base64Error, ValueError):
        return None
    url, community = status_pb2.URLData(), status_pb2.URLCommunity()
    if stored is None or not parsed(url, stored) or not parsed(community, url.content):
        return None
    return InviteData(
        display_name=community.display_name,
        description=community.description,
        members_count=community.members_count,
        color=community.color,
        tag_indices=tuple(community.tag_indices),
        shard=Shard(cluster=url.shard.cluster, index=url.shard.index)
        if url.HasField("shard")
        else None,
    )


def _written(data: InviteData) -> str:
    community = status_pb2.URLCommunity(
        display_name=data.display_name,
        description=data.description,
        members_count=data.members_count,
        color=data.color,
        tag_indices=data.tag_indices,
    )
    url = status_pb2.URLData(content=community.SerializeToString())
    if data.shard is not None:
        url.shard.cluster, url.shard.index = data.shard.cluster, data.shard.index
    stored = url.SerializeToString()
    if len(stored) > _MAX_BLOCK:
        raise ValueError(
            f"the data of an invite link must have at most {_MAX_BLOCK} bytes (got {len(stored)})"
        )
    last = len(stored) - 1
    head = bytes([_WINDOW_22 | (last & 1) << 7, last >> 1 & 0xFF, 0x80 | last >> 9])
    return urlsafe_b64encode(head + stored + _END).decode()


def _stored(stream: bytes) -> bytes | None:
    """What a Brotli stream of one uncompressed block holds, or None if it is another."""
    if len(stream) < 5 or stream[0] & 0x7F != _WINDOW_22 or not stream[2] & 0x80:
        return None
    length = (stream[0] >> 7 | stream[1] << 1 | (stream[2] & 0x7F) << 9) + 1
    return stream[3:-1] if len(stream) == length + 4 and stream.endswith(_END) else None
