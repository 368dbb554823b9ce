"""Messages that wait for their group keys."""

import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from .direct.session_store import SessionStore
from .keys import PublicKey
from .outcomes import RefusalReason, Refused

MAX_WAITING: Final = 1_000
"""Maximum number of messages that wait for a key. Beyond the maximum, the oldest waiting message is
evicted."""
MAX_WAITING_BYTES: Final = 8 * 1024 * 1024
"""Maximum size of all waiting messages together."""


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """Message that waits for a key, with its origin."""

    id: bytes
    key_ids: tuple[bytes, ...]
    """Ids of the keys, each of which decrypts the message or a part of it."""
    community: bytes
    topic_id: str
    timestamp_ms: int
    signer: PublicKey | None
    is_ephemeral: bool
    data: bytes

    def encode(self) -> bytes:
        """Return the message in a stored form."""
        document = {
            "key_ids": [one.hex() for one in self.key_ids],
            "community": self.community.hex(),
            "topic_id": self.topic_id,
            "timestamp_ms": self.timestamp_ms,
            "signer": self.signer and self.signer.compressed.hex(),
            "is_ephemeral": self.is_ephemeral,
            "data": self.data.hex(),
        }
        return json.dumps(document).encode()

    @classmethod
    def decode(cls, name: str, value: bytes) -> "WaitingMessage":
        document: dict[str, Any] = json.loads(value)
        signer = document["signer"]
        return cls(
            bytes.fromhex(name),
            tuple(bytes.fromhex(one) for one in document["key_ids"]),
            bytes.fromhex(document["community"]),
            document["topic_id"],
            document["timestamp_ms"],
            None if signer is None else PublicKey(bytes.fromhex(signer)),
            document["is_ephemeral"],
            bytes.fromhex(document["data"]),
        )


class WaitingMessages:
    """Messages that wait for group keys, in memory and in a store. Beyond a limit, the oldest
    waiting messages are evicted.

    Args:
        store: keeps them.
        has_key: True if the key of an id is here.
    """

    def __init__(self, store: SessionStore, has_key: Callable[[bytes], bool]) -> None:
        self._store = store
        self._has_key = has_key
        self._ready: OrderedDict[bytes, None] = OrderedDict()
        self._waiting_bytes = 0
        self._waiting: OrderedDict[bytes, WaitingMessage] = OrderedDict()
        for name, value in store.rows("group_waiting"):
            self._wait(WaitingMessage.decode(name, value))

    @property
    def communities(self) -> frozenset[bytes]:
        """Communities that have waiting messages, by compressed public key."""
        return frozenset(one.community for one in self._waiting.values())

    def key_came(self, key_id: bytes) -> None:
        """Note that the key with an id has arrived."""
        self._ready.update(
            (one.id, None) for one in self._waiting.values() if key_id in one.key_ids
        )

    def wait(self, message: WaitingMessage) -> Refused:
        """Keep a message until one of its keys arrives. Beyond a limit, the oldest waiting messages
        are evicted."""
        reason = RefusalReason.WAITS_FOR_KEY
        detail = f"for the group key {message.key_ids[0].hex()[:150]}"
        if len(message.data) > MAX_WAITING_BYTES:
            reason, detail = RefusalReason.ENCRYPTED, f"{len(message.data)} bytes cannot wait"
        else:
            self._wait(message)
            self._store.put("group_waiting", message.id.hex(), message.encode())
        return Refused(reason, detail, message.signer)

    def _wait(self, message: WaitingMessage) -> None:
        self._forget(message.id)
        self._waiting[message.id] = message
        self._waiting_bytes += len(message.data)
        if any(map(self._has_key, message.key_ids)):
            self._ready[message.id] = None
        while len(self._waiting) > MAX_WAITING or self._waiting_bytes > MAX_WAITING_BYTES:
            self.done(next(iter(self._waiting)))

    def take_ready(self) -> list[WaitingMessage]:
        """Return messages that can be decrypted now, once in each run, descriptions first. Returned
        messages are kept until `done`."""
        ready = [self._waiting[one] for one in self._ready if one in self._waiting]
        self._ready.clear()
        return sorted(ready, key=lambda one: one.topic_id != f"0x{one.community.hex()}")

    def done(self, waiting_id: bytes) -> None:
        """Remove a waiting message, because it was handled or refused."""
        if self._forget(waiting_id):
            self._store.delete("group_waiting", waiting_id.hex())

    def _forget(self, waiting_id: bytes) -> bool:
        message = self._waiting.pop(waiting_id, None)
        if message is None:
            return False
        self._waiting_bytes -= len(message.data)
        self._ready.pop(waiting_id, None)
        return True
