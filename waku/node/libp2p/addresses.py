"""Addresses at which peers reach a node, and the node record that lists the addresses."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from typing import Final

from waku.discovery import Capability, signed_record
from waku.libp2p import InvalidInput, KeyType, Multiaddr, PrivateKey
from waku.node.options import NodeOptions

__all__ = ["own_record", "reachable"]

_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_ELSEWHERE: Final = {"0.0.0.0": "192.0.2.1", "::": "2001:db8::1"}
"""Addresses for documentation (RFC 5737, 3849), to which nothing is sent."""


def reachable(bound: Multiaddr) -> list[Multiaddr]:
    """Return the addresses at which peers can dial a bound address. A bound address of all
    interfaces gives an address of each known interface."""
    (kind, host), *rest = bound.parts
    if host not in _ANY:
        return [bound]
    hosts = dict.fromkeys((*_interface(kind, host), _ANY[host]))
    return [Multiaddr(((kind, one), *rest)) for one in hosts]


def own_record(
    identity: PrivateKey, addresses: Sequence[Multiaddr], options: NodeOptions, *, relays: bool
) -> str:
    """Return the record of the node. The record is empty if the node's key cannot sign it, or if no
    address fits into it."""
    if identity.type is not KeyType.SECP256K1:
        return ""
    capabilities = Capability(0)
    for offered, bit in (
        (relays, Capability.RELAY),
        (options.store, Capability.STORE),
        (options.filter, Capability.FILTER),
        (options.lightpush, Capability.LIGHT_PUSH),
    ):
        capabilities |= bit if offered else Capability(0)
    shards = range(options.num_shards) if options.shards is None else options.shards
    fitting = list(addresses)
    while fitting:  # T14: a record has 300 bytes
        try:
            return signed_record(
                identity,
                fitting,
                capabilities=capabilities,
                cluster_id=options.cluster_id,
                shards=shards,
                sequence=options.now_ns() // 1_000_000,
            )
        except InvalidInput:
            fitting.pop()
    return ""


def _interface(kind: str, host: str) -> Iterable[str]:
    """The address by which the machine reaches others: no packet is sent to find it."""
    family = socket.AF_INET if kind == "ip4" else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((_ELSEWHERE[host], 9))
            yield probe.getsockname()[0]
    except OSError:  # no route
        return
