"""Encoding of payloads, with the field numbers that peers use.

The protobuf modules for this encoding are generated. The protobuf runtime reads large field numbers
such as 5001 like small numbers. protobuf writes unknown fields after the known fields, as the
reference implementation does.
"""

from dataclasses import dataclass
from typing import Any, Final, Protocol

from google.protobuf.message import DecodeError

from . import mvds_later_pb2, mvds_pb2
from .message import GroupId, GroupOffer, Message, MessageId, Payload

ID_ROOM_BYTES: Final = 36
"""Maximum number of bytes for an id in a payload, with tag, length and 32 bytes."""
OFFER_ROOM_BYTES: Final = 80
"""Maximum number of bytes for an offer that names its group."""
MESSAGE_ROOM_BYTES: Final = 80
"""Maximum number of bytes for a message besides its body and unknown fields."""


def room_of(message: Message) -> int:
    """Return the maximum number of bytes for a message in a payload."""
    return MESSAGE_ROOM_BYTES + len(message.body) + len(message.unknown_fields)


class CodecError(ValueError):
    """Error that the bytes are no payload."""


class _Module(Protocol):
    """A generated module."""

    Payload: Any
    Message: Any


@dataclass(frozen=True, slots=True)
class WireProfile:
    """Field numbers of a family of peers, and the way in which the peers offer messages."""

    name: str
    module: _Module
    reads_group_offers: bool = False
    sends_group_offers: bool = False
    own_message_fields: bytes = b""
    """Encoded fields that the node adds to its own messages."""

    def encode(self, payload: Payload) -> bytes:
        """Return the bytes of a payload. An empty payload has no bytes.

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
                raise ValueError(f"the wire profile {self.name!r} does not support group offers")
            known.group_offers.add(group_id=offer.group_id, message_ids=offer.message_ids)
        return bytes(known.SerializeToString()) + payload.unknown_fields

    def encode_message(self, message: Message) -> bytes:
        """Return the bytes of a message as in a payload, without tag and length."""
        return bytes(self._written(message).SerializeToString())

    def decode(self, data: bytes) -> Payload:
        """Return the payload in the bytes. The fields of a payload may be in any order. Unknown
        fields, and known fields of a wrong type, are kept separately.

        Raises:
            CodecError: the bytes are no payload.
        """
        try:
            read = self.module.Payload.FromString(data)
        except DecodeError as error:
            raise CodecError(f"the {len(data)} bytes are not an MVDS payload: {error}") from None
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
"""Field numbers 5001 to 5004 and 6001 to 6003, as specified. With these field numbers, group offers
are understood but not sent."""
GROUP_OFFERS: Final = WireProfile(
    "group_offers", mvds_pb2, reads_group_offers=True, sends_group_offers=True
)
"""Field numbers as specified, plus offers with a group (5005), as in the status fork from v0.0.26
on."""
LATER: Final = WireProfile("later", mvds_later_pb2, own_message_fields=b"\x22\x00")
"""Field numbers 1 to 4 and 1 to 3, as in the reference implementation from v0.0.24 on. Own messages
contain the empty `Metadata` of v0.0.25. Without `Metadata`, a peer with v0.0.25 crashes when it
forwards the message, according to its source."""

PROFILES: Final = {profile.name: profile for profile in (SEED, GROUP_OFFERS, LATER)}
