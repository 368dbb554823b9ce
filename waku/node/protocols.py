"""libp2p protocol ids that a node reports for its services, as nwaku does."""

from __future__ import annotations

from typing import Final

from waku.node.options import NodeOptions

__all__ = [
    "COUNTED_PROTOCOLS",
    "FILTER",
    "FILTER_PUSH",
    "LEGACY_LIGHTPUSH",
    "LIGHTPUSH",
    "RELAY",
    "SERVICE_PROTOCOLS",
    "STORE",
    "protocols_of",
]

RELAY: Final = "/vac/waku/relay/2.0.0"
STORE: Final = "/vac/waku/store-query/3.0.0"
LIGHTPUSH: Final = "/vac/waku/lightpush/3.0.0"
LEGACY_LIGHTPUSH: Final = "/vac/waku/lightpush/2.0.0-beta1"
FILTER: Final = "/vac/waku/filter-subscribe/2.0.0-beta1"
FILTER_PUSH: Final = "/vac/waku/filter-push/2.0.0-beta1"

SERVICE_PROTOCOLS: Final = frozenset({RELAY, STORE, LIGHTPUSH, LEGACY_LIGHTPUSH, FILTER})
COUNTED_PROTOCOLS: Final = (
    RELAY,
    FILTER,
    FILTER_PUSH,
    STORE,
    "/vac/waku/store/2.0.0-beta4",
    LIGHTPUSH,
    LEGACY_LIGHTPUSH,
    "/vac/waku/peer-exchange/2.0.0-alpha1",
    "/vac/waku/reconciliation/1.0.0",
)
"""Protocols that nwaku's statistics count, in the order of nwaku."""


def protocols_of(options: NodeOptions) -> tuple[str, ...]:
    """Return the protocol ids of a node with the given options."""
    offered = (
        (STORE, options.store),
        (RELAY, options.relay),
        (LIGHTPUSH, options.lightpush),
        (LEGACY_LIGHTPUSH, options.lightpush),
        (FILTER, options.filter),
        (FILTER_PUSH, True),
    )
    return tuple(name for name, present in offered if present)
