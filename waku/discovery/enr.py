"""Node records (ENR, EIP-778), signed descriptions that nodes publish of themselves.

Waku adds the key `multiaddrs`, and `waku2` for the protocols of the node (31/WAKU2-ENR). The keys
`rs` and `rsv` have the cluster and the shards. This module checks the form and the signature of a
record, not whether its content is true.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import IntFlag
from ipaddress import ip_address
from typing import Final

from waku.libp2p import InvalidInput, Multiaddr, PeerId

from .identity import is_signed, public_key

__all__ = ["Capability", "NodeRecord"]

PREFIX: Final = "enr:"
MAX_RECORD_BYTES: Final = 300
"""Maximum size of a node record in EIP-778 (bytes, T14)."""
MAX_MULTIADDRS: Final = 16
"""Maximum number of multiaddresses, because more do not fit into a record."""
BITMAP_BYTES: Final = 128
"""Size of the field `rsv` (bytes), with a bit for each of 1,024 shards."""


class Capability(IntFlag):
    """Protocols that a node serves, as the bits of `waku2`."""

    RELAY = 1
    STORE = 2
    FILTER = 4
    LIGHT_PUSH = 8


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """Node record with a valid signature."""

    sequence: int
    """Sequence number of the record. A newer record of the node has a higher number."""
    peer_id: PeerId
    addresses: tuple[Multiaddr, ...]
    """Addresses of the node with its peer id at the end. The address from the keys IP and TCP port
    comes first."""
    capabilities: Capability | None
    """Protocols that the node serves. The value is None if the record does not name protocols,
    perhaps because it is no Waku node."""
    cluster_id: int | None
    """Cluster of the node, or None if the record names no shards."""
    shards: frozenset[int]
    text: str
    """Record in text form (`enr:…`), as it was read."""

    @property
    def encoded(self) -> bytes:
        """Record in binary form, as in peer exchange."""
        body = self.text[len(PREFIX) :]
        return base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))

    @classmethod
    def parse(cls, text: str) -> NodeRecord:
        """Parse a record in text form (`enr:…`).

        Raises:
            InvalidInput: not a record, or its signature is wrong.
        """
        if not text.startswith(PREFIX):
            raise InvalidInput(f"{text[:40]!r} does not begin with {PREFIX!r}")
        body = text[len(PREFIX) :]
        if len(body) > MAX_RECORD_BYTES * 4 // 3 + 4:
            raise InvalidInput(f"the ENR record has more than {MAX_RECORD_BYTES} bytes")
        try:
            data = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise InvalidInput(f"{text[:40]!r} is not base64") from None
        return cls.decode(data)

    @classmethod
    def decode(cls, data: bytes) -> NodeRecord:
        """Decode a record in binary form.

        Raises:
            InvalidInput: not a record, or its signature is wrong.
        """
        if len(data) > MAX_RECORD_BYTES:
            raise InvalidInput(
                f"the ENR record has {len(data)} bytes; at most {MAX_RECORD_BYTES} are allowed"
            )
        sequence, pairs = _verified(data)
        peer_id = public_key(pairs[b"secp256k1"]).peer_id
        cluster_id, shards = _shards(pairs)
        waku2 = pairs.get(b"waku2")
        return cls(
            sequence,
            peer_id,
            tuple(address.with_peer_id(peer_id) for address in _addresses(pairs)),
            Capability(waku2[0] & 0x0F) if waku2 else None,
            cluster_id,
            shards,
            PREFIX + base64.urlsafe_b64encode(data).rstrip(b"=").decode(),
        )


def _verified(data: bytes) -> tuple[int, Mapping[bytes, bytes]]:
    """The sequence number and the pairs of a record with a right signature."""
    is_list, body, rest = _item(data)
    if not is_list or rest:
        raise InvalidInput("the ENR record is not exactly one RLP list")
    signature_is_list, signature, content = _item(body)
    if signature_is_list:
        raise InvalidInput("the signature of the ENR record is a list instead of a string")
    items = [value for _, value in _items(content)]
    if len(items) % 2 == 0:
        raise InvalidInput(
            "the ENR record is not a sequence number followed by pairs of key and value"
        )
    keys = items[1::2]
    pairs = dict(zip(keys, items[2::2], strict=True))
    if sorted(pairs) != keys:
        raise InvalidInput("the keys of the ENR record are not sorted, or the record repeats a key")
    if pairs.get(b"id") != b"v4" or b"secp256k1" not in pairs:
        raise InvalidInput("the ENR record has another identity scheme than 'v4'")
    if not is_signed(pairs[b"secp256k1"], list_of(content), signature):
        raise InvalidInput("the ENR record has a wrong signature")
    return int.from_bytes(items[0][:8], "big"), pairs


def _addresses(pairs: Mapping[bytes, bytes]) -> Iterator[Multiaddr]:
    for ip, tcp, name, size in ((b"ip", b"tcp", "ip4", 4), (b"ip6", b"tcp6", "ip6", 16)):
        host, port = pairs.get(ip, b""), int.from_bytes(pairs.get(tcp, b"")[:3], "big")
        if len(host) == size and 0 < port < 65_536:
            yield Multiaddr(((name, str(ip_address(host))), ("tcp", str(port))))
    rest = pairs.get(b"multiaddrs", b"")
    for _ in range(MAX_MULTIADDRS):
        if not rest:
            return
        size = int.from_bytes(rest[:2], "big")
        address, rest = rest[2 : 2 + size], rest[2 + size :]
        with suppress(InvalidInput):  # of a protocol that nobody here could dial
            yield Multiaddr.decode(address)


def _shards(pairs: Mapping[bytes, bytes]) -> tuple[int | None, frozenset[int]]:
    """`rs`: cluster, count, shards. `rsv`: cluster, a bit for each shard, lowest first (T14)."""
    if (listed := pairs.get(b"rs")) is not None:
        numbers = listed[3:]
        if len(listed) < 3 or len(numbers) != 2 * listed[2]:
            raise InvalidInput("`rs` of the ENR record is not a list of shards")
        found = (int.from_bytes(numbers[i : i + 2], "big") for i in range(0, len(numbers), 2))
        return int.from_bytes(listed[:2], "big"), frozenset(found)
    if (bitmap := pairs.get(b"rsv")) is not None:
        if len(bitmap) != 2 + BITMAP_BYTES:
            raise InvalidInput(f"`rsv` of the ENR record has {len(bitmap)} bytes instead of 130")
        bits = int.from_bytes(bitmap[2:], "little")
        return int.from_bytes(bitmap[:2], "big"), frozenset(
            shard for shard in range(8 * BITMAP_BYTES) if bits >> shard & 1
        )
    return None, frozenset()


# RLP, as far as records need it: strings, and lists that stay as they are.


def _item(data: bytes) -> tuple[bool, bytes, bytes]:
    """Return True if the first item is a list, its content, and what follows it."""
    if not data:
        raise InvalidInput("the ENR record ends where an item is expected")
    first = data[0]
    if first < 0x80:
        return False, data[:1], data[1:]
    is_list, size, start = first >= 0xC0, first & 0x3F, 1
    if size > 55:
        start = 1 + size - 55
        size = int.from_bytes(data[1:start], "big")
    end = start + size
    if end > len(data):
        raise InvalidInput("the ENR record ends within an item")
    return is_list, data[start:end], data[end:]


def _items(data: bytes) -> Iterator[tuple[bool, bytes]]:
    while data:
        is_list, value, data = _item(data)
        yield is_list, value


def list_of(content: bytes) -> bytes:
    """Encode the content as an RLP list."""
    if len(content) <= 55:
        return bytes([0xC0 + len(content)]) + content
    size = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes([0xF7 + len(size)]) + size + content
