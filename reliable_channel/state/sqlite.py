"""State in an SQLite file: WAL, one writing connection in the writer's thread, and one for reading
the log in the channel's (`sqlite_archive.py`)."""

import sqlite3
from pathlib import Path
from typing import Final, Literal, get_args

from filelock import FileLock, Timeout

from ..sds.changes import Changes, Row, Table, Value
from ..sds.log import LogEntry
from ..sds.options import LOG_WINDOW_ENTRIES
from . import schema
from .base import Identity, Saved
from .errors import (
    StateCorrupt,
    StateError,
    StateInUse,
    StateMismatch,
    StateUnavailable,
    StateVersionTooNew,
)
from .sqlite_archive import BUSY_TIMEOUT_S, ENTRY_COLUMNS, SqliteArchive, id_hash, state_error

Durability = Literal["process", "power"]
_SYNCHRONOUS: Final[dict[Durability, str]] = {"process": "NORMAL", "power": "FULL"}
WRITER_CACHE_KIB: Final = 16_384


class SqliteStateStore:
    """The state of one participant in one file.

    `durability` says what it outlives: the `process`, or a loss of `power` as well, for which every
    transaction waits for the disk.
    """

    blocking = True
    outlives_channel = True

    def __init__(self, path: Path, *, durability: Durability = "process") -> None:
        if durability not in get_args(Durability):
            raise ValueError(f"durability is {durability!r}; allowed are 'process' and 'power'")
        self.path = path
        self._durability: Durability = durability
        self._lock = FileLock(f"{path}.lock", thread_local=False)
        self._connection: sqlite3.Connection | None = None
        self._tables: set[str] = set()

    def open(self, identity: Identity) -> Saved:
        """Open or begin the file.

        Raises:
            StateInUse, StateUnavailable, StateCorrupt, StateMismatch, StateVersionTooNew: the text
                says what to do.
        """
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise StateInUse(
                f"{self.path} is in use; a state has one owner at a time: stop the other process, "
                "or give this one a state of its own"
            ) from None
        except OSError as error:
            raise StateUnavailable(f"{self.path} cannot be opened: {error}") from error
        try:
            self._connection = self._connect()
            self._check(self._connection, identity)
            return self._load(self._connection)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self.close()
            raise state_error(self.path, error) from error
        except StateError:
            self.close()
            raise

    def write(self, changes: Changes) -> None:
        """Write all in one transaction.

        Raises:
            StateUnavailable, StateCorrupt: nothing was written.
        """
        connection = self._opened()
        try:
            connection.execute("BEGIN IMMEDIATE")
            created = self._write(connection, changes)
            connection.execute("COMMIT")
            self._tables |= created
        except (sqlite3.Error, OverflowError) as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise state_error(self.path, error) from error

    def archive(self) -> "SqliteArchive":
        """The log for reading."""
        return SqliteArchive(self.path)

    def close(self) -> None:
        """Close the file; twice does nothing."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._lock.release()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self._durability]}")
        connection.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KIB}")
        return connection

    def _check(self, connection: sqlite3.Connection, identity: Identity) -> None:
        written_by = schema.version(connection)
        if written_by > len(schema.MIGRATIONS):
            raise StateVersionTooNew(
                f"{self.path} has version {written_by} and this package knows up to "
                f"{len(schema.MIGRATIONS)}: use the newer one that wrote it"
            )
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if written_by and application != schema.APPLICATION_ID:
            raise StateCorrupt(f"{self.path} is a database of something else; give another path")
        schema.migrate(connection)
        found = connection.execute("SELECT * FROM identity").fetchone()
        ours = (identity.channel_id, identity.sender_id, identity.wire_profile)
        if found is None:
            connection.execute("INSERT INTO identity VALUES (?, ?, ?)", ours)
        elif tuple(found) != ours:
            names = ("channel_id", "sender_id", "wire_profile")
            differ = ", ".join(
                f"{name} {theirs!r} (not {mine!r})"
                for name, theirs, mine in zip(names, found, ours, strict=True)
                if theirs != mine
            )
            raise StateMismatch(f"{self.path} belongs to {differ}; give another path")

    def _load(self, connection: sqlite3.Connection) -> Saved:
        tables = dict(schema.small_tables(connection))
        self._tables = set(tables)
        newest = connection.execute(
            f"SELECT {ENTRY_COLUMNS} FROM log "
            "ORDER BY lamport_timestamp DESC, message_id DESC LIMIT ?",
            (LOG_WINDOW_ENTRIES,),
        ).fetchall()
        return Saved(tables, [LogEntry(*row) for row in reversed(newest)])

    def _write(self, connection: sqlite3.Connection, changes: Changes) -> set[str]:
        """Write, and return the names of tables that were not there before."""
        if changes.removed:
            connection.executemany(
                "DELETE FROM log WHERE id_hash = ? AND message_id = ?",
                [(id_hash(message_id), message_id) for message_id in changes.removed],
            )
        connection.executemany(
            f"INSERT INTO log ({ENTRY_COLUMNS}, id_hash) VALUES (?, ?, ?, ?, ?, ?)",
            [(*row, id_hash(row[0])) for row in changes.entries.values()],
        )
        if changes.hints:
            connection.executemany(
                "UPDATE log SET retrieval_hint = ? WHERE id_hash = ? AND message_id = ?",
                [(hint, id_hash(i), i) for i, hint in changes.hints.items()],
            )
        if changes.trimmed_below is not None:
            lamport_timestamp, message_id = changes.trimmed_below
            connection.execute(
                "DELETE FROM log WHERE lamport_timestamp < ?1 "
                "OR (lamport_timestamp = ?1 AND message_id < ?2)",
                (lamport_timestamp, message_id),
            )
        by_table = _by_table(changes)
        created = {table.name for table in by_table} - self._tables
        for table, (put, deleted) in by_table.items():
            if table.name in created:
                schema.create_small_table(connection, table)
            _write_rows(connection, table, put, deleted)
        return created

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise StateUnavailable(f"{self.path} is not open")
        return self._connection


def _write_rows(
    connection: sqlite3.Connection, table: Table, put: list[Row], deleted: list[tuple[Value]]
) -> None:
    if put:
        places = ", ".join("?" * len(table.columns))
        connection.executemany(f"INSERT OR REPLACE INTO {table.name} VALUES ({places})", put)
    if deleted:
        key = table.columns[0][0]
        connection.executemany(f"DELETE FROM {table.name} WHERE {key} = ?", deleted)


def _by_table(changes: Changes) -> dict[Table, tuple[list[Row], list[tuple[Value]]]]:
    found: dict[Table, tuple[list[Row], list[tuple[Value]]]] = {}
    for (table, key), row in changes.rows.items():
        put, deleted = found.setdefault(table, ([], []))
        if row is None:
            deleted.append((key,))
        else:
            put.append(row)
    return found


__all__ = ["Durability", "SqliteStateStore"]
