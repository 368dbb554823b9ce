"""A channel's figures."""

from dataclasses import dataclass

from ..diagnostics import NodeHealth, TopicHealth
from ..events import ConnectionStatus
from ..sds.statistics import SdsStatistics


@dataclass(slots=True)
class TransportCounters:
    """What went over the transport since the channel was opened."""

    published: int = 0
    publish_failures: int = 0
    received_live: int = 0
    received_from_store: int = 0
    repeated: int = 0
    """Messages that came again under a hash that was handled before."""
    foreign: int = 0
    """Messages of the topic without our marker, or that our key does not open; dropped silently."""
    retrieved: int = 0
    """Messages that Store had and that were not known here."""
    repaired: int = 0
    """Messages that were missing here and that another participant sent again."""
    confirmed: int = 0
    """Own messages that Store was seen to have."""
    missed_live: int = 0
    """Messages that Store had and that never came, found by looking there from time to time."""
    store_queries: int = 0
    gaps: int = 0
    """Times when the transport hinted that messages may have been lost on its way here."""
    outages: int = 0


@dataclass(frozen=True, slots=True)
class ChannelStatistics:
    """A snapshot of a channel."""

    sds: SdsStatistics
    transport: TransportCounters
    waiting_to_be_sent: int
    """Messages that the transport has not taken yet."""
    events_dropped: int
    """Events that made room before every reader had read them, or any."""
    degraded: tuple[str, ...]
    """Which of `send`, `receive` and `store` do not work at the moment."""
    health: ConnectionStatus = "connected"
    """True if all of these work, some, or none."""
    topic_health: TopicHealth = "sufficiently_healthy"
    """True if what others send arrives through enough nodes, through fewer, or not at all."""
    nodes: tuple[NodeHealth, ...] = ()
    """How each node does."""
    events_unread: int = 0
    """Events that the slowest reader has not read yet."""
