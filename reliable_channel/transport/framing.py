"""Message format for networks other than Waku, with a header before the payload.

The hash is the same as in Waku, so a message that also passes a Waku node keeps its hash.
"""

from struct import Struct
from struct import error as StructError
from typing import Final

from waku.hashing import message_hash
from waku.models import WakuMessage

from .base import Envelope, Received, Source
from .settings import WakuSettings

_BESIDE: Final = Struct(">QB")
"""Timestamp and length of the meta, before meta and payload."""


class WakuFraming:
    """Encoder and decoder of the messages of one content topic.

    Raises:
        ValueError: a topic is not what Waku takes for one.
    """

    def __init__(self, settings: WakuSettings) -> None:
        self._shard = settings.shard
        self._content_topic = settings.content_topic

    def envelope(
        self, payload: bytes, *, timestamp_ns: int, ephemeral: bool, meta: bytes = b""
    ) -> Envelope:
        """Make an envelope for bytes, with the hash that a Waku node would give them."""
        digest = self._hash(payload, timestamp_ns, meta)
        return Envelope(payload, timestamp_ns, ephemeral, digest, meta)

    def body(self, envelope: Envelope) -> bytes:
        """Encode the timestamp, the meta bytes and the payload of an envelope."""
        beside = _BESIDE.pack(envelope.timestamp_ns, len(envelope.meta))
        return beside + envelope.meta + envelope.payload

    def received(self, body: bytes) -> Received | None:
        """Decode a message, or return None for bytes of another format."""
        try:
            timestamp_ns, meta_bytes = _BESIDE.unpack_from(body)
            start = _BESIDE.size + meta_bytes
            if start > len(body):
                return None
            meta, payload = body[_BESIDE.size : start], body[start:]
            digest = self._hash(payload, timestamp_ns, meta)
        except (StructError, ValueError):  # too short, or a time beyond Waku's 63 bits
            return None
        return Received(payload, digest, timestamp_ns, Source.LIVE, meta)

    def _hash(self, payload: bytes, timestamp_ns: int, meta: bytes) -> bytes:
        message = WakuMessage(payload, self._content_topic, timestamp=timestamp_ns, meta=meta)
        return message_hash(self._shard, message)
