"""Message with its topic and hash, as the parts of the node pass it on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from waku.hashing import message_hash
from waku.models import WakuMessage

__all__ = ["MAX_META_BYTES", "Envelope", "carried_size", "encoded_size", "relay_json"]

MAX_META_BYTES: Final = 64
"""Maximum size of the field `meta` (bytes, 14/WAKU2-MESSAGE). Nodes cannot decode a message with a
longer `meta`, so they would drop the message on arrival."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """Message with its pubsub topic and its message hash, which is equal at all nodes."""

    pubsub_topic: str
    message: WakuMessage
    hash: bytes

    @classmethod
    def of(cls, pubsub_topic: str, message: WakuMessage) -> Envelope:
        """Make the envelope of a message whose timestamp is final."""
        return cls(pubsub_topic, message, message_hash(pubsub_topic, message))


def relay_json(message: WakuMessage) -> dict[str, str | int | bool]:
    """Return the JSON of a message as nwaku's relay API writes it, with defaults, and `meta` only
    if set."""
    fields: dict[str, str | int | bool] = {
        "payload": "",
        "contentTopic": "",
        "version": 0,
        "timestamp": 0,
        "ephemeral": False,
        "proof": "",
    }
    return {**fields, **message.to_json()}


def encoded_size(message: WakuMessage) -> int:
    """Return the length of a message in protobuf (bytes), to which the size limit applies."""
    zigzag = (message.timestamp << 1) ^ (message.timestamp >> 63)
    return (
        _field_size(1, len(message.payload))
        + _field_size(1, len(message.content_topic.encode()))
        + 1
        + _varint_size(message.version or 0)
        + 1
        + _varint_size(zigzag)
        + (_field_size(1, len(message.meta)) if message.meta else 0)
        + (_field_size(2, len(message.proof)) if message.proof else 0)
        + 3  # ephemeral: a tag of two bytes, a byte
    )


def carried_size(pubsub_topic: str, message: WakuMessage) -> int:
    """Return the size of a message in the queues between nodes (bytes)."""
    return encoded_size(message) + len(pubsub_topic.encode())


def _field_size(tag_bytes: int, length: int) -> int:
    return tag_bytes + _varint_size(length) + length


def _varint_size(number: int) -> int:
    return max(1, (number.bit_length() + 6) // 7)
