"""Content topic and key of a chat, derived from its id (10/WAKU2 usage of Status,
62/STATUS-PAYLOADS).

A content topic is the first four bytes of Keccak-256 of the chat id. Chats may therefore share a
content topic, and only the key distinguishes them.
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
"""Number of iterations of PBKDF2 in status-go. The number was a typing error for 65,536 that became
the protocol."""
REMEMBERED_KEYS: Final = 4096
"""Maximum number of stored keys, because deriving a key takes some hundredths of a second. Beyond
the maximum, the least recently used key is evicted."""

CLUSTER_ID: Final = 16
"""Waku cluster of Status in 51/WAKU2-RELAY-SHARDING."""
DEFAULT_SHARD: Final = PubsubTopic(CLUSTER_ID, 32)
"""Shard on which Status clients write. Status clients from 2.42 on listen only to the default
shard, 32."""
NON_PROTECTED_SHARD: Final = PubsubTopic(CLUSTER_ID, 64)
"""Shard on which clients before 2.40 write requests to join and other control messages."""
AUTO_SHARD: Final = PubsubTopic(CLUSTER_ID, 0)
"""Shard that autosharding gives with the one shard of `status.prod`. No Status client is known to
write on the autosharding shard yet. Bots listen on the autosharding shard, and report messages."""
CONTROL_SHARD: Final = PubsubTopic(CLUSTER_ID, 128)
"""Shard of 56/STATUS-COMMUNITIES for descriptions and membership. No released client writes on the
control shard, and since April 2026 none listens there."""
CONTENT_SHARD: Final = PubsubTopic(CLUSTER_ID, 256)
"""Shard of 56/STATUS-COMMUNITIES for users' messages, which clients do not use either."""

_CONTENT_TOPIC: Final = re.compile(r"/waku/1/0x([0-9a-f]{8})/rfc26")


def content_topic(chat_id: str) -> str:
    """Return the content topic of a chat, such as `/waku/1/0x9c22ff5f/rfc26` for `test`."""
    return f"/waku/1/0x{keccak256(chat_id.encode())[:TOPIC_BYTES].hex()}/rfc26"


def topic_bytes(text: str) -> bytes | None:
    """Return the four bytes of a content topic, or None if it does not belong to Status."""
    match = _CONTENT_TOPIC.fullmatch(text)
    return None if match is None else bytes.fromhex(match[1])


@lru_cache(REMEMBERED_KEYS)
def symmetric_key(chat_id: str) -> SymmetricKey:
    """Return the symmetric key of a chat, by PBKDF2-HMAC-SHA256 of the chat id without salt.

    Every user that knows the chat id has the key, so past members can read everything. Deriving the
    key takes some hundredths of a second, once for each chat id.
    """
    derived = pbkdf2_hmac("sha256", chat_id.encode(), b"", PBKDF2_ITERATIONS, KEY_BYTES)
    return SymmetricKey(derived)


@dataclass(frozen=True, slots=True)
class Topic:
    """Chat id from which a content topic and a key are derived."""

    id: str

    @property
    def content_topic(self) -> str:
        """Content topic of the form `/waku/1/0x…/rfc26`."""
        return content_topic(self.id)

    @property
    def key(self) -> SymmetricKey:
        """Symmetric key that decrypts messages of the topic, derived once for each chat id."""
        return symmetric_key(self.id)
