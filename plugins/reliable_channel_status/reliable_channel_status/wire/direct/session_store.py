"""Where ratchet sessions and group keys are kept: tables of names and values."""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from ..keys import PrivateKey, PublicKey
from .ratchet import Ratchet, RatchetState

MessageKeys: TypeAlias = OrderedDict[tuple[bytes, int], bytes]
"""Keys of messages by ratchet key and number."""

TABLES: Final = (
    "direct_sessions",
    "direct_message_keys",
    "direct_bundles",
    "direct_pre_keys",
    "direct_installations",
)


class SessionStore(Protocol):
    """Where sessions are kept: tables of keys and values."""

    def rows(self, table: str) -> Iterable[tuple[str, bytes]]:
        """All rows of one of `TABLES`; called once."""

    def put(self, table: str, key: str, value: bytes) -> None:
        """Put or replace a row."""

    def delete(self, table: str, key: str) -> None:
        """Delete a row, if it is there."""


class DurableStore(SessionStore, Protocol):
    """A store whose changes are on disk after `write`."""

    def write(self) -> None:
        """Write what was put and deleted."""


class MemorySessionStore:
    """A store that ends with the process."""

    def __init__(self, tables: Iterable[str] = TABLES) -> None:
        self.tables: dict[str, dict[str, bytes]] = {name: {} for name in tables}

    def rows(self, table: str) -> Iterable[tuple[str, bytes]]:
        return list(self.tables[table].items())

    def put(self, table: str, key: str, value: bytes) -> None:
        """Put or replace a row."""
        self.tables[table][key] = value

    def delete(self, table: str, key: str) -> None:
        self.tables[table].pop(key, None)


@dataclass(slots=True)
class RatchetSession:
    """A ratchet session with one device."""

    bundle_id: bytes
    ratchet: Ratchet
    ephemeral: bytes
    """Of the side that began."""
    is_confirmed: bool
    """Whether the other is known to have it; until then each message has what begins it."""
    used: int
    """Grows with each message that is received: the highest is written on."""
    retired: list[bytes] = field(default_factory=list)
    last_ms: int = 0
    """Time of the latest message that was read: what is older and does not open was here before."""

    def encode(self) -> bytes:
        """Return it as the store keeps it."""
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
        """Read it from the store.

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
