"""What travels: messages, and payloads of acks, offers, requests and messages."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Final, NewType

PeerId = NewType("PeerId", bytes)
"""A peer's identity, as the transport below proves it; in the reference a public key of 65
bytes."""
GroupId = NewType("GroupId", bytes)
MessageId = NewType("MessageId", bytes)

MESSAGE_ID_BYTES: Final = 32
GROUP_ID_BYTES: Final = 32
"""As in the reference. Nothing separates the parts that a message id is made of, so that groups of
several lengths would let two different messages have one id."""


def message_id(group_id: GroupId, timestamp: int, body: bytes) -> MessageId:
    """The id of a message: `HASH("MESSAGE_ID", group_id, timestamp, body)`.

    The specification leaves open how a timestamp is hashed; in the reference it is its 8 bytes, in
    two's complement, the lowest first.
    """
    stamp = timestamp.to_bytes(8, "little", signed=True)
    return MessageId(sha256(b"MESSAGE_ID" + group_id + stamp + body).digest())


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a group."""

    group_id: GroupId
    timestamp: int
    """When it was made, in seconds since 1970 (the specification names no unit, the reference has
    seconds)."""
    body: bytes
    unknown_fields: bytes = b""
    """Fields of later versions, encoded; they are passed on with the message and are no part of its
    id."""

    @property
    def id(self) -> MessageId:
        """The message identifier, computed anew at each call."""
        return message_id(self.group_id, self.timestamp, self.body)


@dataclass(frozen=True, slots=True)
class GroupOffer:
    """Offers that say which group they belong to, as the status fork has them."""

    group_id: GroupId
    message_ids: tuple[MessageId, ...]


@dataclass(frozen=True, slots=True)
class Payload:
    """What one peer sends another one in an epoch."""

    acks: tuple[MessageId, ...] = ()
    """The sender holds these."""
    offers: tuple[MessageId, ...] = ()
    """The sender would like to give these."""
    requests: tuple[MessageId, ...] = ()
    """The sender would like to receive these."""
    messages: tuple[Message, ...] = ()
    group_offers: tuple[GroupOffer, ...] = ()
    """Offers with their group; not of the specification."""
    unknown_fields: bytes = b""

    @property
    def is_empty(self) -> bool:
        """True if it says nothing that is understood here."""
        return not (self.acks or self.offers or self.requests or self.messages or self.group_offers)
