"""Health of a channel in one value, the result of `channel.health()`.

`reliable_channel.health_server` serves the health over HTTP for probes of a service manager.
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
    """True if the tasks of the channel are running. If False, start the channel again."""
    ready: bool
    """True if the channel can send and receive now. If False, wait, because the channel recovers
    without help."""
    problems: tuple[str, ...] = ()
    """Reasons why the channel is not live or not ready."""
    warnings: tuple[str, ...] = ()
    """Texts about parts of the channel that are degraded or need attention."""
    connection: ConnectionStatus = "disconnected"
    topic: TopicHealth = "unhealthy"
    sync: str = "synced"
    """State of the sync status, out of `synced`, `syncing` and `different`."""
    missing: int = 0
    """Number of messages that are known to exist but have not arrived."""
    lost: int = 0
    unacknowledged: int = 0
    """Number of own messages that no other participant is known to have received."""
    waiting_to_be_sent: int = 0
    oldest_waiting_ms: int = 0
    """Age of the oldest own message that waits to be sent (ms)."""
    events_unread: int = 0
    """Number of events that the slowest reader has not read yet."""
    nodes: tuple[NodeHealth, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the health as plain values for JSON."""
        return asdict(self)
