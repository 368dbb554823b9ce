"""Archive of the log in an SQLite state file, for reading while the file is being written."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from ..errors import StateError, StateUnavailable
from ..sds.changes import LogKey, Value
from ..sds.message import LogEntry
from .rows import CHECKSUM, damaged, verified
from .schema import ENTRY_COLUMNS

BUSY_TIMEOUT_S: Final = 2.0
READER_CACHE_KIB: Final = 4_096
_PAGE_ENTRIES: Final = 1_000
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""Our statements are right: one that a file's tables do not fit means that these are not ours."""
_IN_ORDER: Final = "ORDER BY lamport_timestamp, message_id"


class SqliteArchive:
    """Archive of the log in a state file, for reading in another thread than the writer's.

    Raises:
        StateError: in each look-up; the file cannot be read.
    """

    def __init__(self, path: Path, epoch: Callable[[], int] = lambda: 0) -> None:
        self._path = path
        self._epoch = epoch
        self._begun_in = 0
        self._connection: sqlite3.Connection | None = None

    def get(self, message_id: str) -> LogEntry | None:
        """Return the entry of a message id, or None."""
        found = self._entries(
            "id_hash = :hash AND message_id = :id",
            {"hash": id_hash(message_id), "id": message_id},
        )
        return found[0] if found else None

    def entries(self, start: LogKey | None, end: LogKey) -> Iterator[LogEntry]:
        """Return the entries from `start` to before `end`, in log order.

        The method reads pages, because an open cursor would keep SQLite from shortening the WAL.
        """
        after = start
        while True:
            where, values = _between(after, end)
            page = self._entries(f"{where} {_IN_ORDER} LIMIT {_PAGE_ENTRIES}", values)
            yield from page
            if len(page) < _PAGE_ENTRIES:
                return
            after = (page[-1].lamport_timestamp, page[-1].message_id + "\0")

    def count(self, start: LogKey | None, end: LogKey) -> int:
        where, values = _between(start, end)
        return int(self._read(f"SELECT COUNT(*) FROM log WHERE {where}", values)[0][0])

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _entries(self, where: str, values: Mapping[str, Value]) -> list[LogEntry]:
        rows = self._read(f"SELECT {ENTRY_COLUMNS}, {CHECKSUM} FROM log WHERE {where}", values)
        return log_entries(self._path, rows)

    def _read(self, statement: str, values: Mapping[str, Value]) -> list[tuple[Any, ...]]:
        try:
            return self._reader().execute(statement, dict(values)).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise state_error(self._path, error) from error

    def _reader(self) -> sqlite3.Connection:
        if self._begun_in != self._epoch():
            self.close()
        if self._connection is None:
            self._begun_in = self._epoch()
            self._connection = sqlite3.connect(
                f"{self._path.absolute().as_uri()}?mode=ro",
                uri=True,
                timeout=BUSY_TIMEOUT_S,
                isolation_level=None,
            )
            self._connection.execute(f"PRAGMA cache_size = -{READER_CACHE_KIB}")
        return self._connection


def _between(start: LogKey | None, end: LogKey) -> tuple[str, dict[str, Value]]:
    """The condition that an entry stands from `start` on and before `end`; in terms that the index
    over Lamport timestamps alone can answer."""
    where = [
        "lamport_timestamp <= :end",
        "NOT (lamport_timestamp = :end AND message_id >= :end_id)",
    ]
    values: dict[str, Value] = {"end": end[0], "end_id": end[1]}
    if start is not None:
        where += [
            "lamport_timestamp >= :start",
            "NOT (lamport_timestamp = :start AND message_id < :start_id)",
        ]
        values |= {"start": start[0], "start_id": start[1]}
    return " AND ".join(where), values


def log_entries(path: Path, rows: Sequence[tuple[Any, ...]]) -> list[LogEntry]:
    """Return the log entries that the given rows contain.

    Raises:
        StateCorrupt: one is damaged.
    """
    return [LogEntry(*row) for row in verified(path, "log", rows)]  # type: ignore[arg-type]


def id_hash(message_id: str) -> int:
    """Return the indexed hash of a message id."""
    return int.from_bytes(sha256(message_id.encode()).digest()[:8], signed=True)


def state_error(path: Path, error: Exception) -> StateError:
    """Return the state error that corresponds to an error of SQLite."""
    # A primary result code stands in the low byte of an extended one.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    # Python reports text that is not UTF-8 in two ways, neither of them with a code of SQLite's.
    undecodable = isinstance(error, UnicodeDecodeError) or "decode to UTF-8" in str(error)
    if code in _DAMAGED or undecodable:
        return damaged(path, str(error))
    return StateUnavailable(
        f"{path} cannot be used ({error}); check free space, permissions and other users"
    )
