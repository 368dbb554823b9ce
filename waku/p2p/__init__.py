"""Waku's protocols over libp2p.

    protocols codec         names, limits, and the messages' bytes (no I/O)
    refusals service_peer   one peer's answers, and what its refusals mean
    client                  the light client

The comments' T numbers are the list of traps in docs/libp2p.md.
Needs the extra `[libp2p]`.
"""

from .client import ClientEvent, LightClient, MessageDropped, PeerConnected, PeerLost

__all__ = ["ClientEvent", "LightClient", "MessageDropped", "PeerConnected", "PeerLost"]
