"""The events that a node emits."""

from dataclasses import dataclass
from enum import Enum

from .message import GroupId, MessageId, PeerId


class Element(Enum):
    """The parts of a payload."""

    ACK = "ack"
    OFFER = "offer"
    REQUEST = "request"
    MESSAGE = "message"


class Reason(Enum):
    """Why a received packet or a part of it is refused."""

    MALFORMED_ID = "malformed_id"
    """An id does not have 32 bytes. (The reference cuts it or fills it up.)"""
    MALFORMED_GROUP = "malformed_group"
    """A group id does not have 32 bytes."""
    NOT_IN_GROUP = "not_in_group"
    """The peer is not in the message's group here. The message is not acknowledged, so the peer
    sends it again, perhaps once it is in the group. (The reference accepts it.)"""
    UNKNOWN_MESSAGE = "unknown_message"
    """A peer requests a message that is not held here."""
    NO_ROOM = "no_room"
    """A limit is reached. Messages that are refused for it arrive again."""


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """A message arrived for the first time. Repeated ones are acknowledged silently."""

    message_id: MessageId
    group_id: GroupId
    timestamp: int
    body: bytes
    peer_id: PeerId
    """The peer that sent it. Its author may be another one."""


@dataclass(frozen=True, slots=True)
class MessageAcknowledged:
    """A peer has a message that was being sent to it."""

    message_id: MessageId
    peer_id: PeerId
    waiting: int
    """The number of other peers to which it is still being sent."""


@dataclass(frozen=True, slots=True)
class DeliveryFailed:
    """A record was sent `max_send_count` times without an answer, and is given up."""

    message_id: MessageId
    peer_id: PeerId
    element: Element
    send_count: int


@dataclass(frozen=True, slots=True)
class PayloadRejected:
    """The whole packet of a peer is refused."""

    peer_id: PeerId
    detail: str


@dataclass(frozen=True, slots=True)
class ElementsRejected:
    """Parts of a payload are refused. There is one event for each kind and reason."""

    peer_id: PeerId
    element: Element
    reason: Reason
    count: int
    example_id: bytes
    """The id of the first refused part, or its group where the group is wrong."""


@dataclass(frozen=True, slots=True)
class LimitReached:
    """Something was left out or forgotten because memory is limited."""

    limit: str
    """The reached field of `Limits`."""
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
