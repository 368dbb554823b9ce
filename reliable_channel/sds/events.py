"""The events that the core emits, and the messages that it broadcasts.

Each event has a `wire_name`, its name in journals and in the `peer` command.
"""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final

from .draft import Draft, SavedDraft
from .fast_dataclass import value
from .message import HistoryEntry


class OutgoingKind(Enum):
    """Why a message is broadcast. On a busy transport content goes first, and the other kinds take
    turns, in this order."""

    CONTENT = "content"
    SYNC = "sync"
    """A sync message that replaces earlier sync messages, because it repeats their whole content.
    The message stops retries of peers, so it must not wait behind all own messages.
    """
    CONTROL = "control"
    """A sync message that does not replace earlier sync messages."""
    RETRY = "retry"
    REPAIR = "repair"
    EPHEMERAL = "ephemeral"

    __hash__ = object.__hash__  # the one of Enum hashes the name, in Python

    @property
    def is_of_the_moment(self) -> bool:
        """True if a Store node need not keep the message."""
        return self in _OF_THE_MOMENT


_OF_THE_MOMENT: Final = (OutgoingKind.CONTROL, OutgoingKind.SYNC, OutgoingKind.EPHEMERAL)


@value
class Outgoing:
    """Bytes to broadcast. After `CONTENT` and `RETRY` the owner calls `dispatched`."""

    kind: OutgoingKind
    message_id: str
    data: bytes
    """Empty if `draft` is set."""
    timestamp_ns: int | None = None
    """Time in the id of a new message, with which peers check the id."""
    is_redundant: bool = False
    """True if the message may be dropped under a rate limit: an extra copy, or a sync without
    requests."""
    draft: Draft | SavedDraft | None = None
    """Own message that its `maker` encodes when the owner sends the message."""


class AcknowledgementSource(Enum):
    """Evidence for an acknowledgement: a causal history or bloom filters."""

    CAUSAL_HISTORY = "causal_history"
    """A proof: another participant's causal history lists the message."""
    BLOOM_FILTER = "bloom_filter"
    """Evidence: the bloom filters of `possible_acks_threshold` participants contain the message."""


class RejectionReason(Enum):
    """Reason for the rejection of a received message."""

    MALFORMED = "malformed"
    OTHER_DIALECT = "other_dialect"
    """The message is in a dialect that this participant does not read."""
    WRONG_CHANNEL = "wrong_channel"
    MISSING_ID = "missing_id"
    LAMPORT_TOO_FAR_AHEAD = "lamport_too_far_ahead"
    ID_ALREADY_USED = "id_already_used"
    OLDER_THAN_LOG = "older_than_log"
    UNDECRYPTABLE = "undecryptable"
    """The content fails to decrypt: another key, or forged."""
    UNPROVEN_SENDER = "unproven_sender"
    """This participant requires signatures, and the message has no valid one."""
    INCOMING_BUFFER_FULL = "incoming_buffer_full"
    FORGED_ID = "forged_id"
    """The parked message was forged: the true message with this id has arrived."""
    EXCESSIVE_REFERENCES = "excessive_references"
    """The message refers to more messages, requests more messages or has longer ids than any honest
    message."""


@dataclass(frozen=True, slots=True)
class MessagePossiblyAcknowledged:
    """A further participant sent a bloom filter that contains an own message."""

    wire_name: ClassVar[str] = "message_possibly_acknowledged"
    message_id: str
    possible_ack_count: int
    """Number of participants so far, by their bloom filters."""


@dataclass(frozen=True, slots=True)
class MessageAcknowledged:
    """At least one other participant received an own message. The channel does not send the message
    again."""

    wire_name: ClassVar[str] = "message_acknowledged"
    message_id: str
    source: AcknowledgementSource
    acknowledged_by: str
    """Sender of the acknowledging message."""
    participant_count: int = 1
    """Participants that have the message, or probably have it by their bloom filters."""


@dataclass(frozen=True, slots=True)
class DeliveryFailed:
    """An own message was not acknowledged after all retries. The channel does not send the message
    again. Perhaps no participant received the message.
    """

    wire_name: ClassVar[str] = "delivery_failed"
    message_id: str
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """A message is delivered, after its dependencies were delivered or lost.

    Each message is delivered once.
    """

    wire_name: ClassVar[str] = "message_received"
    message_id: str
    sender_id: str
    content: bytes
    lamport_timestamp: int
    position: int
    """Index in the log, from 0. Not the last index if later messages arrived first."""
    missing: tuple[HistoryEntry, ...] = ()
    """Dependencies that were lost at the time of delivery."""
    retrieval_hint: bytes | None = None
    redelivered: bool = False
    """True if the event may have been emitted before a restart and was not confirmed."""


@dataclass(frozen=True, slots=True)
class MessageMissing:
    """Messages are missing: they are known by reference only, and other messages depend on them."""

    wire_name: ClassVar[str] = "message_missing"
    missing: tuple[HistoryEntry, ...]
    carrier_id: str = ""
    """Message that refers to the missing ones."""
    referrer_id: str = ""
    """Sender of the referring message."""


@dataclass(frozen=True, slots=True)
class MessageLost:
    """A missing message was not found in time. Messages that depend on the missing message are
    delivered without it. A missing message that arrives later is still delivered.
    """

    wire_name: ClassVar[str] = "message_lost"
    message_id: str
    sender_id: str | None
    retrieval_hint: bytes | None
    reason: str


@dataclass(frozen=True, slots=True)
class ReferencesDropped:
    """References to unknown messages were dropped because of a limit.

    These messages are not searched until another message refers to them. A step emits one event for
    each sender.
    """

    wire_name: ClassVar[str] = "references_dropped"
    sender_id: str
    """Sender of the referring messages."""
    count: int
    reason: str


@dataclass(frozen=True, slots=True)
class MessageRejected:
    """A received message was rejected and changed nothing."""

    wire_name: ClassVar[str] = "message_rejected"
    reason: RejectionReason
    detail: str
    message_id: str = ""
    sender_id: str = ""
    """Sender of the message, or of its bundle if it cannot be read."""


@dataclass(frozen=True, slots=True)
class MessageForged:
    """A delivered message was forged: it used the id of another message. The true message replaces
    the forged message in the log and is delivered next. Undo the effects of the forged message in
    your application.
    """

    wire_name: ClassVar[str] = "message_forged"
    message_id: str
    sender_id: str
    """Sender that the forged message named. Its author is unknown."""
    content: bytes
    """Content of the forged message."""


@dataclass(frozen=True, slots=True)
class BloomFilterIgnored:
    """A participant's bloom filter cannot be used as an acknowledgement. Its message is accepted.

    Emitted once for each participant.
    """

    wire_name: ClassVar[str] = "bloom_filter_ignored"
    sender_id: str
    detail: str


@dataclass(frozen=True, slots=True)
class EphemeralReceived:
    """An ephemeral message arrived: not ordered, not sent again, not logged."""

    wire_name: ClassVar[str] = "ephemeral_received"
    message_id: str
    sender_id: str
    content: bytes


@dataclass(frozen=True, slots=True)
class SyncSent:
    """A sync message was broadcast."""

    wire_name: ClassVar[str] = "sync_sent"
    message_id: str


@dataclass(frozen=True, slots=True)
class SyncReceived:
    """A sync message of another participant was reviewed."""

    wire_name: ClassVar[str] = "sync_received"
    message_id: str
    sender_id: str


@dataclass(frozen=True, slots=True)
class RepairRequested:
    """Missing messages were requested from peers."""

    wire_name: ClassVar[str] = "repair_requested"
    message_ids: tuple[str, ...]
    carrier_id: str
    """Message that carries the request."""


@dataclass(frozen=True, slots=True)
class RepairRequestReceived:
    """A repair request of another participant arrived."""

    wire_name: ClassVar[str] = "repair_request_received"
    message_ids: tuple[str, ...]
    sender_id: str


@dataclass(frozen=True, slots=True)
class RepairBudgetReached:
    """A participant requests, or broadcasts in bundles, more messages than its budget allows.

    Requests stay unanswered, and may be sent again. Messages of bundles are dropped, and may be
    broadcast again. Emitted once a minute for each participant. If honest participants need more,
    raise `repair.requester_answers_per_minute` and related options.
    """

    wire_name: ClassVar[str] = "repair_budget_reached"
    message_ids: tuple[str, ...]
    """Requested messages (empty for a bundle, which is not read)."""
    sender_id: str
    """Requester, or sender of the bundle."""
    in_all: bool
    """True if all participants together reached the common limit."""


@dataclass(frozen=True, slots=True)
class RepairSent:
    """A message was broadcast again because peers requested it."""

    wire_name: ClassVar[str] = "repair_sent"
    message_id: str


@dataclass(frozen=True, slots=True)
class MessageReconciled:
    """Another participant broadcast a message to repair a difference of logs, and this participant
    lacked the message. The message is delivered like any other (`MessageReceived`).
    """

    wire_name: ClassVar[str] = "message_reconciled"
    message_id: str
    sender_id: str
    """Participant that broadcast the message, which may have another author."""


@dataclass(frozen=True, slots=True)
class LogDiffers:
    """Another participant's log differs from this one permanently.

    One of the logs lacks messages to which no new message refers. Emitted once until the logs of
    all participants agree again (`LogAgrees`). Until then the sync status is `different`. Logs are
    compared without their newest five minutes.
    """

    wire_name: ClassVar[str] = "log_differs"
    sender_id: str
    """Participant with the other log."""
    since_ms: int
    """First Lamport timestamp of the range in which the logs differ."""
    until_ms: int
    """First Lamport timestamp after the range."""
    count_here: int
    """Number of messages that this log has in the range."""
    count_there: int
    """Number of messages that the other log has in the range."""


@dataclass(frozen=True, slots=True)
class LogAgrees:
    """Logs that differed are equal now, or their participants were silent for an hour."""

    wire_name: ClassVar[str] = "log_agrees"


SdsEvent = (
    MessagePossiblyAcknowledged
    | MessageAcknowledged
    | DeliveryFailed
    | MessageReceived
    | MessageMissing
    | MessageLost
    | ReferencesDropped
    | MessageRejected
    | MessageForged
    | BloomFilterIgnored
    | EphemeralReceived
    | SyncSent
    | SyncReceived
    | RepairRequested
    | RepairRequestReceived
    | RepairBudgetReached
    | RepairSent
    | MessageReconciled
    | LogDiffers
    | LogAgrees
)
