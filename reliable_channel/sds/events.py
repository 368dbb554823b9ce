"""What the core tells its owner, and what it wants broadcast.

Each event has a `wire_name`: how journals and the `peer` command call it.
"""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final

from .message import HistoryEntry


class OutgoingKind(Enum):
    """Why something is broadcast; also the order in which a busy transport prefers them."""

    CONTENT = "content"
    SYNC = "sync"
    """What participants say to stay in sync, where each says all that the one before said, and so
    takes its place; of use for a moment only. It ends the retries of others, and must not wait
    behind our own."""
    CONTROL = "control"
    """The same, each by its id."""
    RETRY = "retry"
    REPAIR = "repair"
    EPHEMERAL = "ephemeral"

    @property
    def is_of_the_moment(self) -> bool:
        """Whether archives need not keep it."""
        return self in _OF_THE_MOMENT


_OF_THE_MOMENT: Final = (OutgoingKind.CONTROL, OutgoingKind.SYNC, OutgoingKind.EPHEMERAL)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Bytes to broadcast. For `CONTENT` and `RETRY` the owner calls `dispatched` once they are
    out."""

    kind: OutgoingKind
    message_id: str
    data: bytes
    timestamp_ns: int | None = None
    """The time that the id of a new message was made of. Stamped with it, others can check the
    id."""


class AcknowledgementSource(Enum):
    """How an acknowledgement is known."""

    CAUSAL_HISTORY = "causal_history"
    """A proof: the message stands in the causal history of another participant."""
    BLOOM_FILTER = "bloom_filter"
    """Evidence: it stands in the bloom filters of as many participants as the threshold asks."""


class RejectionReason(Enum):
    """Why a received message was refused."""

    MALFORMED = "malformed"
    OTHER_DIALECT = "other_dialect"
    """It is in a dialect that this participant does not listen to."""
    WRONG_CHANNEL = "wrong_channel"
    MISSING_ID = "missing_id"
    LAMPORT_TOO_FAR_AHEAD = "lamport_too_far_ahead"
    ID_ALREADY_USED = "id_already_used"
    OLDER_THAN_LOG = "older_than_log"
    UNDECRYPTABLE = "undecryptable"
    """It is of this channel, and its content does not open: another key, or forged."""
    UNPROVEN_SENDER = "unproven_sender"
    """This participant demands signatures, and none shows that it is of its `sender_id`."""
    INCOMING_BUFFER_FULL = "incoming_buffer_full"
    FORGED_ID = "forged_id"
    """It waited for others until the true message came, which its id proves."""
    EXCESSIVE_REFERENCES = "excessive_references"
    """It refers to, or asks for, more messages than any honest one does, or by longer ids."""


@dataclass(frozen=True, slots=True)
class MessagePossiblyAcknowledged:
    """An own message stands in the bloom filter of one more participant."""

    wire_name: ClassVar[str] = "message_possibly_acknowledged"
    message_id: str
    possible_ack_count: int
    """Participants so far."""


@dataclass(frozen=True, slots=True)
class MessageAcknowledged:
    """An own message was received by at least one other participant; it is not sent again."""

    wire_name: ClassVar[str] = "message_acknowledged"
    message_id: str
    source: AcknowledgementSource
    acknowledged_by: str
    """The participant whose message settled it."""
    participant_count: int = 1
    """Participants heard so far that have it, or by their bloom filters probably have."""


@dataclass(frozen=True, slots=True)
class DeliveryFailed:
    """An own message got no acknowledgement after all retries; nobody may have it, and it is not
    sent again."""

    wire_name: ClassVar[str] = "delivery_failed"
    message_id: str
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """A message is delivered: given once, after all in its causal history was delivered or declared
    lost."""

    wire_name: ClassVar[str] = "message_received"
    message_id: str
    sender_id: str
    content: bytes
    lamport_timestamp: int
    position: int
    """Where in the log it landed, from 0; below the end where messages after it in order came
    first."""
    missing: tuple[HistoryEntry, ...] = ()
    """Messages of its causal history that were declared lost before it was delivered."""
    retrieval_hint: bytes | None = None
    redelivered: bool = False
    """Whether it may have been given before: the process ended before that was confirmed."""


@dataclass(frozen=True, slots=True)
class MessageMissing:
    """Messages are known by reference alone, and others wait for them."""

    wire_name: ClassVar[str] = "message_missing"
    missing: tuple[HistoryEntry, ...]


@dataclass(frozen=True, slots=True)
class MessageLost:
    """A missing message was not found in time. What waited for it is delivered; it still is, should
    it come."""

    wire_name: ClassVar[str] = "message_lost"
    message_id: str
    sender_id: str | None
    retrieval_hint: bytes | None
    reason: str


@dataclass(frozen=True, slots=True)
class ReferencesDropped:
    """References to unknown messages were dropped to make room; nobody waits for these messages
    until they are referred to again. One event for all that a step drops of a sender's."""

    wire_name: ClassVar[str] = "references_dropped"
    sender_id: str
    """The participant whose messages referred to them."""
    count: int
    reason: str


@dataclass(frozen=True, slots=True)
class MessageRejected:
    """Something that arrived was refused and left no trace."""

    wire_name: ClassVar[str] = "message_rejected"
    reason: RejectionReason
    detail: str
    message_id: str = ""
    sender_id: str = ""


@dataclass(frozen=True, slots=True)
class MessageForged:
    """A message that was delivered turned out to be forged: it stole the id of another one.

    The true one, which its id proves, takes its place in the log and is delivered next: undo what
    was done for the forged one.
    """

    wire_name: ClassVar[str] = "message_forged"
    message_id: str
    sender_id: str
    """Whom the forged message named as its sender; who forged it is not known."""
    content: bytes
    """Of the forged message."""


@dataclass(frozen=True, slots=True)
class BloomFilterIgnored:
    """A participant's bloom filter cannot be read as an acknowledgement; its message counts all the
    same.

    Told once for each participant.
    """

    wire_name: ClassVar[str] = "bloom_filter_ignored"
    sender_id: str
    detail: str


@dataclass(frozen=True, slots=True)
class EphemeralReceived:
    """A message without any promise: neither ordered nor repeated nor logged."""

    wire_name: ClassVar[str] = "ephemeral_received"
    message_id: str
    sender_id: str
    content: bytes


@dataclass(frozen=True, slots=True)
class SyncSent:
    """A sync message is on its way."""

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
    """Other participants are asked for missing messages."""

    wire_name: ClassVar[str] = "repair_requested"
    message_ids: tuple[str, ...]
    carrier_id: str
    """The message that carries the request."""


@dataclass(frozen=True, slots=True)
class RepairRequestReceived:
    """Another participant asks for messages."""

    wire_name: ClassVar[str] = "repair_request_received"
    message_ids: tuple[str, ...]
    sender_id: str


@dataclass(frozen=True, slots=True)
class RepairBudgetReached:
    """A participant asks for more than is answered in a minute; these go unanswered, and may be
    asked for again.

    Told once a minute for each requester. Raise `repair_requester_answers_per_minute` and its
    siblings if honest ones need more.
    """

    wire_name: ClassVar[str] = "repair_budget_reached"
    message_ids: tuple[str, ...]
    sender_id: str
    """Who asked."""
    in_all: bool
    """What all requesters may have together is spent, not what this one may have."""


@dataclass(frozen=True, slots=True)
class RepairSent:
    """A message is broadcast again for those who asked for it."""

    wire_name: ClassVar[str] = "repair_sent"
    message_id: str


@dataclass(frozen=True, slots=True)
class LogDiffers:
    """Another participant's log differs from this one, and stays so: one of both lacks messages
    that nobody refers to any more.

    Emitted once until the logs of all participants agree again (`LogAgrees`); the sync status says
    `different` meanwhile. Logs are compared without their newest five minutes.
    """

    wire_name: ClassVar[str] = "log_differs"
    sender_id: str
    """The participant whose log was compared."""
    since_ms: int
    """The first Lamport timestamp of the range in which the logs differ."""
    until_ms: int
    """The first one after it."""
    count_here: int
    """Messages in the range in this log."""
    count_there: int
    """Messages in the range in the other log."""


@dataclass(frozen=True, slots=True)
class LogAgrees:
    """The logs that differed are equal now, or their participants have not been heard for an
    hour."""

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
    | LogDiffers
    | LogAgrees
)
