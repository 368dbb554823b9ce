"""Messages of groups, and payloads with acks, offers, requests and messages."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Final, NewType

PeerId = NewType("PeerId", bytes)
"""Identity of a peer, which the transport must prove. In the reference implementation, a peer id is
a public key of 65 bytes."""
GroupId = NewType("GroupId", bytes)
MessageId = NewType("MessageId", bytes)

MESSAGE_ID_BYTES: Final = 32
GROUP_ID_BYTES: Final = 32
"""Length of a group id, as in the reference implementation (bytes). Nothing separates the parts
that are hashed into a message id. With group ids of different lengths, two different messages could
have the same id."""


def message_id(group_id: GroupId, timestamp: int, body: bytes) -> MessageId:
    """Return the id of a message, `HASH("MESSAGE_ID", group_id, timestamp, body)`.

    The specification does not say how the timestamp is hashed. In the reference implementation, a
    timestamp is 8 bytes in two's complement, lowest byte first.
    """
    stamp = timestamp.to_bytes(8, "little", signed=True)
    return MessageId(sha256(b"MESSAGE_ID" + group_id + stamp + body).digest())


@dataclass(frozen=True, slots=True)
class Message:
    """Message of an MVDS group."""

    group_id: GroupId
    timestamp: int
    """Time when the message was made (seconds since 1970). The specification names no unit of time,
    and the reference implementation has seconds."""
    body: bytes
    unknown_fields: bytes = b""
    """Encoded fields of later versions of the protocol. Unknown fields are forwarded with the
    message, but are not part of its id."""

    @property
    def id(self) -> MessageId:
        """Message id, which is computed again at each call."""
        return message_id(self.group_id, self.timestamp, self.body)


@dataclass(frozen=True, slots=True)
class GroupOffer:
    """Offers of a group's messages that name their group, as in the status fork."""

    group_id: GroupId
    message_ids: tuple[MessageId, ...]


@dataclass(frozen=True, slots=True)
class Payload:
    """Payload that one peer sends to another peer in an epoch."""

    acks: tuple[MessageId, ...] = ()
    """Ids of the messages that the sender has received."""
    offers: tuple[MessageId, ...] = ()
    """Ids of the messages that the sender wants to send."""
    requests: tuple[MessageId, ...] = ()
    """Ids of the messages that the sender wants to receive."""
    messages: tuple[Message, ...] = ()
    group_offers: tuple[GroupOffer, ...] = ()
    """Offers together with their group. Offers with a group are not in the specification."""
    unknown_fields: bytes = b""

    @property
    def is_empty(self) -> bool:
        """True if the payload contains nothing that this version understands."""
        return not (self.acks or self.offers or self.requests or self.messages or self.group_offers)
