"""Deterministic message hash of Waku (14/WAKU2-MESSAGE, "Deterministic message hashing")."""

from __future__ import annotations

from hashlib import sha256

from waku.models import HASH_BYTES, WakuMessage

__all__ = ["HASH_BYTES", "message_hash"]


def message_hash(pubsub_topic: str, message: WakuMessage) -> bytes:
    """Return the 32-byte hash by which every node identifies a message.

    The hash is sha256(pubsub_topic ‖ payload ‖ content_topic ‖ meta ‖ timestamp), with 8 bytes of
    timestamp (signed, big-endian). The fields `version`, `ephemeral` and `proof` do not change the
    hash.

    DIVERGES: js-waku leaves the 8 bytes of the timestamp out if it is absent or 0. This function
    writes 8 zero bytes, like go-waku and nwaku, which answer Store queries. Give every message a
    timestamp, so that all implementations compute the same hash.
    """
    digest = sha256(pubsub_topic.encode())
    digest.update(message.payload)
    digest.update(message.content_topic.encode())
    digest.update(message.meta)
    digest.update(message.timestamp.to_bytes(8, "big", signed=True))
    return digest.digest()
