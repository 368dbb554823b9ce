"""The events that a node emits."""

from dataclasses import dataclass
from enum import Enum

from .message import GroupId, MessageId, PeerId


class Element(Enum):
    """What a payload is made of."""

    ACK = "ack"
    OFFER = "offer"
    REQUEST = "request"
    MESSAGE = "message"


class Reason(Enum):
    """Why something that was received is refused."""

    MALFORMED_ID = "malformed_id"
    """An id has other than 32 bytes. (The reference cuts it or fills it up.)"""
    MALFORMED_GROUP = "malformed_group"
    """A group id has other than 32 bytes."""
    NOT_IN_GROUP = "not_in_group"
    """The peer is not in the message's group here. It is not acknowledged, so it comes again once
    the peer is. (The reference takes it.)"""
    UNKNOWN_MESSAGE = "unknown_message"
    """A request for what is not held here."""
    NO_ROOM = "no_room"
    """A limit is reached; what is refused for that comes again."""


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """A message came for the first time. Repeated ones are acknowledged in silence."""

    message_id: MessageId
    group_id: GroupId
    timestamp: int
    body: bytes
    peer_id: PeerId
    """The peer that gave it; its author may be another one."""


@dataclass(frozen=True, slots=True)
class MessageAcknowledged:
    """A peer has a message that was being given to it."""

    message_id: MessageId
    peer_id: PeerId
    waiting: int
    """How many other peers it is still being given to."""


@dataclass(frozen=True, slots=True)
class DeliveryFailed:
    """A record was sent `max_send_count` times without an answer, and is given up."""

    message_id: MessageId
    peer_id: PeerId
    element: Element
    send_count: int


@dataclass(frozen=True, slots=True)
class PayloadRejected:
    """All of what a peer sent is refused."""

    peer_id: PeerId
    detail: str


@dataclass(frozen=True, slots=True)
class ElementsRejected:
    """Parts of a payload are refused; one event a payload for each kind and reason."""

    peer_id: PeerId
    element: Element
    reason: Reason
    count: int
    example_id: bytes
    """The id of the first of them, or its group where that is what is wrong."""


@dataclass(frozen=True, slots=True)
class LimitReached:
    """Something was left out or forgotten because memory has an end."""

    limit: str
    """A field of `Limits`."""
    message_id: MessageId
    peer_id: PeerId | None = None


Event = (
    MessageReceived
    | MessageAcknowledged
    | DeliveryFailed
    | PayloadRejected
    | ElementsRejected
    | LimitReached
)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A payload to be sent to a peer."""

    peer_id: PeerId
    data: bytes
