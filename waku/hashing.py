"""The deterministic message hash (14/WAKU2-MESSAGE, "Deterministic message hashing")."""

from __future__ import annotations

from hashlib import sha256

from waku.models import HASH_BYTES, WakuMessage

__all__ = ["HASH_BYTES", "message_hash"]


def message_hash(pubsub_topic: str, message: WakuMessage) -> bytes:
    """Return the 32-byte hash by which every node knows this message.

    sha256(pubsub_topic ‖ payload ‖ content_topic ‖ meta ‖ timestamp), the timestamp as 8 bytes,
    signed, big-endian. `version`, `ephemeral` and `proof` do not count.

    DIVERGES: js-waku leaves the 8 bytes out if the timestamp is absent or 0. This function writes 8
    zero bytes, as do go-waku and nwaku, which answer store queries. Always set a timestamp.
    """
    digest = sha256(pubsub_topic.encode())
    digest.update(message.payload)
    digest.update(message.content_topic.encode())
    digest.update(message.meta)
    digest.update(message.timestamp.to_bytes(8, "big", signed=True))
    return digest.digest()
