"""Check that a state file contains everything that its owner wrote.

A state file counts its transactions. Each transaction has a row in the change log
(`change_log.py`). The table `state_file` has the number of the last transaction whose rows were
moved. The count is also in the file `<path>.commits`, which is written after each transaction. A
file with a lower count was set back, for example by a restored copy or a power failure. A file
without `.commits` and without a WAL was copied, unless it was closed normally.
"""

import os
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple
from zlib import crc32

from .._contracts.state_store import RolledBack
from ..errors import StateInUse, StateUnavailable
from ..sds.changes import Value
from . import change_log
from .ownership import PRIVATE_FILE, inode_of
from .rows import checksum, verified

TABLE = "state_file"
COPIED_AT_MS = "copied_at_ms"
"""Key of the time at which a copy was made, until a channel opens the copy."""


_APPEND = (
    f"INSERT OR IGNORE INTO {change_log.TABLE} SELECT ?, ?, ? "
    f"FROM {TABLE} WHERE name = 'commits' AND value = ?"
)


class _Count(NamedTuple):
    """How many transactions which file has been through."""

    file_id: str
    commits: int

    @property
    def line(self) -> bytes:
        what = f"{self.file_id} {self.commits:020}"
        return f"{what} {crc32(what.encode()):08x}\n".encode()


class Continuity:
    """Counter of the transactions of an open state file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._beside = Path(f"{path}.commits")
        self._descriptor: int | None = None
        self._count = _Count("", 0)
        self._noted = self._to_note = 0
        """The count that stands in `state_file`, and the one that stands there after a commit."""

    def begin(
        self, connection: sqlite3.Connection, *, is_new: bool, had_wal: bool
    ) -> RolledBack | None:
        """Begin to count transactions. Return a description of the missing data, or None."""
        found = values(connection, self._path)
        beside = self._read()
        if "file_id" in found:
            self._count = _Count(str(found["file_id"]), noted_commits(found))
            lacks = self._lacks(beside, left_open=not found["closed"] and not had_wal)
        else:
            self._count = _Count(token_hex(8), 0)
            lacks = self._gone(beside) if is_new and beside is not None else None
        connection.execute("BEGIN IMMEDIATE")
        for name, value in (
            ("file_id", self._count.file_id),
            ("commits", self._count.commits),
            ("closed", 0),
        ):
            put(connection, name, value)
        connection.execute(f"DELETE FROM {TABLE} WHERE name = ?", (COPIED_AT_MS,))
        self._noted = self._count.commits
        self.count(connection)
        connection.execute("COMMIT")
        # From now on the file itself says that it is open, whatever becomes of its WAL.
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        with suppress(OSError):  # without it less is noticed, and nothing is lost
            flags = os.O_RDWR | os.O_CREAT
            self._descriptor = os.open(self._beside, flags, PRIVATE_FILE)
        self.committed()
        return lacks

    def append(self, connection: sqlite3.Connection, packed: bytes) -> None:
        """Count the current transaction, whose rows are appended to the change log.

        Raises:
            StateInUse: another process wrote since the last one.
        """
        now = self._count.commits + 1
        self._to_note = self._noted
        self._check(
            connection.execute(
                _APPEND,
                (now, packed, checksum(change_log.TABLE, (now, packed)), self._noted),
            )
        )

    def count(self, connection: sqlite3.Connection) -> None:
        """Count the current transaction, which appends no rows to the change log.

        Raises:
            StateInUse: another process wrote since the last one.
        """
        now = self._count.commits + 1
        self._to_note = now
        self._check(
            connection.execute(
                f"UPDATE {TABLE} SET value = ?, row_checksum = ? "
                "WHERE name = 'commits' AND value = ?",
                (now, checksum(TABLE, ("commits", now)), self._noted),
            )
        )

    def _check(self, counted: sqlite3.Cursor) -> None:
        if counted.rowcount != 1:
            raise StateInUse(
                f"another process wrote to {self._path} meanwhile; a state has one owner at a "
                "time: stop the other process, then start again"
            )

    def committed(self) -> None:
        """Note that the counted transaction is written."""
        self._noted = self._to_note
        self._count = _Count(self._count.file_id, self._count.commits + 1)
        if self._descriptor is not None:
            with suppress(OSError):
                os.pwrite(self._descriptor, self._count.line, 0)

    def end(self, connection: sqlite3.Connection) -> None:
        """Note that the file is closed normally, in a transaction that moves all rows."""
        put(connection, "closed", 1)
        self.count(connection)

    def close(self) -> None:
        """Stop counting transactions, and close the file `.commits`. A second call of `close` does
        nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def read(self, connection: sqlite3.Connection) -> str:
        """Return a text about the data that the file lacks, without changing the file. The text is
        empty if no data is known to be missing."""
        beside = self._read()  # before the file, which a channel may write to meanwhile
        found = values(connection, self._path)
        if "file_id" not in found:
            return ""
        commits = change_log.ChangeLog().read(connection, self._path, noted_commits(found))
        self._count = _Count(str(found["file_id"]), commits)
        has_wal = Path(f"{self._path}-wal").exists() or COPIED_AT_MS in found
        lacks = self._lacks(beside, left_open=not found["closed"] and not has_wal)
        return lacks.reason if lacks else ""

    def _read(self) -> _Count | None:
        try:
            line = self._beside.read_bytes()
            file_id, commits, _ = line.decode().split()
            count = _Count(file_id, int(commits))
        except (OSError, ValueError):
            return None
        return count if count.line == line else None

    def _gone(self, beside: _Count) -> RolledBack:
        return RolledBack(
            f"{self._path} was used before and is gone, with all of its {beside.commits} writes",
            beside.commits,
        )

    def _lacks(self, beside: _Count | None, *, left_open: bool) -> RolledBack | None:
        if beside is None:
            if not left_open:
                return None
            if self._path.stat().st_nlink > 1:
                raise StateUnavailable(
                    f"{self._path} was left open under another name (the file is hard linked), "
                    "and its newest changes lie beside the other name; open the state under the "
                    "other name"
                )
            return RolledBack(
                f"{self._path} was not closed and has no -wal file beside it: it is a copy that "
                "was made while it was in use, or its -wal was deleted; what was written later is "
                "missing",
                None,
            )
        if beside.file_id != self._count.file_id:
            return RolledBack(
                f"{self._path} was replaced: another state file was used here before "
                f"({beside.commits} writes)",
                None,
            )
        if (missing := beside.commits - self._count.commits) > 0:
            return RolledBack(
                f"{self._path} lacks the last {missing} writes: an older copy was restored, its "
                "-wal was deleted or cut short, or power failed",
                missing,
            )
        return None


def check_in_place(path: Path | str, opened: tuple[int, int] | None) -> None:
    """Check that an open file is still the file at its path.

    Raises:
        StateUnavailable: it was deleted or replaced.
    """
    found = inode_of(path)
    if found != opened:
        what = "deleted" if found is None else "replaced by another file"
        raise StateUnavailable(
            f"the state {path} was {what} during use; put the file back, or start again with the "
            "present file"
        )


def values(connection: sqlite3.Connection, path: Path) -> dict[Value, Value]:
    """Return the values that a file contains about itself.

    Raises:
        StateCorrupt: a row is damaged.
    """
    rows = connection.execute(f"SELECT * FROM {TABLE}").fetchall()
    return {name: value for name, value in verified(path, TABLE, rows)}  # noqa: C416 - for mypy


def noted_commits(found: Mapping[Value, Value]) -> int:
    """Return how many transactions a file had when its rows were last moved."""
    return int(found.get("commits") or 0)


def put(connection: sqlite3.Connection, name: str, value: Value) -> None:
    """Write a value of the file about itself, within a transaction."""
    connection.execute(
        f"INSERT OR REPLACE INTO {TABLE} VALUES (?, ?, ?)",
        (name, value, checksum(TABLE, (name, value))),
    )


def copied_at_ms(connection: sqlite3.Connection, path: Path) -> int | None:
    """Return the time at which a copy of a state file was made (ms), or None after its first
    opening."""
    found = values(connection, path).get(COPIED_AT_MS)
    return found if isinstance(found, int) else None
