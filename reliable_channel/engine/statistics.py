"""Statistics of a channel."""

from dataclasses import dataclass

from ..diagnostics import NodeHealth, TopicHealth
from ..events import ConnectionStatus
from ..sds.statistics import SdsStatistics


@dataclass(slots=True)
class TransportCounters:
    """Transport traffic since the channel was opened."""

    published: int = 0
    publish_failures: int = 0
    received_live: int = 0
    received_from_store: int = 0
    repeated: int = 0
    """Messages that arrived again under a hash that was handled before."""
    foreign: int = 0
    """Messages of the topic without our marker, or that our key does not open. They are dropped
    silently."""
    retrieved: int = 0
    """Messages of Store that were unknown here."""
    repaired: int = 0
    """Messages that were missing here and that another participant sent again."""
    confirmed: int = 0
    """Own messages that Store returned."""
    missed_live: int = 0
    """Messages that never arrived live and were found by polling Store."""
    store_queries: int = 0
    gaps: int = 0
    """Times when the transport reported that messages may have been lost on their way here."""
    outages: int = 0


@dataclass(frozen=True, slots=True)
class ChannelStatistics:
    """Snapshot of a channel's counters and buffers."""

    sds: SdsStatistics
    transport: TransportCounters
    waiting_to_be_sent: int
    """Messages that the transport has not accepted yet."""
    events_dropped: int
    """Events that were evicted before every reader had read them."""
    degraded: tuple[str, ...]
    """Components that fail at the moment, out of `send`, `receive` and `store`."""
    health: ConnectionStatus = "connected"
    """Status of the connection: all components work, some, or none."""
    topic_health: TopicHealth = "sufficiently_healthy"
    """Health of the topic: messages of others arrive through enough nodes, through fewer, or not at
    all."""
    nodes: tuple[NodeHealth, ...] = ()
    """State of each of the nodes."""
    events_unread: int = 0
    """Events that the slowest reader has not read yet."""
