"""Writer of node records for own nodes (EIP-778, 31/WAKU2-ENR). The module `enr` reads records."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from ipaddress import ip_address

from waku.libp2p import InvalidInput, Multiaddr, PrivateKey

from .enr import BITMAP_BYTES, MAX_RECORD_BYTES, PREFIX, Capability, list_of
from .identity import sign

__all__ = ["signed_record"]


def signed_record(
    key: PrivateKey,
    addresses: Sequence[Multiaddr],
    *,
    capabilities: Capability,
    cluster_id: int,
    shards: Iterable[int],
    sequence: int,
) -> str:
    """Return the signed record of a node (`enr:…`). The keys `ip` and `tcp` have the first address
    that is an IP address with plain TCP.

    Raises:
        InvalidInput: it would be longer than 300 bytes, or the key is not of secp256k1.
    """
    pairs = {
        b"id": b"v4",
        b"secp256k1": key.public_key.data,
        b"waku2": bytes([capabilities]),
        **_shards(cluster_id, sorted(shards)),
        **_addresses(addresses),
    }
    items = [_string(sequence.to_bytes(8, "big").lstrip(b"\0"))]
    items += [_string(part) for name in sorted(pairs) for part in (name, pairs[name])]
    content = b"".join(items)
    record = list_of(_string(sign(key, list_of(content))) + content)
    if len(record) > MAX_RECORD_BYTES:
        raise InvalidInput(
            f"the ENR record of this node has {len(record)} bytes; at most {MAX_RECORD_BYTES} are "
            "allowed"
        )
    return PREFIX + base64.urlsafe_b64encode(record).rstrip(b"=").decode()


def _addresses(addresses: Sequence[Multiaddr]) -> dict[bytes, bytes]:
    """T14: plain TCP in `ip` and `tcp`; the others in `multiaddrs`, without the peer id."""
    pairs: dict[bytes, bytes] = {}
    multiaddrs = b""
    for address in addresses:
        parts = [part for part in address.parts if part[0] != "p2p"]
        match parts:
            case [("ip4", host), ("tcp", port)] if b"ip" not in pairs:
                pairs[b"ip"], pairs[b"tcp"] = ip_address(host).packed, int(port).to_bytes(2, "big")
            case [("ip6", host), ("tcp", port)] if b"ip6" not in pairs:
                pairs[b"ip6"] = ip_address(host).packed
                pairs[b"tcp6"] = int(port).to_bytes(2, "big")
            case _:
                encoded = Multiaddr(tuple(parts)).encode()
                multiaddrs += len(encoded).to_bytes(2, "big") + encoded
    return {**pairs, **({b"multiaddrs": multiaddrs} if multiaddrs else {})}


def _shards(cluster_id: int, shards: Sequence[int]) -> dict[bytes, bytes]:
    """A list, or a bit for each of 1,024 shards where that is shorter."""
    cluster = cluster_id.to_bytes(2, "big")
    listed = b"".join(shard.to_bytes(2, "big") for shard in shards)
    if len(listed) < BITMAP_BYTES:
        return {b"rs": cluster + bytes([len(shards)]) + listed}
    bits = sum(1 << shard for shard in shards if shard < 8 * BITMAP_BYTES)
    return {b"rsv": cluster + bits.to_bytes(BITMAP_BYTES, "little")}


def _string(data: bytes) -> bytes:
    """RLP."""
    if len(data) == 1 and data[0] < 0x80:
        return data
    if len(data) <= 55:
        return bytes([0x80 + len(data)]) + data
    size = len(data).to_bytes((len(data).bit_length() + 7) // 8, "big")
    return bytes([0xB7 + len(size)]) + size + data
