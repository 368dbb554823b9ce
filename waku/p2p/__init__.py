"""Waku's protocols over libp2p.

    protocols codec              names, limits, and the messages' bytes (no I/O)
    serving_codec                the same as a service peer has them. `waku.node.libp2p` serves
    refusals service_peer        one peer's answers, and what its refusals mean
    peer_book network_interfaces which peers to dial and ask. Whether the machine slept (no I/O)
    search keeper                finding peers, and staying connected to enough of them
    subscriptions asking         what peers push, and what they are asked
    events client                the light client
    kept_peers meshes relay      the relay leaf

The comments' T numbers are the list of traps in docs/libp2p.md.
Needs the extra `[libp2p]`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .client import MAX_REDUNDANCY, LightClient
    from .events import (
        ClientEvent,
        MessageDropped,
        PeerBehind,
        PeerConnected,
        PeerDeaf,
        PeerLost,
        PeerPaused,
        PushRefused,
        SearchFailed,
        SubscriptionInterrupted,
        SubscriptionRenewed,
        SurroundingsChanged,
        TooFewPeers,
    )
    from .protocols import Role
    from .relay import RelayLeaf
    from .subscriptions import Pushed

__all__ = [
    "MAX_REDUNDANCY",
    "ClientEvent",
    "LightClient",
    "MessageDropped",
    "PeerBehind",
    "PeerConnected",
    "PeerDeaf",
    "PeerLost",
    "PeerPaused",
    "PushRefused",
    "Pushed",
    "RelayLeaf",
    "Role",
    "SearchFailed",
    "SubscriptionInterrupted",
    "SubscriptionRenewed",
    "SurroundingsChanged",
    "TooFewPeers",
]

_HOME_OF: Final = {
    "ClientEvent": "events",
    "LightClient": "client",
    "MAX_REDUNDANCY": "client",
    "MessageDropped": "events",
    "PeerBehind": "events",
    "PeerConnected": "events",
    "PeerDeaf": "events",
    "PeerLost": "events",
    "PeerPaused": "events",
    "Pushed": "subscriptions",
    "PushRefused": "events",
    "RelayLeaf": "relay",
    "Role": "protocols",
    "SearchFailed": "events",
    "SubscriptionInterrupted": "events",
    "SubscriptionRenewed": "events",
    "SurroundingsChanged": "events",
    "TooFewPeers": "events",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load a name when it is used: a service node needs no client."""
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"waku.p2p.{_HOME_OF[name]}"), name)

    def __dir__() -> list[str]:
        return __all__
