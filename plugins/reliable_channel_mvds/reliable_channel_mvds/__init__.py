"""2/MVDS, minimum viable data synchronization, as a sans-I/O node."""

from .message import GroupId, GroupOffer, Message, MessageId, Payload, PeerId, message_id
from .wire import GROUP_OFFERS, LATER, PROFILES, SEED, CodecError, WireProfile

__all__ = [
    "GROUP_OFFERS",
    "LATER",
    "PROFILES",
    "SEED",
    "CodecError",
    "GroupId",
    "GroupOffer",
    "Message",
    "MessageId",
    "Payload",
    "PeerId",
    "WireProfile",
    "message_id",
]
