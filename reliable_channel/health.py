"""Health of a channel in one value: `channel.health()`.

`reliable_channel.health_server` serves it over HTTP for probes of a service manager.
"""

from dataclasses import asdict, dataclass
from typing import Any

from .diagnostics import NodeHealth, TopicHealth
from .events import ConnectionStatus

__all__ = ["ChannelHealth"]


@dataclass(frozen=True, slots=True)
class ChannelHealth:
    """Health of a channel at this moment, with reasons."""

    channel_id: str
    sender_id: str
    live: bool
    """True if the tasks of the channel run. Otherwise start the channel again."""
    ready: bool
    """True if the channel can send and receive now. Otherwise wait, because it recovers without
    help."""
    problems: tuple[str, ...] = ()
    """Reason why the channel is not live or not ready."""
    warnings: tuple[str, ...] = ()
    """Degraded parts, and parts that need attention."""
    connection: ConnectionStatus = "disconnected"
    topic: TopicHealth = "unhealthy"
    sync: str = "synced"
    """`synced`, `syncing` or `different`, as in `SyncStatus`."""
    missing: int = 0
    """Messages that are known to exist but have not arrived."""
    lost: int = 0
    unacknowledged: int = 0
    """Own messages that no peer is known to have."""
    waiting_to_be_sent: int = 0
    oldest_waiting_ms: int = 0
    """Age of the oldest own message that waits to be sent (ms)."""
    events_unread: int = 0
    """Events that the slowest reader has not read yet."""
    nodes: tuple[NodeHealth, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the same data as plain values for JSON."""
        return asdict(self)
