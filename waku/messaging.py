"""Values in the answers of `/messaging/v1`, the REST API of logos-delivery's messaging layer.

The node makes the Waku message, and chooses its shard, timestamp and version. The hash of an own
message is therefore known only from the events after sending.
"""

from __future__ import annotations

from dataclasses import dataclass

from waku import _json
from waku.models import HASH_BYTES, WakuMessage

__all__ = ["MessagingMessage", "SendEvent", "SendEvents"]


@dataclass(frozen=True, slots=True)
class SendEvent:
    """Event about the progress of a sent message."""

    kind: str
    """Kind of the event, out of `propagated` (peers have it), `sent` (a Store has it), and `error`.
    Later versions of the node have more kinds, such as `queued`."""
    message_hash: bytes | None
    """Message hash, or None if the node made no message."""
    timestamp_ns: int
    error: str = ""

    @classmethod
    def from_json(cls, value: object) -> SendEvent:
        """Parse an event in a node's answer.

        Raises:
            ValueError: not an event.
        """
        fields = _json.object_of(value)
        return cls(
            _json.text(fields.get("kind")),
            _hash(fields.get("messageHash")),
            _json.integer(fields.get("timestamp") or 0),
            _json.optional_text(fields.get("error")) or "",
        )


@dataclass(frozen=True, slots=True)
class SendEvents:
    """Events about the messages of one request."""

    request_id: str
    events: tuple[SendEvent, ...]

    @classmethod
    def from_json(cls, value: object) -> SendEvents:
        """Parse the events about one request in a node's answer.

        Raises:
            ValueError: not such an object.
        """
        fields = _json.object_of(value)
        events = _json.list_of(fields.get("events"), SendEvent.from_json)
        return cls(_json.text(fields.get("requestId")), events)


@dataclass(frozen=True, slots=True)
class MessagingMessage:
    """Message that the node has received."""

    message_hash: bytes
    message: WakuMessage
    source: str = "live"
    """Origin of the message, `live`, or `history` if the node fetched it from a Store."""
    sequence: int | None = None
    """Number of the message at the node, or None if the node does not count messages. A gap between
    two numbers means a lost message."""

    @classmethod
    def from_json(cls, value: object) -> MessagingMessage:
        """Parse a received message in a node's answer.

        Raises:
            ValueError: not such an object.
        """
        fields = _json.object_of(value)
        message_hash = _hash(fields.get("messageHash"))
        if message_hash is None:
            raise ValueError("expected a message hash, found none")
        sequence = fields.get("seq")
        return cls(
            message_hash,
            WakuMessage.from_json(fields.get("message")),
            _json.optional_text(fields.get("source")) or "live",
            None if sequence is None else _json.integer(sequence),
        )


def _hash(value: object) -> bytes | None:
    text = _json.optional_text(value)
    if not text:
        return None
    found = bytes.fromhex(text.removeprefix("0x"))
    if len(found) != HASH_BYTES:
        raise ValueError(f"expected a hash of {HASH_BYTES} bytes, found {len(found)}")
    return found
