"""Where ratchet sessions and group keys are kept: tables of names and values."""

from collections.abc import Iterable
from typing import Final, Protocol

TABLES: Final = ("direct_sessions", "direct_message_keys", "direct_bundles", "direct_pre_keys")


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
        """All rows."""
        return list(self.tables[table].items())

    def put(self, table: str, key: str, value: bytes) -> None:
        """Put or replace a row."""
        self.tables[table][key] = value

    def delete(self, table: str, key: str) -> None:
        """Delete a row."""
        self.tables[table].pop(key, None)
