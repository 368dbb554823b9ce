"""Events of a channel that an application needs, and the union of all.

`reliable_channel.diagnostics` has the others. All are frozen dataclasses with a `wire_name`.
`record` returns the form that journals and `peer` write.
"""

from base64 import b64encode
from dataclasses import dataclass, fields
from enum import Enum
from typing import ClassVar, Literal, get_args

from ._message_log import event_html
from .diagnostics import Diagnostic
from .sds.events import (
    AcknowledgementSource,
    DeliveryFailed,
    EphemeralReceived,
    MessageAcknowledged,
    MessageForged,
    MessageLost,
    MessageReceived,
)
from .sds.message import HistoryEntry

__all__ = [
    "AcknowledgementSource",
    "AnswerLate",
    "AnyEvent",
    "ConnectionStatus",
    "ConnectionStatusChanged",
    "DeliveryFailed",
    "EphemeralDropped",
    "EphemeralReceived",
    "Event",
    "EventsMissed",
    "HistoryEntry",
    "MessageAcknowledged",
    "MessageForged",
    "MessageLost",
    "MessageReceived",
    "MessageSent",
    "MessageStored",
    "MessageUndecodable",
    "ParticipantSeen",
    "ParticipantSilent",
    "PayloadDropped",
    "QuestionDropped",
    "RateLimitReached",
    "ReceiveProgress",
    "SendFailed",
    "SendProgress",
    "SendingMessage",
    "StateDegraded",
    "StateRecovered",
    "StateRolledBack",
    "record",
]


@dataclass(frozen=True, slots=True)
class SendingMessage:
    """An own message was accepted. From now on it is delivered, or an event reports its failure."""

    wire_name: ClassVar[str] = "sending_message"
    message_id: str
    request_id: str


@dataclass(frozen=True, slots=True)
class MessageSent:
    """An own message was published. No peer is known to have it yet."""

    wire_name: ClassVar[str] = "message_sent"
    message_id: str
    request_id: str
    message_hash: bytes
    """Waku message hash and retrieval hint (of several segments, that of the last one)."""
    message_ids: tuple[str, ...] = ()
    """Ids of all segments. The first id names the message in other events."""


@dataclass(frozen=True, slots=True)
class MessageStored:
    """Store returned an own message, so participants that join later can fetch it.

    Emitted once for each message, and for each segment of a long one.
    """

    wire_name: ClassVar[str] = "message_stored"
    message_id: str
    message_hash: bytes


@dataclass(frozen=True, slots=True)
class SendProgress:
    """A further segment of an own long message was published or acknowledged."""

    wire_name: ClassVar[str] = "send_progress"
    message_id: str
    request_id: str
    state: str
    """Progress of the segment: `sent` or `acknowledged`."""
    chunks: int
    total_chunks: int


@dataclass(frozen=True, slots=True)
class ReceiveProgress:
    """A further segment of a peer's long message arrived."""

    wire_name: ClassVar[str] = "receive_progress"
    sender_id: str
    payload_hash: bytes
    """Keccak-256 of the whole payload."""
    chunks: int
    total_chunks: int


@dataclass(frozen=True, slots=True)
class PayloadDropped:
    """A peer's long message was dropped before all of its segments arrived."""

    wire_name: ClassVar[str] = "payload_dropped"
    sender_id: str
    payload_hash: bytes
    reason: str
    """Reason for the drop: `expired`, `evicted`, `hash_mismatch` or `malformed`."""
    chunks: int
    total_chunks: int


@dataclass(frozen=True, slots=True)
class SendFailed:
    """The transport refused a message permanently, or you cancelled it. The message is not sent
    again.

    The message stays in the log. Later messages refer to it, and peers that request it receive it.
    """

    wire_name: ClassVar[str] = "send_failed"
    message_id: str
    request_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class RateLimitReached:
    """The rate limit of this epoch is spent, except for a reserve.

    Waiting messages are sent when the epoch ends. Emitted once an epoch. `channel.explain_budget()`
    returns details.
    """

    wire_name: ClassVar[str] = "rate_limit_reached"
    epoch_ends_at_ms: int
    waiting: int
    """Messages that wait for the next epoch."""


@dataclass(frozen=True, slots=True)
class EphemeralDropped:
    """An ephemeral message was dropped, to save the rate limit for other messages."""

    wire_name: ClassVar[str] = "ephemeral_dropped"
    message_id: str
    reason: str
    """Reason for the drop: `rate_limit_approached` or `rate_limit_reached`."""


@dataclass(frozen=True, slots=True)
class StateDegraded:
    """The channel's state cannot be written. The channel continues in memory.

    Data at risk is lost if the process ends before the state can be written again.
    """

    wire_name: ClassVar[str] = "state_degraded"
    reason: str
    at_risk: int
    """Messages and rows of state that are not written yet."""
    retryable: bool
    """True if the write is retried. A damaged file is not written any more."""


@dataclass(frozen=True, slots=True)
class StateRecovered:
    """The channel's state is written again, including all data at risk."""

    wire_name: ClassVar[str] = "state_recovered"
    outage_ms: int
    given_up: int
    """Log entries that were evicted from memory in the meantime and never written."""


@dataclass(frozen=True, slots=True)
class StateRolledBack:
    """The channel's state lacks data that was written to it.

    The channel starts from the existing data. Missing idempotency keys and confirmations are
    forgotten.
    """

    wire_name: ClassVar[str] = "state_rolled_back"
    reason: str
    """File concerned, and the probable cause."""
    missing_writes: int | None
    """Number of missing transactions (None if unknown)."""


ConnectionStatus = Literal["connected", "partially_connected", "disconnected"]


@dataclass(frozen=True, slots=True)
class ConnectionStatusChanged:
    """The status of the connection changed.

    `connected`: sending, receiving and Store work. `partially_connected`: some of them work.
    `disconnected`: none works."""

    wire_name: ClassVar[str] = "connection_status_changed"
    status: ConnectionStatus


@dataclass(frozen=True, slots=True)
class EventsMissed:
    """This reader fell behind and misses some events.

    Messages and reports follow, up to the newest 100,000. Emitted only to that reader, at most once
    each time it falls behind.
    """

    wire_name: ClassVar[str] = "events_missed"
    count: int
    messages: int
    """Missed messages and reports. More than 0 only if the reader is 100,000 of them behind: then
    read `channel.log()`, or start again with `channel.follow()`."""


@dataclass(frozen=True, slots=True)
class AnswerLate:
    """An answer to an own question arrived after its `ask` had ended, or in a later run."""

    wire_name: ClassVar[str] = "answer_late"
    message_id: str
    sender_id: str
    question_id: bytes
    content: bytes
    """Bytes that the answer contains."""


@dataclass(frozen=True, slots=True)
class QuestionDropped:
    """A question was dropped, because too many wait for an answer. With `state` it is emitted again
    after a restart."""

    wire_name: ClassVar[str] = "question_dropped"
    message_id: str
    sender_id: str


@dataclass(frozen=True, slots=True)
class MessageUndecodable:
    """The codec of a typed channel cannot decode a message, or its envelope is unreadable."""

    wire_name: ClassVar[str] = "message_undecodable"
    message_id: str
    sender_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class ParticipantSeen:
    """A participant was heard for the first time, or again after a silence."""

    wire_name: ClassVar[str] = "participant_seen"
    sender_id: str
    heard_by: str
    """Kind of message: `message`, `ephemeral`, `sync`, `repair_request` or `reconciliation`."""


@dataclass(frozen=True, slots=True)
class ParticipantSilent:
    """A participant was not heard for so long that it is probably away.

    The threshold is seven times the mean interval between sync messages of a participant.
    """

    wire_name: ClassVar[str] = "participant_silent"
    sender_id: str
    silent_for_ms: int


Event = (
    MessageReceived
    | EphemeralReceived
    | ReceiveProgress
    | PayloadDropped
    | MessageLost
    | MessageForged
    | SendingMessage
    | MessageSent
    | MessageStored
    | SendProgress
    | MessageAcknowledged
    | DeliveryFailed
    | SendFailed
    | EphemeralDropped
    | RateLimitReached
    | ConnectionStatusChanged
    | StateDegraded
    | StateRecovered
    | StateRolledBack
    | EventsMissed
    | AnswerLate
    | QuestionDropped
    | MessageUndecodable
    | ParticipantSeen
    | ParticipantSilent
)
"""Events that an application needs."""
AnyEvent = Event | Diagnostic
"""Union of all events that a channel emits."""

_HEX_FIELDS = frozenset({"message_hash", "payload_hash", "question_id", "retrieval_hint"})


for _kind in get_args(AnyEvent):
    _kind._repr_html_ = event_html


def record(event: AnyEvent, at_ms: int) -> dict[str, object]:
    """Return the JSON form of an event: content as base64 under `payload`, hashes as hex."""
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
