"""Statistics of a channel."""

from dataclasses import dataclass

from ..diagnostics import NodeHealth, TopicHealth
from ..events import ConnectionStatus
from ..sds.statistics import SdsStatistics


@dataclass(slots=True)
class TransportCounters:
    """Counters of transport traffic since the channel was opened."""

    published: int = 0
    publish_failures: int = 0
    received_live: int = 0
    received_from_store: int = 0
    repeated: int = 0
    """Number of messages that arrived again with a hash that was handled before."""
    foreign: int = 0
    """Number of messages of the topic without the channel's marker, or not readable with its key.
    Messages with another marker or key are dropped silently."""
    retrieved: int = 0
    """Number of messages from Store that were unknown to this participant."""
    repaired: int = 0
    """Number of missing messages that another participant sent again."""
    confirmed: int = 0
    """Number of own messages that Store returned."""
    missed_live: int = 0
    """Number of messages that never arrived live and were found in Store."""
    store_queries: int = 0
    gaps: int = 0
    """Number of times that the transport reported a possible loss of received messages."""
    outages: int = 0


@dataclass(frozen=True, slots=True)
class ChannelStatistics:
    """Snapshot of a channel's counters and buffer sizes."""

    sds: SdsStatistics
    transport: TransportCounters
    waiting_to_be_sent: int
    """Number of messages that the transport has not accepted yet."""
    events_dropped: int
    """Number of events that were evicted before every reader had read them."""
    degraded: tuple[str, ...]
    """Components that fail now, out of `send`, `receive` and `store`."""
    health: ConnectionStatus = "connected"
    """Status of the connection, which tells if all components work, or some, or none."""
    topic_health: TopicHealth = "sufficiently_healthy"
    """Health of the topic, by the number of nodes through which messages of others arrive."""
    nodes: tuple[NodeHealth, ...] = ()
    """Health of each node that the transport uses."""
    events_unread: int = 0
    """Number of events that the slowest reader has not read yet."""
