"""Saved state in an SQLite file in WAL mode, with one writing connection and one reading
connection.

Most transactions are fast (`is_quick`). Fast transactions only append to the WAL, so their caller
does not need another thread.

Rows of small tables are first appended to one table (`change_log.py`). Log entries are written
directly to their table. `schema.py`, `rows.py`, `continuity.py` and `ownership.py` check the file.
"""

import os
import sqlite3
import struct
from contextlib import suppress
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from .._contracts.state_store import Identity, Saved
from ..errors import StateError, StateMismatch, StateUnavailable
from ..sds.changes import Changes, Row, Table
from ..sds.message import LogEntry
from ..sds.options import LOG_WINDOW_ENTRIES
from . import checkpoints, continuity, schema
from .change_log import ChangeLog, Packed, pack, put_rows
from .checkpoints import Checkpoints
from .continuity import Continuity, check_in_place
from .ownership import Ownership, inode_of
from .rows import CHECKSUM, checksum, damaged
from .schema import ENTRY_COLUMNS
from .sqlite_archive import BUSY_TIMEOUT_S, SqliteArchive, id_hash, log_entries, state_error

Durability = Literal["process", "power"]
_SYNCHRONOUS: Final[dict[Durability, str]] = {"process": "NORMAL", "power": "FULL"}
PRIVATE_DIRECTORY: Final = 0o700
WRITER_CACHE_KIB: Final = 16_384
QUICK_CHANGES: Final = 300
"""Maximum number of changed rows and log entries in a transaction that counts as fast."""
QUICK_BYTES: Final = 64 * 1024
"""Maximum number of written bytes in a transaction that counts as fast."""
_TABLE: Final = itemgetter(0)
_CONTENT: Final = itemgetter(3)
_INSERT: Final = (
    f"INSERT INTO log ({ENTRY_COLUMNS}, id_hash, {CHECKSUM}) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_SET_HINT: Final = (
    f"UPDATE log SET retrieval_hint = ?, {CHECKSUM} = ? WHERE id_hash = ? AND message_id = ?"
)
_FAILURES: Final = (sqlite3.Error, UnicodeDecodeError, OverflowError, struct.error, OSError)


class _Prepared(NamedTuple):
    """Changes with their encoded rows and sizes."""

    changes: Changes
    packed: Packed
    entries: int
    """Number of log entries that are written."""
    content_bytes: int
    """Size of the content of new messages (bytes)."""


class SqliteStateStore:
    """Saved state of one participant in one SQLite file.

    Args:
        path: the file; its folder must exist.
        durability: what it outlives: the `process`, or a loss of `power` as well, for which every
            transaction waits for the disk.
        folder: below this one, folders of the path are made (mode 0700).
    """

    blocking = True
    outlives_channel = True

    def __init__(
        self, path: Path, *, durability: Durability = "process", folder: Path | None = None
    ) -> None:
        if durability not in get_args(Durability):
            raise ValueError(f"`durability` must be 'process' or 'power' (got {durability!r})")
        # SQLite puts the WAL beside what a symbolic link leads to; so do we with all else.
        self.path = Path(os.path.realpath(path))
        self._file = str(self.path)
        self._wal = f"{self._file}-wal"
        self._folder = folder
        self._durability: Durability = durability
        self._ownership = Ownership(self.path)
        self._continuity = Continuity(self.path)
        self._change_log = ChangeLog()
        self._connection: sqlite3.Connection | None = None
        self._wal_inode: tuple[int, int] | None = None
        self._tables: set[str] = set()
        """Names of the small tables of the file."""
        self._known: set[Table] = set()
        """Small tables that this process has written to."""
        self._prepared: _Prepared | None = None
        self._checkpoints = Checkpoints()
        self._is_unfinished = False
        """True if a signal that raised, such as Ctrl-C, took a write by surprise: then nothing more
        is written, and the next start finds the file as after a crash."""
        self.epoch = 0
        """How often a reader has had to begin anew."""

    def open(self, identity: Identity) -> Saved:
        """Open the state file, or create it.

        Raises:
            StateInUse, StateUnavailable, StateCorrupt, StateMismatch, StateVersionTooNew: the text
                says what to do.
        """
        try:
            if self._folder is not None and self._folder.is_dir():
                self.path.parent.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
            self._ownership.take()
            try:
                return self._open(identity)
            except BaseException:
                self._release()
                raise
        except _FAILURES as error:
            raise self._error(error) from error

    def is_quick(self, changes: Changes) -> bool:
        """Return True if the changes are only appended to the WAL, in the memory of the system."""
        return (
            self._durability == "process"
            and self._connection is not None
            and not self._checkpoints.is_due
            and not self._checkpoints.begins_wal
            and changes.trimmed_below is None
            and len(changes.rows) <= QUICK_CHANGES
            and self._change_log.has_room()
            and self._known.issuperset(map(_TABLE, changes.rows))
            and len(changes.rows) + (ready := self._prepare(changes)).entries <= QUICK_CHANGES
            and ready.content_bytes + len(ready.packed.data) <= QUICK_BYTES
        )

    def write(self, changes: Changes) -> None:
        """Write all changes in one transaction.

        Raises:
            StateUnavailable, StateCorrupt, StateInUse: nothing was written.
        """
        if self._is_unfinished:
            raise StateUnavailable(
                f"{self.path}: a write was interrupted, and only a restart shows whether the data "
                "were written; open the channel anew"
            )
        self._is_unfinished = True
        try:
            self._write(changes)
        except StateError:
            self._is_unfinished = False
            raise
        self._is_unfinished = False

    def _write(self, changes: Changes) -> None:
        # Used once, because what is not written now may grow until it is.
        (_, packed, entries, content_bytes), self._prepared = self._prepare(changes), None
        is_due, rows = self._checkpoints.is_due, changes.rows
        new = set(map(_TABLE, rows)) - self._known
        created = [table for table in new if table.name not in self._tables]
        try:
            connection = self._in_place()
            is_appended = not created and self._change_log.has_room(len(packed.data))
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                self._write_log(connection, changes)
                if is_appended:
                    if packed.large:
                        put_rows(connection, packed.large)
                    self._continuity.append(connection, packed.data)
                else:
                    for table in created:
                        schema.create_small_table(connection, table)
                    if created:
                        schema.seal(connection)
                    self._change_log.move(connection)
                    put_rows(connection, rows)
                    self._continuity.count(connection)
        except _FAILURES as error:
            raise self._error(error) from error
        self._known |= new
        self._tables.update(table.name for table in created)
        self._continuity.committed()
        if is_appended:
            self._change_log.appended(len(packed.data), rows, packed.large)
        else:
            self._change_log.clear()
        self._checkpoints.written(3 + 2 * entries, content_bytes + packed.large_bytes)
        if is_due or not is_appended or changes.trimmed_below is not None:
            self._checkpoints.run(connection)

    def archive(self) -> "SqliteArchive":
        """Return the archive of the log, for reading."""
        return SqliteArchive(self.path, lambda: self.epoch)

    def close(self) -> None:
        """Close the state file. A second call of `close` does nothing."""
        if self._connection is not None and not self._is_unfinished:
            # A disk that fails now: the next start finds the file as after a crash.
            with suppress(sqlite3.Error, StateError):
                check_in_place(self._file, self._ownership.inode)
                with self._connection:
                    self._connection.execute("BEGIN IMMEDIATE")
                    self._change_log.move(self._connection)
                    self._continuity.end(self._connection)
                self._continuity.committed()
        self._release()

    def _prepare(self, changes: Changes) -> _Prepared:
        """Return the encoded rows, which `is_quick` encoded for the `write` that follows it."""
        prepared = self._prepared
        if prepared is None or prepared.changes is not changes:
            try:
                packed = pack(changes.rows)
            except _FAILURES as error:
                raise self._error(error) from error
            entries = len(changes.entries) + len(changes.hints) + len(changes.removed)
            content_bytes = sum(map(len, map(_CONTENT, changes.entries.values())))
            self._prepared = prepared = _Prepared(changes, packed, entries, content_bytes)
        return prepared

    def _release(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._continuity.close()
        self._ownership.release()

    def _open(self, identity: Identity) -> Saved:
        had_wal = Path(self._wal).exists()
        schema.examine(self.path)
        self._connection = connection = self._connect()
        is_new = not schema.version(connection)
        if is_new:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # for `prune`
        else:
            schema.check_whole(connection, self.path)
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        schema.migrate(connection)
        self._check_identity(connection, identity)
        self._move_rows(connection)
        tables, newest = self._load(connection)
        rolled_back = self._continuity.begin(connection, is_new=is_new, had_wal=had_wal)
        self._wal_inode = inode_of(self._wal)
        return Saved(tables, newest, rolled_back)

    def _connect(self) -> sqlite3.Connection:
        # Two threads use it, one after the other: `is_quick` says which.
        connection = sqlite3.connect(
            self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self._durability]}")
            connection.execute(f"PRAGMA cache_size = -{WRITER_CACHE_KIB}")
            checkpoints.prepare(connection)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _check_identity(self, connection: sqlite3.Connection, identity: Identity) -> None:
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

    def _move_rows(self, connection: sqlite3.Connection) -> None:
        """Move what the last owner of the file did not move any more."""
        noted = continuity.noted_commits(continuity.values(connection, self.path))
        commits = self._change_log.read(connection, self.path, noted)
        if commits > noted:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                self._change_log.move(connection)
                continuity.put(connection, "commits", commits)
            self._change_log.clear()

    def _load(self, connection: sqlite3.Connection) -> tuple[dict[str, list[Row]], list[LogEntry]]:
        tables = dict(schema.small_tables(connection, self.path))
        self._tables = set(tables)
        rows = connection.execute(
            f"SELECT {ENTRY_COLUMNS}, {CHECKSUM} FROM log "
            "ORDER BY lamport_timestamp DESC, message_id DESC LIMIT ?",
            (LOG_WINDOW_ENTRIES,),
        ).fetchall()
        newest = log_entries(self.path, rows[::-1])
        if any(one.key >= other.key for one, other in pairwise(newest)):
            raise damaged(self.path, "its log is not in order")
        return tables, newest

    def _in_place(self) -> sqlite3.Connection:
        """The connection, once the file and its WAL are seen to lie where they were."""
        if self._ownership.inode is None:
            raise StateUnavailable(f"{self.path} is not open")
        check_in_place(self._file, self._ownership.inode)
        if self._connection is None:
            self._connection = self._connect()
            self._connection.execute("SELECT COUNT(*) FROM sqlite_schema")  # makes the WAL
            self._wal_inode = inode_of(self._wal)
        if inode_of(self._wal) != self._wal_inode:
            self._save_lost_wal(self._connection)
        return self._connection

    def _save_lost_wal(self, connection: sqlite3.Connection) -> None:
        """Bring into the file what stands in a WAL that was deleted: it is still open here. A new
        one is begun with the next write, for which readers must begin anew as well."""
        (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not is_busy:
            self.epoch += 1
            connection.close()
            self._connection = None
        raise StateUnavailable(
            f"{self._wal} was deleted or replaced during use; the written data are "
            f"{('not safe yet' if is_busy else 'safe in the file itself')}"
        )

    def _error(self, error: Exception) -> StateError:
        if isinstance(error, OSError):
            return StateUnavailable(f"{self.path} cannot be used: {error}")
        return state_error(self.path, error)

    def _write_log(self, connection: sqlite3.Connection, changes: Changes) -> None:
        if changes.removed:
            connection.executemany(
                "DELETE FROM log WHERE id_hash = ? AND message_id = ?",
                [(id_hash(message_id), message_id) for message_id in changes.removed],
            )
        if changes.entries:
            connection.executemany(
                _INSERT,
                [(*row, id_hash(row[0]), checksum("log", row)) for row in changes.entries.values()],
            )
        if changes.hints:
            connection.executemany(
                _SET_HINT,
                [
                    (row[4], checksum("log", row), id_hash(row[0]), row[0])
                    for row in changes.hints.values()
                ],
            )
        if changes.trimmed_below is not None:
            lamport_timestamp, message_id = changes.trimmed_below
            connection.execute(
                "DELETE FROM log WHERE (lamport_timestamp, message_id) < (?, ?)",
                (lamport_timestamp, message_id),
            )


__all__ = ["Durability", "SqliteStateStore"]
