"""Parameters of gossipsub with the values of go-waku and nwaku, and our own limits."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

__all__ = ["RELAY", "GossipOptions"]

RELAY: Final = "/vac/waku/relay/2.0.0"
"""Waku's protocol id for gossipsub v1.1 with anonymous messages (T15)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GossipOptions:
    """Parameters and limits of one router.

    Raises:
        ValueError: a value is below 1, or `mesh_low`, `mesh_size` and `mesh_high` do not ascend.
    """

    mesh_low: int = 4
    """Smallest mesh of a topic. With fewer mesh peers, the router grafts others."""
    mesh_size: int = 6
    mesh_high: int = 8
    """Largest mesh of a topic. With more mesh peers, the router prunes some, and answers a further
    GRAFT with PRUNE."""
    gossip_peers: int = 6
    """Minimum number of peers outside the mesh that receive ids (IHAVE)."""
    heartbeat_ms: int = 1_000
    history: int = 6
    """Number of heartbeats for which messages are kept for IWANT."""
    gossip_history: int = 3
    """Number of heartbeats whose ids are sent in IHAVE."""
    seen_ms: int = 120_000
    """Time for which an id is remembered, to recognise repeated messages."""
    prune_backoff_ms: int = 60_000
    unsubscribe_backoff_ms: int = 10_000
    longest_backoff_ms: int = 600_000
    """Upper limit of the backoff that a peer asks for by PRUNE."""
    promise_ms: int = 3_000
    """Time for a peer to send a message that it announced."""

    message_bytes: int = 150 * 1024
    """Maximum size of an encoded message."""
    rpc_bytes: int = 1024 * 1024
    """Maximum size of an encoded RPC, as in the specification."""
    topics_by_peer: int = 256
    """Maximum number of topics that are remembered for each peer."""
    ids_per_heartbeat: int = 5_000
    """Maximum number of ids that are read from a peer's IHAVE messages, and from its IWANT
    messages."""
    have_per_heartbeat: int = 10
    """Number of IHAVE messages that are read from one peer."""
    entries_per_heartbeat: int = 1_000
    """Subscriptions, IHAVE, IWANT, GRAFT and PRUNE that a peer may send, plus messages of topics
    without a subscription. Each further hundred is a fault. Honest peers send about ten for each
    shard."""
    wanted_bytes_per_heartbeat: int = 2 * 1024 * 1024
    """Bytes of messages that a peer may request by IWANT."""
    sendings: int = 3
    """Number of times that a peer may request one message by IWANT."""
    grafts_per_heartbeat: int = 20
    """Maximum number of answered GRAFT messages of one peer, or the number of topics if that is
    higher."""
    seen_ids: int = 100_000
    """Maximum number of remembered message ids. The oldest ids are evicted."""
    cache_bytes: int = 32 * 1024 * 1024
    """Maximum number of bytes of messages that are kept for IWANT. The oldest messages are
    evicted."""
    promises: int = 20_000
    """Maximum number of requested messages that have not arrived, of all peers together."""
    promises_by_peer: int = 2_000
    """Maximum number of messages requested from one peer that have not arrived."""
    queue_bytes: int = 2 * 1024 * 1024
    """Bytes that wait for one peer. Further messages are dropped for this peer (`QueueFull`)."""
    faults: int = 20
    """Faults after which a peer is reported. Faults are halved each minute."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if getattr(self, field.name) < 1:
                raise ValueError(
                    f"`{field.name}` must be at least 1 (got {getattr(self, field.name)})"
                )
        if not self.mesh_low <= self.mesh_size <= self.mesh_high:
            raise ValueError(
                "`mesh_size` must be between `mesh_low` and `mesh_high` "
                f"(got {self.mesh_low}, {self.mesh_size}, {self.mesh_high})"
            )
