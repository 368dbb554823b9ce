"""Messages, and payloads with acks, offers, requests and messages."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Final, NewType

PeerId = NewType("PeerId", bytes)
"""A peer's identity, which the transport below proves. In the reference it is a public key of 65
bytes."""
GroupId = NewType("GroupId", bytes)
MessageId = NewType("MessageId", bytes)

MESSAGE_ID_BYTES: Final = 32
GROUP_ID_BYTES: Final = 32
"""The length of a group id, as in the reference. Nothing separates the parts of a message id. With
group ids of several lengths, two different messages could have one id."""


def message_id(group_id: GroupId, timestamp: int, body: bytes) -> MessageId:
    """Return the id of a message: `HASH("MESSAGE_ID", group_id, timestamp, body)`.

    The specification leaves open how a timestamp is hashed. In the reference it is 8 bytes in two's
    complement, the lowest byte first.
    """
    stamp = timestamp.to_bytes(8, "little", signed=True)
    return MessageId(sha256(b"MESSAGE_ID" + group_id + stamp + body).digest())


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a group."""

    group_id: GroupId
    timestamp: int
    """The time at which it was made, in seconds since 1970. The specification names no unit, and
    the reference has seconds."""
    body: bytes
    unknown_fields: bytes = b""
    """The encoded fields of later versions. They are passed on with the message and are no part of
    its id."""

    @property
    def id(self) -> MessageId:
        """The message identifier, computed anew at each call."""
        return message_id(self.group_id, self.timestamp, self.body)


@dataclass(frozen=True, slots=True)
class GroupOffer:
    """Offers that name their group, as in the status fork."""

    group_id: GroupId
    message_ids: tuple[MessageId, ...]


@dataclass(frozen=True, slots=True)
class Payload:
    """The payload that one peer sends to another in one epoch."""

    acks: tuple[MessageId, ...] = ()
    """The messages that the sender holds."""
    offers: tuple[MessageId, ...] = ()
    """The messages that the sender would like to send."""
    requests: tuple[MessageId, ...] = ()
    """The messages that the sender would like to receive."""
    messages: tuple[Message, ...] = ()
    group_offers: tuple[GroupOffer, ...] = ()
    """Offers with their group. They are not in the specification."""
    unknown_fields: bytes = b""

    @property
    def is_empty(self) -> bool:
        """True if nothing in it is understood here."""
        return not (self.acks or self.offers or self.requests or self.messages or self.group_offers)
