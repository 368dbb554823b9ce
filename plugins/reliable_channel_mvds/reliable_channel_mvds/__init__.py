"""2/MVDS, minimum viable data synchronization, as a sans-I/O node."""

from .errors import BodyTooLong, MvdsError, NodeFull, TooManyRepeats, UnknownGroup
from .events import (
    DeliveryFailed,
    Element,
    ElementsRejected,
    Event,
    LimitReached,
    MessageAcknowledged,
    MessageReceived,
    Outgoing,
    PayloadRejected,
    Reason,
)
from .message import GroupId, GroupOffer, Message, MessageId, Payload, PeerId, message_id
from .node import MvdsNode, NodeStatistics
from .options import Limits, Mode, NodeOptions
from .records import Record, RecordType
from .state import Counters
from .wire import GROUP_OFFERS, LATER, PROFILES, SEED, CodecError, WireProfile

__all__ = [
    "GROUP_OFFERS",
    "LATER",
    "PROFILES",
    "SEED",
    "BodyTooLong",
    "CodecError",
    "Counters",
    "DeliveryFailed",
    "Element",
    "ElementsRejected",
    "Event",
    "GroupId",
    "GroupOffer",
    "LimitReached",
    "Limits",
    "Message",
    "MessageAcknowledged",
    "MessageId",
    "MessageReceived",
    "Mode",
    "MvdsError",
    "MvdsNode",
    "NodeFull",
    "NodeOptions",
    "NodeStatistics",
    "Outgoing",
    "Payload",
    "PayloadRejected",
    "PeerId",
    "Reason",
    "Record",
    "RecordType",
    "TooManyRepeats",
    "UnknownGroup",
    "WireProfile",
    "message_id",
]
