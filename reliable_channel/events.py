"""The events of a channel: those of the core, and the few that the transport causes.

All are frozen dataclasses with a `wire_name`; `record` gives the form that journals and `peer`
write.
"""

from base64 import b64encode
from dataclasses import dataclass, fields
from enum import Enum
from typing import ClassVar, Literal

from .sds.events import (
    AcknowledgementSource,
    BloomFilterIgnored,
    DeliveryFailed,
    EphemeralReceived,
    LogAgrees,
    LogDiffers,
    MessageAcknowledged,
    MessageForged,
    MessageLost,
    MessageMissing,
    MessagePossiblyAcknowledged,
    MessageReceived,
    MessageRejected,
    ReferencesDropped,
    RejectionReason,
    RepairBudgetReached,
    RepairRequested,
    RepairRequestReceived,
    RepairSent,
    SdsEvent,
    SyncReceived,
    SyncSent,
)
from .sds.message import HistoryEntry

__all__ = [
    "AcknowledgementSource",
    "BloomFilterIgnored",
    "ConnectionStatus",
    "ConnectionStatusChanged",
    "DeliveryFailed",
    "EphemeralDropped",
    "EphemeralReceived",
    "Event",
    "EventsMissed",
    "HistoryEntry",
    "LogAgrees",
    "LogDiffers",
    "MessageAcknowledged",
    "MessageForged",
    "MessageLost",
    "MessageMissing",
    "MessagePossiblyAcknowledged",
    "MessageReceived",
    "MessageRejected",
    "MessageSent",
    "MessageStored",
    "NodeHealth",
    "NodeHealthChanged",
    "NodeState",
    "ObserverSetAside",
    "ObserverSlow",
    "PayloadDropped",
    "RateLimitReached",
    "ReaderFellBehind",
    "ReceiveProgress",
    "ReferencesDropped",
    "RejectionReason",
    "RepairBudgetReached",
    "RepairRequestReceived",
    "RepairRequested",
    "RepairSent",
    "SegmentDiscarded",
    "SendFailed",
    "SendProgress",
    "SendingMessage",
    "StateDegraded",
    "StateRecovered",
    "StateRolledBack",
    "SyncReceived",
    "SyncSent",
    "TopicHealth",
    "TopicHealthChanged",
    "TransportDegraded",
    "TransportRecovered",
    "UnconfirmedDropped",
    "record",
]


@dataclass(frozen=True, slots=True)
class SendingMessage:
    """A message was accepted: from now on it is delivered, or its failure is an event."""

    wire_name: ClassVar[str] = "sending_message"
    message_id: str
    request_id: str


@dataclass(frozen=True, slots=True)
class MessageSent:
    """A message is out on the network. That says nothing about who has it."""

    wire_name: ClassVar[str] = "message_sent"
    message_id: str
    request_id: str
    message_hash: bytes
    """The Waku message hash, its retrieval hint; of several segments, that of the last to go
    out."""
    message_ids: tuple[str, ...] = ()
    """The ids of all segments; the first one names the message in other events."""


@dataclass(frozen=True, slots=True)
class MessageStored:
    """Store has an own message: whoever comes later can fetch it. Told once a message; of several
    segments, for each."""

    wire_name: ClassVar[str] = "message_stored"
    message_id: str
    message_hash: bytes


@dataclass(frozen=True, slots=True)
class SendProgress:
    """One more segment of a long message is out, or acknowledged."""

    wire_name: ClassVar[str] = "send_progress"
    message_id: str
    request_id: str
    state: str
    """`sent` or `acknowledged`."""
    chunks: int
    total_chunks: int


@dataclass(frozen=True, slots=True)
class ReceiveProgress:
    """One more segment of somebody's long message is here."""

    wire_name: ClassVar[str] = "receive_progress"
    sender_id: str
    payload_hash: bytes
    """Keccak-256 of the whole payload."""
    chunks: int
    total_chunks: int


@dataclass(frozen=True, slots=True)
class PayloadDropped:
    """A long message of somebody will not be put together."""

    wire_name: ClassVar[str] = "payload_dropped"
    sender_id: str
    payload_hash: bytes
    reason: str
    """`expired`, `evicted`, `hash_mismatch` or `malformed`."""
    chunks: int
    total_chunks: int


@dataclass(frozen=True, slots=True)
class SegmentDiscarded:
    """A segment does not count; the rest of its message may still come."""

    wire_name: ClassVar[str] = "segment_discarded"
    sender_id: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class SendFailed:
    """The transport refused a message for good: it is not sent again by itself.

    It stays in the log. Later messages refer to it, and who then asks for it is given it.
    """

    wire_name: ClassVar[str] = "send_failed"
    message_id: str
    request_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class RateLimitReached:
    """The budget of this epoch is spent, but for a reserve; what waits goes when the epoch ends.

    Told once an epoch; `channel.explain_budget()` says more.
    """

    wire_name: ClassVar[str] = "rate_limit_reached"
    epoch_ends_at_ms: int
    waiting: int
    """Messages that wait."""


@dataclass(frozen=True, slots=True)
class EphemeralDropped:
    """An ephemeral message was not sent, to spare the budget for those that matter."""

    wire_name: ClassVar[str] = "ephemeral_dropped"
    message_id: str
    reason: str
    """`rate_limit_approached` or `rate_limit_reached`."""


@dataclass(frozen=True, slots=True)
class TransportDegraded:
    """Sending, receiving or Store does not work at the moment. Nothing that was accepted is lost by
    that."""

    wire_name: ClassVar[str] = "transport_degraded"
    component: str
    """`send`, `receive` or `store`."""
    reason: str


@dataclass(frozen=True, slots=True)
class TransportRecovered:
    """What was degraded works again; what was missed meanwhile is being fetched."""

    wire_name: ClassVar[str] = "transport_recovered"
    component: str
    outage_ms: int


@dataclass(frozen=True, slots=True)
class StateDegraded:
    """The channel's state cannot be written. The channel goes on in memory: what is at risk is lost
    if the process ends before the state can be written again."""

    wire_name: ClassVar[str] = "state_degraded"
    reason: str
    at_risk: int
    """Messages and rows of state that were not written when this was told."""
    retryable: bool
    """Whether writing is tried again; a damaged file is left alone."""


@dataclass(frozen=True, slots=True)
class StateRecovered:
    """The channel's state is written again, with all that was at risk."""

    wire_name: ClassVar[str] = "state_recovered"
    outage_ms: int
    given_up: int
    """Log entries that had to make room in memory meanwhile, and were not written."""


@dataclass(frozen=True, slots=True)
class StateRolledBack:
    """The channel's state is older than what was written to it. The channel starts from what is
    there: idempotency keys and confirmations that are missing from it are forgotten."""

    wire_name: ClassVar[str] = "state_rolled_back"
    reason: str
    """Which file, and what may have happened to it."""
    missing_writes: int | None
    """Transactions that are missing; None where that is not known."""


ConnectionStatus = Literal["connected", "partially_connected", "disconnected"]


@dataclass(frozen=True, slots=True)
class ConnectionStatusChanged:
    """All of sending, receiving and Store work (`connected`), or some, or none."""

    wire_name: ClassVar[str] = "connection_status_changed"
    status: ConnectionStatus


TopicHealth = Literal["sufficiently_healthy", "minimally_healthy", "unhealthy"]


@dataclass(frozen=True, slots=True)
class TopicHealthChanged:
    """What others send on the topic arrives through enough nodes (`sufficiently_healthy`), through
    fewer than `redundancy` asks for and than there are (`minimally_healthy`), or not at all
    (`unhealthy`): no node answers, or the subscription is silent while Store has messages."""

    wire_name: ClassVar[str] = "topic_health_changed"
    content_topic: str
    health: TopicHealth


NodeState = Literal["healthy", "failing", "unsubscribed"]


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """How one of a transport's nodes does."""

    address: str
    state: NodeState
    """`healthy`; `failing` at sending or Store; `unsubscribed`, so that nothing arrives."""
    last_error: str
    """Empty where nothing went wrong so far."""
    for_ms: int
    """How long the state has lasted."""
    mislabelled: int = 0
    """Messages it gave that were not what was asked for, or not under their own hash."""

    @property
    def is_away(self) -> bool:
        """Whether nothing arrives through it; one that was not tried yet may still answer."""
        return self.state == "unsubscribed" and bool(self.last_error)


@dataclass(frozen=True, slots=True)
class NodeHealthChanged:
    """One of the channel's nodes does worse or better; the others stand in for it meanwhile."""

    wire_name: ClassVar[str] = "node_health_changed"
    address: str
    state: NodeState
    """`healthy`; `failing` at sending or Store; `unsubscribed`, so that nothing arrives through
    it."""
    reason: str
    """What it answered last; empty where it is healthy."""


@dataclass(frozen=True, slots=True)
class ObserverSetAside:
    """A plugin that observes events failed, and is told none of this channel any more."""

    wire_name: ClassVar[str] = "observer_set_aside"
    plugin: str
    reason: str


@dataclass(frozen=True, slots=True)
class ObserverSlow:
    """A plugin that observes events held up the channel, and everything else in its event loop, for
    a second or more. Told once for each such plugin while the channel is open."""

    wire_name: ClassVar[str] = "observer_slow"
    plugin: str
    took_ms: int


@dataclass(frozen=True, slots=True)
class EventsMissed:
    """This reader fell behind and does not get some events; messages and reports follow all the
    same, up to the newest 100,000. Emitted to that reader alone, at most once each time it falls
    behind."""

    wire_name: ClassVar[str] = "events_missed"
    count: int
    messages: int
    """Messages and reports among them. 0 unless the reader is more than 100,000 of them behind:
    then read `channel.log()`, or start again with `channel.follow()`."""


@dataclass(frozen=True, slots=True)
class ReaderFellBehind:
    """Readers of `events()` do not read fast enough, or left their loop without being closed.

    The channel and its other readers go on. Emitted again only after such a reader has caught up.
    """

    wire_name: ClassVar[str] = "reader_fell_behind"
    readers: int
    unread: int
    """Events that the slowest of them has not read."""


@dataclass(frozen=True, slots=True)
class UnconfirmedDropped:
    """With `state`: so many messages and reports are unconfirmed that the oldest of them will not
    be emitted again after a restart. The messages stay in the log."""

    wire_name: ClassVar[str] = "unconfirmed_dropped"
    count: int


Event = (
    SdsEvent
    | SendingMessage
    | MessageSent
    | MessageStored
    | SendProgress
    | SendFailed
    | ReceiveProgress
    | PayloadDropped
    | SegmentDiscarded
    | RateLimitReached
    | EphemeralDropped
    | TransportDegraded
    | TransportRecovered
    | ConnectionStatusChanged
    | TopicHealthChanged
    | NodeHealthChanged
    | StateDegraded
    | StateRecovered
    | StateRolledBack
    | ObserverSetAside
    | ObserverSlow
    | EventsMissed
    | ReaderFellBehind
    | UnconfirmedDropped
)

_HEX_FIELDS = frozenset({"message_hash", "payload_hash", "retrieval_hint"})


def record(event: Event, at_ms: int) -> dict[str, object]:
    """The JSON form of an event: content as base64 under `payload`, hashes as hex, the rest by its
    own name."""
    values: dict[str, object] = {"event": event.wire_name, "at_ms": at_ms}
    for field in fields(event):
        value = getattr(event, field.name)
        if field.name == "content":
            values["payload"] = b64encode(value).decode()
        else:
            values[field.name] = _plain(value, field.name)
    return values


def _plain(value: object, name: str) -> object:
    if isinstance(value, bytes):
        return value.hex() if name in _HEX_FIELDS else b64encode(value).decode()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, HistoryEntry):
        return {f.name: _plain(getattr(value, f.name), f.name) for f in fields(value)}
    if isinstance(value, tuple):
        return [_plain(item, name) for item in value]
    return value
