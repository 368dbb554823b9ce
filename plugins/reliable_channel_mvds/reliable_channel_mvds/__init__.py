"""2/MVDS, minimum viable data synchronization, as a sans-I/O node."""

from typing import TYPE_CHECKING

from reliable_channel.spi import lazy_names

if TYPE_CHECKING:
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
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "errors": (
                "BodyTooLong",
                "MvdsError",
                "NodeFull",
                "TooManyRepeats",
                "UnknownGroup",
            ),
            "events": (
                "DeliveryFailed",
                "Element",
                "ElementsRejected",
                "Event",
                "LimitReached",
                "MessageAcknowledged",
                "MessageReceived",
                "Outgoing",
                "PayloadRejected",
                "Reason",
            ),
            "message": (
                "GroupId",
                "GroupOffer",
                "Message",
                "MessageId",
                "Payload",
                "PeerId",
                "message_id",
            ),
            "node": (
                "MvdsNode",
                "NodeStatistics",
            ),
            "options": (
                "Limits",
                "Mode",
                "NodeOptions",
            ),
            "records": (
                "Record",
                "RecordType",
            ),
            "state": ("Counters",),
            "wire": (
                "GROUP_OFFERS",
                "LATER",
                "PROFILES",
                "SEED",
                "CodecError",
                "WireProfile",
            ),
        },
    )

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
