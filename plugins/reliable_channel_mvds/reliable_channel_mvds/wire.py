"""Payloads as bytes, in the field numbers that peers use.

The modules are generated. The runtime of protobuf reads field numbers such as 5001 like any other.
It keeps unknown fields and writes them after the known ones, as the reference does.
"""

from dataclasses import dataclass
from typing import Any, Final, Protocol

from google.protobuf.message import DecodeError

from . import mvds_later_pb2, mvds_pb2
from .message import GroupId, GroupOffer, Message, MessageId, Payload

ID_ROOM_BYTES: Final = 36
"""The most bytes that an id takes in a payload: tag, length and 32 bytes."""
OFFER_ROOM_BYTES: Final = 80
"""The same for an offer that names its group."""
MESSAGE_ROOM_BYTES: Final = 80
"""The most bytes that a message takes besides its body and unknown fields: group id, timestamp,
tags and lengths."""


def room_of(message: Message) -> int:
    """Return the most bytes that a message takes in a payload."""
    return MESSAGE_ROOM_BYTES + len(message.body) + len(message.unknown_fields)


class CodecError(ValueError):
    """The bytes are no payload."""


class _Module(Protocol):
    """A generated module."""

    Payload: Any
    Message: Any


@dataclass(frozen=True, slots=True)
class WireProfile:
    """The field numbers of a family of peers, and its way to offer messages."""

    name: str
    module: _Module
    reads_group_offers: bool = False
    sends_group_offers: bool = False
    own_message_fields: bytes = b""
    """The encoded fields that own messages carry in addition."""

    def encode(self, payload: Payload) -> bytes:
        """Write a payload. The empty one has no bytes.

        Raises:
            ValueError: a timestamp is beyond 64 bits, or there are group offers in a numbering
                without them.
        """
        known = self.module.Payload(
            acks=payload.acks, offers=payload.offers, requests=payload.requests
        )
        for message in payload.messages:
            known.messages.append(self._written(message))
        for offer in payload.group_offers:
            if not self.reads_group_offers:
                raise ValueError(f"the profile {self.name!r} has no group offers")
            known.group_offers.add(group_id=offer.group_id, message_ids=offer.message_ids)
        return bytes(known.SerializeToString()) + payload.unknown_fields

    def encode_message(self, message: Message) -> bytes:
        """Write a message in the form that it has in a payload, without tag and length."""
        return bytes(self._written(message).SerializeToString())

    def decode(self, data: bytes) -> Payload:
        """Read a payload. Its fields may come in any order. Unknown fields, and known fields of a
        wrong type, are kept aside.

        Raises:
            CodecError: the bytes are no payload.
        """
        try:
            read = self.module.Payload.FromString(data)
        except DecodeError as error:
            raise CodecError(f"{len(data)} bytes are no payload: {error}") from None
        group_offers: tuple[GroupOffer, ...] = ()
        if self.reads_group_offers:
            group_offers = tuple(
                GroupOffer(GroupId(offer.group_id), tuple(map(MessageId, offer.message_ids)))
                for offer in read.group_offers
            )
        return Payload(
            tuple(map(MessageId, read.acks)),
            tuple(map(MessageId, read.offers)),
            tuple(map(MessageId, read.requests)),
            tuple(
                Message(GroupId(m.group_id), m.timestamp, m.body, _unknown_fields(m))
                for m in read.messages
            ),
            group_offers,
            _unknown_fields(read),
        )

    def _written(self, message: Message) -> Any:
        written = self.module.Message(
            group_id=message.group_id, timestamp=message.timestamp, body=message.body
        )
        if message.unknown_fields:
            written.MergeFromString(message.unknown_fields)
        return written


def _unknown_fields(read: Any) -> bytes:
    """What is left of a protobuf message, encoded, when all known fields are taken away; that ends
    its use."""
    for field, _ in read.ListFields():
        read.ClearField(field.name)
    return bytes(read.SerializeToString())


SEED: Final = WireProfile("seed", mvds_pb2, reads_group_offers=True)
"""5001 to 5004 and 6001 to 6003, as specified. Group offers are understood and not sent."""
GROUP_OFFERS: Final = WireProfile(
    "group_offers", mvds_pb2, reads_group_offers=True, sends_group_offers=True
)
"""The same with offers that name their group (5005), as in the status fork from v0.0.26 on."""
LATER: Final = WireProfile("later", mvds_later_pb2, own_message_fields=b"\x22\x00")
"""1 to 4 and 1 to 3, as in the reference from v0.0.24 on. Own messages carry the empty `Metadata`
of v0.0.25. Without it such a peer, according to its source, crashes when it relays them."""

PROFILES: Final = {profile.name: profile for profile in (SEED, GROUP_OFFERS, LATER)}
