"""Diagnostic events of a channel: repair, sync, nodes, transport, the journal and observers.

`channel.events()` emits them beside those of `reliable_channel.events`, which an application needs.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from .sds.events import (
    BloomFilterIgnored,
    LogAgrees,
    LogDiffers,
    MessageMissing,
    MessagePossiblyAcknowledged,
    MessageReconciled,
    MessageRejected,
    ReferencesDropped,
    RejectionReason,
    RepairBudgetReached,
    RepairRequested,
    RepairRequestReceived,
    RepairSent,
    SyncReceived,
    SyncSent,
)

__all__ = [
    "BloomFilterIgnored",
    "Diagnostic",
    "JournalDegraded",
    "LogAgrees",
    "LogDiffers",
    "MessageMissing",
    "MessagePossiblyAcknowledged",
    "MessageReconciled",
    "MessageRejected",
    "NodeHealth",
    "NodeHealthChanged",
    "NodeState",
    "ObserverSetAside",
    "ObserverSlow",
    "PendingEventsDropped",
    "ReaderFellBehind",
    "ReferencesDropped",
    "RejectionReason",
    "RepairBudgetReached",
    "RepairRequestReceived",
    "RepairRequested",
    "RepairSent",
    "SegmentDiscarded",
    "SendingFellBehind",
    "SyncReceived",
    "SyncSent",
    "TopicHealth",
    "TopicHealthChanged",
    "TransportDegraded",
    "TransportRecovered",
]


@dataclass(frozen=True, slots=True)
class SegmentDiscarded:
    """A segment was dropped. The rest of its message may still arrive."""

    wire_name: ClassVar[str] = "segment_discarded"
    sender_id: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class TransportDegraded:
    """Sending, receiving or Store does not work at the moment. No accepted message is lost."""

    wire_name: ClassVar[str] = "transport_degraded"
    component: str
    """Component that fails: `send`, `receive` or `store`."""
    reason: str


@dataclass(frozen=True, slots=True)
class TransportRecovered:
    """A degraded component works again. The channel fetches missed messages."""

    wire_name: ClassVar[str] = "transport_recovered"
    component: str
    outage_ms: int


@dataclass(frozen=True, slots=True)
class JournalDegraded:
    """The journal file cannot be written, as on a full disk. The channel continues without it.

    Every later line is tried again. After the first success, a line `journal_gap` names the missing
    part.
    """

    wire_name: ClassVar[str] = "journal_degraded"
    reason: str


TopicHealth = Literal["sufficiently_healthy", "minimally_healthy", "unhealthy"]


@dataclass(frozen=True, slots=True)
class TopicHealthChanged:
    """The number of nodes that deliver messages of the topic changed its class.

    `sufficiently_healthy`: `redundancy` nodes, or all. `minimally_healthy`: fewer nodes.
    `unhealthy`: no node answers, or the subscription is silent while Store has messages.
    """

    wire_name: ClassVar[str] = "topic_health_changed"
    content_topic: str
    health: TopicHealth


NodeState = Literal["healthy", "failing", "unsubscribed"]


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """State of one of a transport's nodes."""

    address: str
    state: NodeState
    """`healthy`, `failing` (sending or Store fails) or `unsubscribed` (no messages arrive)."""
    last_error: str
    """Last error of the node (empty if there was none)."""
    for_ms: int
    """Duration of the state (ms)."""
    mislabelled: int = 0
    """Messages of the node that were not requested, or had a wrong hash."""
    api: str = ""
    """API in use: `relay`, `filter` (with light push), or `messaging`. Empty without a choice, and
    before the node answers."""

    @property
    def is_away(self) -> bool:
        """True if no message arrives through the node. False before the first subscription."""
        return self.state == "unsubscribed" and bool(self.last_error)


@dataclass(frozen=True, slots=True)
class NodeHealthChanged:
    """The state of one of the channel's nodes changed. The other nodes replace a failing node."""

    wire_name: ClassVar[str] = "node_health_changed"
    address: str
    state: NodeState
    """`healthy`, `failing` (sending or Store fails) or `unsubscribed` (no messages arrive)."""
    reason: str
    """Last error of the node (empty if it is healthy)."""


@dataclass(frozen=True, slots=True)
class ObserverSetAside:
    """A plugin's observer failed. It receives no more events of this channel."""

    wire_name: ClassVar[str] = "observer_set_aside"
    plugin: str
    reason: str


@dataclass(frozen=True, slots=True)
class ObserverSlow:
    """A plugin's observer blocked the channel and its event loop for a second or more.

    Emitted once for each such plugin while the channel is open.
    """

    wire_name: ClassVar[str] = "observer_slow"
    plugin: str
    took_ms: int


@dataclass(frozen=True, slots=True)
class ReaderFellBehind:
    """Readers of `events()` do not read fast enough, or left their loop without being closed.

    The channel and its other readers continue. Emitted again only after such a reader caught up.
    """

    wire_name: ClassVar[str] = "reader_fell_behind"
    readers: int
    unread: int
    """Unread events of the slowest reader."""


@dataclass(frozen=True, slots=True)
class SendingFellBehind:
    """The application sent more than the transport took, for a minute.

    Messages wait in memory, and the next ones wait longer. Send less often, use more or faster
    nodes, or raise the rate limit. Emitted again after each further minute.
    """

    wire_name: ClassVar[str] = "sending_fell_behind"
    waiting: int
    """Messages that wait to be sent."""
    oldest_waiting_ms: int
    """Age of the oldest waiting message (ms)."""


@dataclass(frozen=True, slots=True)
class PendingEventsDropped:
    """Too many messages and reports are unconfirmed (with `state`).

    The oldest of them will not be emitted again after a restart. The messages stay in the log.
    """

    wire_name: ClassVar[str] = "pending_events_dropped"
    count: int


Diagnostic = (
    SegmentDiscarded
    | TransportDegraded
    | TransportRecovered
    | TopicHealthChanged
    | NodeHealthChanged
    | JournalDegraded
    | ObserverSetAside
    | ObserverSlow
    | ReaderFellBehind
    | SendingFellBehind
    | PendingEventsDropped
    | BloomFilterIgnored
    | LogAgrees
    | LogDiffers
    | MessageMissing
    | MessagePossiblyAcknowledged
    | MessageReconciled
    | MessageRejected
    | ReferencesDropped
    | RepairBudgetReached
    | RepairRequestReceived
    | RepairRequested
    | RepairSent
    | SyncReceived
    | SyncSent
)
