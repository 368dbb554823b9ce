"""From a chat id to its content topic and its key (10/WAKU2 usage of Status, 62/STATUS-PAYLOADS).

A content topic is the first four bytes of Keccak-256 of the id, so different chats may share one;
only the key distinguishes them.
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
"""Of status-go; a slip of 65,536 that became the protocol."""
REMEMBERED_KEYS: Final = 4096
"""Keys derived lately: each took some hundredths of a second; the one unused for longest goes."""

CLUSTER_ID: Final = 16
"""Of Status in 51/WAKU2-RELAY-SHARDING."""
DEFAULT_SHARD: Final = PubsubTopic(CLUSTER_ID, 32)
"""Where Status clients write; those from 2.42 on listen to nothing else."""
NON_PROTECTED_SHARD: Final = PubsubTopic(CLUSTER_ID, 64)
"""Where clients before 2.40 write requests to join and other control messages."""
AUTO_SHARD: Final = PubsubTopic(CLUSTER_ID, 0)
"""Where auto-sharding with the one shard of `status.prod` leads. No client is known to write there
yet; bots listen, and report what comes."""
CONTROL_SHARD: Final = PubsubTopic(CLUSTER_ID, 128)
"""Of 56/STATUS-COMMUNITIES, for descriptions and membership. No released client writes there, and
since April 2026 none listens."""
CONTENT_SHARD: Final = PubsubTopic(CLUSTER_ID, 256)
"""Of 56/STATUS-COMMUNITIES, for what users write; as unused as `CONTROL_SHARD`."""

_CONTENT_TOPIC: Final = re.compile(r"/waku/1/0x([0-9a-f]{8})/rfc26")


def content_topic(chat_id: str) -> str:
    """The content topic of a chat: `/waku/1/0x9c22ff5f/rfc26` for `test`."""
    return f"/waku/1/0x{keccak256(chat_id.encode())[:TOPIC_BYTES].hex()}/rfc26"


def topic_bytes(text: str) -> bytes | None:
    """The four bytes that a content topic stands for, or None if it is none of Status."""
    match = _CONTENT_TOPIC.fullmatch(text)
    return None if match is None else bytes.fromhex(match[1])


@lru_cache(REMEMBERED_KEYS)
def symmetric_key(chat_id: str) -> SymmetricKey:
    """The key of a chat: PBKDF2-HMAC-SHA256 of its id without salt.

    Every user that knows the id has the key, so it keeps nothing from a member, past or present. It
    takes some hundredths of a second once for each id.
    """
    derived = pbkdf2_hmac("sha256", chat_id.encode(), b"", PBKDF2_ITERATIONS, KEY_BYTES)
    return SymmetricKey(derived)


@dataclass(frozen=True, slots=True)
class Topic:
    """What is subscribed to: the id of a chat, from which content topic and key come."""

    id: str

    @property
    def content_topic(self) -> str:
        """`/waku/1/0x…/rfc26`."""
        return content_topic(self.id)

    @property
    def key(self) -> SymmetricKey:
        """What opens messages of the topic; derived once for each id."""
        return symmetric_key(self.id)
