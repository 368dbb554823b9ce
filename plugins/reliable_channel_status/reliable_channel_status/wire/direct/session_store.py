"""Store of ratchet sessions and group keys, as tables of names and values."""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from ..keys import PrivateKey, PublicKey
from .ratchet import Ratchet, RatchetState

MessageKeys: TypeAlias = OrderedDict[tuple[bytes, int], bytes]
"""Message keys of a session, by ratchet key and message number."""

TABLES: Final = (
    "direct_sessions",
    "direct_message_keys",
    "direct_bundles",
    "direct_pre_keys",
    "direct_installations",
)


class SessionStore(Protocol):
    """Interface of a store for sessions, with tables of keys and values."""

    def rows(self, table: str) -> Iterable[tuple[str, bytes]]:
        """Return all rows of a table in `TABLES`. The caller reads each table once, at the
        start."""

    def put(self, table: str, key: str, value: bytes) -> None:
        """Insert a row into a table, or replace it."""

    def delete(self, table: str, key: str) -> None:
        """Delete a row of a table, if the row exists."""


class DurableStore(SessionStore, Protocol):
    """Store whose changes are on disk after `write`."""

    def write(self) -> None:
        """Write all inserted and deleted rows to disk."""


class MemorySessionStore:
    """Store in memory, whose content ends with the process."""

    def __init__(self, tables: Iterable[str] = TABLES) -> None:
        self.tables: dict[str, dict[str, bytes]] = {name: {} for name in tables}

    def rows(self, table: str) -> Iterable[tuple[str, bytes]]:
        return list(self.tables[table].items())

    def put(self, table: str, key: str, value: bytes) -> None:
        """Insert a row into a table, or replace it."""
        self.tables[table][key] = value

    def delete(self, table: str, key: str) -> None:
        self.tables[table].pop(key, None)


@dataclass(slots=True)
class RatchetSession:
    """Ratchet session with a device of another user."""

    bundle_id: bytes
    ratchet: Ratchet
    ephemeral: bytes
    """Bundle and ephemeral key of the side that began the session."""
    is_confirmed: bool
    """True if the other side is known to have the session. Until the session is confirmed, each
    message carries the data that begins the session."""
    used: int
    """Counter of messages that the session received. New messages are encrypted with the session
    that has the highest counter."""
    retired: list[bytes] = field(default_factory=list)
    last_ms: int = 0
    """Time of the latest message that the session decrypted. An older message that cannot be
    decrypted counts as a repetition."""

    def encode(self) -> bytes:
        """Return the stored form of the session."""
        state = self.ratchet.state
        document = {
            "bundle_id": self.bundle_id.hex(),
            "ephemeral": self.ephemeral.hex(),
            "is_confirmed": self.is_confirmed,
            "used": self.used,
            "last_ms": self.last_ms,
            "retired": [one.hex() for one in self.retired],
            "root": state.root.hex(),
            "own": state.own.reveal().hex(),
            "peer": None if state.peer is None else state.peer.compressed.hex(),
            "sending": state.sending.hex(),
            "receiving": state.receiving.hex(),
            "counts": [state.sent, state.received, state.previous],
        }
        return json.dumps(document).encode()

    @classmethod
    def decode(
        cls, value: bytes, keys: MessageKeys, new_key: Callable[[], PrivateKey]
    ) -> "RatchetSession":
        """Return the session in a stored form.

        Args:
            value: what `encode` returned.
            keys: of messages that came out of order.
            new_key: gives ratchet keys.
        """
        document: dict[str, Any] = json.loads(value)
        peer = document["peer"]
        state = RatchetState(
            bytes.fromhex(document["root"]),
            PrivateKey.from_hex(document["own"]),
            None if peer is None else PublicKey(bytes.fromhex(peer)),
            bytes.fromhex(document["sending"]),
            bytes.fromhex(document["receiving"]),
            *document["counts"],
        )
        return cls(
            bytes.fromhex(document["bundle_id"]),
            Ratchet(state, keys, new_key=new_key),
            bytes.fromhex(document["ephemeral"]),
            document["is_confirmed"],
            document["used"],
            [bytes.fromhex(one) for one in document["retired"]],
            document["last_ms"],
        )
