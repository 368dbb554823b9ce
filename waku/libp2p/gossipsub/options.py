"""Parameters of gossipsub, with the values of go-waku and nwaku, and limits of our own."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

__all__ = ["RELAY", "GossipOptions"]

RELAY: Final = "/vac/waku/relay/2.0.0"
"""Waku's name for gossipsub v1.1 with anonymous messages (T15)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GossipOptions:
    """Parameters and limits of one router.

    Raises:
        ValueError: a value is below 1, or the mesh's sizes are not in order; the text names it.
    """

    mesh_low: int = 4
    """With fewer mesh peers others are grafted."""
    mesh_size: int = 6
    mesh_high: int = 8
    """With more, some are pruned; a GRAFT beyond is answered with PRUNE."""
    gossip_peers: int = 6
    """Peers outside the mesh that are given ids, at least."""
    heartbeat_ms: int = 1_000
    history: int = 6
    """Heartbeats for which messages are kept for IWANT."""
    gossip_history: int = 3
    """Heartbeats whose ids are given in IHAVE."""
    seen_ms: int = 120_000
    """So long an id is known, and its message taken for a repetition."""
    prune_backoff_ms: int = 60_000
    unsubscribe_backoff_ms: int = 10_000
    longest_backoff_ms: int = 600_000
    """A peer that asks for more gets this."""
    promise_ms: int = 3_000
    """So long a peer may take to send what it said it has."""

    message_bytes: int = 150 * 1024
    """Longest message."""
    rpc_bytes: int = 1024 * 1024
    """Longest RPC, of the specification."""
    topics_by_peer: int = 256
    """Topics of a peer that are noted."""
    ids_per_heartbeat: int = 5_000
    """Ids of a peer's IHAVE and IWANT that are looked at, each."""
    have_per_heartbeat: int = 10
    """IHAVE of a peer that are looked at."""
    entries_per_heartbeat: int = 1_000
    """Subscriptions, IHAVE, IWANT, GRAFT and PRUNE of a peer, and messages of topics that are not
    subscribed; each hundred beyond is a fault. Honest peers send some ten for each shard."""
    wanted_bytes_per_heartbeat: int = 2 * 1024 * 1024
    """Messages that a peer gets for its IWANT."""
    sendings: int = 3
    """How often a peer gets one message for its IWANT."""
    grafts_per_heartbeat: int = 20
    """GRAFT of a peer that are answered; with more topics of one's own, as many as those."""
    seen_ids: int = 100_000
    """Ids that are known; the oldest are forgotten."""
    cache_bytes: int = 32 * 1024 * 1024
    """Messages that are kept for IWANT; the oldest are forgotten."""
    promises: int = 20_000
    """Messages that were asked for and have not come."""
    promises_by_peer: int = 2_000
    """The same of one peer."""
    queue_bytes: int = 2 * 1024 * 1024
    """What waits for a peer; messages beyond are dropped for it, with `QueueFull`."""
    faults: int = 20
    """Faults of a peer, each halved a minute, after which it is blamed."""

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
