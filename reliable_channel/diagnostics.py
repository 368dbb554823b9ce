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
    "SyncReceived",
    "SyncSent",
    "TopicHealth",
    "TopicHealthChanged",
    "TransportDegraded",
    "TransportRecovered",
]


@dataclass(frozen=True, slots=True)
class SegmentDiscarded:
    """A segment was dropped; the rest of its message may still arrive."""

    wire_name: ClassVar[str] = "segment_discarded"
    sender_id: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class TransportDegraded:
    """Sending, receiving or Store does not work at the moment. No accepted message is lost."""

    wire_name: ClassVar[str] = "transport_degraded"
    component: str
    """`send`, `receive` or `store`."""
    reason: str


@dataclass(frozen=True, slots=True)
class TransportRecovered:
    """A degraded component works again; missed messages are being fetched."""

    wire_name: ClassVar[str] = "transport_recovered"
    component: str
    outage_ms: int


@dataclass(frozen=True, slots=True)
class JournalDegraded:
    """The journal file cannot be written, as on a full disk; the channel goes on without it.

    Every later line is tried again. Once one is written, a line `journal_gap` before it names what
    the journal lacks.
    """

    wire_name: ClassVar[str] = "journal_degraded"
    reason: str


TopicHealth = Literal["sufficiently_healthy", "minimally_healthy", "unhealthy"]


@dataclass(frozen=True, slots=True)
class TopicHealthChanged:
    """The number of nodes through which messages of the topic arrive has changed its class.

    `sufficiently_healthy`: through `redundancy` nodes or all; `minimally_healthy`: through fewer;
    `unhealthy`: through none, because no node answers, or the subscription is silent while Store
    has messages.
    """

    wire_name: ClassVar[str] = "topic_health_changed"
    content_topic: str
    health: TopicHealth


NodeState = Literal["healthy", "failing", "unsubscribed"]


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """The state of one of a transport's nodes."""

    address: str
    state: NodeState
    """`healthy`; `failing` at sending or Store; `unsubscribed`, so that nothing arrives."""
    last_error: str
    """Empty if there was none."""
    for_ms: int
    """How long the state has lasted."""
    mislabelled: int = 0
    """Messages from it that were not requested, or not under their hash."""
    api: str = ""
    """The API through which it is used: `relay`, `filter` (with light push), or `messaging`; empty
    where there is no choice, and before the node answers."""

    @property
    def is_away(self) -> bool:
        """Whether nothing arrives through it; a node that was not tried yet is not away."""
        return self.state == "unsubscribed" and bool(self.last_error)


@dataclass(frozen=True, slots=True)
class NodeHealthChanged:
    """The state of one of the channel's nodes changed; the other nodes replace a failing one."""

    wire_name: ClassVar[str] = "node_health_changed"
    address: str
    state: NodeState
    """`healthy`; `failing` at sending or Store; `unsubscribed`, so that nothing arrives through
    it."""
    reason: str
    """Its last error; empty if it is healthy."""


@dataclass(frozen=True, slots=True)
class ObserverSetAside:
    """A plugin's observer failed; it gets no more events of this channel."""

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
    """Events that the slowest of them has not read."""


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
