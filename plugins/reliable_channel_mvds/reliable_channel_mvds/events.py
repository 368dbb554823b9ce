"""Events that an MVDS node emits."""

from dataclasses import dataclass
from enum import Enum

from .message import GroupId, MessageId, PeerId


class Element(Enum):
    """Kind of element in a payload."""

    ACK = "ack"
    OFFER = "offer"
    REQUEST = "request"
    MESSAGE = "message"


class Reason(Enum):
    """Reason why a received packet, or an element of it, is refused."""

    MALFORMED_ID = "malformed_id"
    """An id does not have 32 bytes. The reference implementation shortens or fills an id that does
    not have 32 bytes."""
    MALFORMED_GROUP = "malformed_group"
    """A group id does not have 32 bytes."""
    NOT_IN_GROUP = "not_in_group"
    """The peer is not in the group of the message at this node. The message is not acknowledged, so
    the peer sends it again, perhaps when it is in the group. The reference implementation accepts a
    message from a peer outside the group."""
    UNKNOWN_MESSAGE = "unknown_message"
    """A peer requests a message that this node does not hold."""
    NO_ROOM = "no_room"
    """A limit of the node is reached. Messages that are refused because of a limit arrive again."""


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """Event that a message arrived for the first time. Repeated messages are acknowledged without
    an event."""

    message_id: MessageId
    group_id: GroupId
    timestamp: int
    body: bytes
    peer_id: PeerId
    """Peer that sent the message. The author of the message may be another peer."""


@dataclass(frozen=True, slots=True)
class MessageAcknowledged:
    """Event that a peer has received a message that was being sent to it."""

    message_id: MessageId
    peer_id: PeerId
    waiting: int
    """Number of other peers to which the message is still being sent."""


@dataclass(frozen=True, slots=True)
class DeliveryFailed:
    """Event that a record was sent `max_send_count` times without an answer, and is given up."""

    message_id: MessageId
    peer_id: PeerId
    element: Element
    send_count: int


@dataclass(frozen=True, slots=True)
class PayloadRejected:
    """Event that a peer's whole packet is refused."""

    peer_id: PeerId
    detail: str


@dataclass(frozen=True, slots=True)
class ElementsRejected:
    """Event that elements of a payload are refused. A payload leads to one event for each kind of
    element and reason."""

    peer_id: PeerId
    element: Element
    reason: Reason
    count: int
    example_id: bytes
    """Id of the first refused element, or of its group if the group is wrong."""


@dataclass(frozen=True, slots=True)
class LimitReached:
    """Event that data was refused or forgotten because a limit is reached."""

    limit: str
    """Name of the reached limit, which is a field of `Limits`."""
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
    """Payload that must be sent to a peer."""

    peer_id: PeerId
    data: bytes
