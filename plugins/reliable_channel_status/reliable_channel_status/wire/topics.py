"""Content topic and key of a chat id (10/WAKU2 usage of Status, 62/STATUS-PAYLOADS).

A content topic is the first four bytes of Keccak-256 of the id. Different chats may therefore share
one, and only the key distinguishes them.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import pbkdf2_hmac
from typing import Final

from waku import PubsubTopic

from .keys import KEY_BYTES, SymmetricKey, keccak256

TOPIC_BYTES: Final = 4
PBKDF2_ITERATIONS: Final = 65_356
"""Iterations of PBKDF2 in status-go. The number was a typing error for 65,536 that became the
protocol."""
REMEMBERED_KEYS: Final = 4096
"""Maximum number of kept keys, because each takes some hundredths of a second. The one unused for
longest is evicted."""

CLUSTER_ID: Final = 16
"""Cluster of Status in 51/WAKU2-RELAY-SHARDING."""
DEFAULT_SHARD: Final = PubsubTopic(CLUSTER_ID, 32)
"""Shard on which Status clients write. Those from 2.42 on listen to nothing else."""
NON_PROTECTED_SHARD: Final = PubsubTopic(CLUSTER_ID, 64)
"""Shard on which clients before 2.40 write requests to join and other control messages."""
AUTO_SHARD: Final = PubsubTopic(CLUSTER_ID, 0)
"""Shard to which autosharding with the one shard of `status.prod` leads. No client is known to
write there yet. Bots listen, and report messages."""
CONTROL_SHARD: Final = PubsubTopic(CLUSTER_ID, 128)
"""Shard of 56/STATUS-COMMUNITIES for descriptions and membership. No released client writes there,
and since April 2026 none listens."""
CONTENT_SHARD: Final = PubsubTopic(CLUSTER_ID, 256)
"""Shard of 56/STATUS-COMMUNITIES for users' messages, as unused as `CONTROL_SHARD`."""

_CONTENT_TOPIC: Final = re.compile(r"/waku/1/0x([0-9a-f]{8})/rfc26")


def content_topic(chat_id: str) -> str:
    """Return the content topic of a chat: `/waku/1/0x9c22ff5f/rfc26` for `test`."""
    return f"/waku/1/0x{keccak256(chat_id.encode())[:TOPIC_BYTES].hex()}/rfc26"


def topic_bytes(text: str) -> bytes | None:
    """Return the four bytes of a content topic, or None if it does not belong to Status."""
    match = _CONTENT_TOPIC.fullmatch(text)
    return None if match is None else bytes.fromhex(match[1])


@lru_cache(REMEMBERED_KEYS)
def symmetric_key(chat_id: str) -> SymmetricKey:
    """Return the key of a chat: PBKDF2-HMAC-SHA256 of its id without salt.

    Every user that knows the id has the key, so past and present members can read everything. The
    derivation takes some hundredths of a second, once for each id.
    """
    derived = pbkdf2_hmac("sha256", chat_id.encode(), b"", PBKDF2_ITERATIONS, KEY_BYTES)
    return SymmetricKey(derived)


@dataclass(frozen=True, slots=True)
class Topic:
    """Chat id from which content topic and key are derived."""

    id: str

    @property
    def content_topic(self) -> str:
        """Content topic of the form `/waku/1/0x…/rfc26`."""
        return content_topic(self.id)

    @property
    def key(self) -> SymmetricKey:
        """Key that opens messages of the topic, derived once for each id."""
        return symmetric_key(self.id)
