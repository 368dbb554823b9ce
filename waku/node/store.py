"""Archive of the Store v3 service, with messages in SQLite, ordered by (timestamp, hash).

The sources are 13/WAKU2-STORE v3 and, where the specification gives no answer, nwaku's archive.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Final

from waku.models import StoreEntry, StorePage, StoreQuery, WakuMessage

__all__ = [
    "DEFAULT_PAGE_SIZE",
    "MAX_PAGE_SIZE",
    "Archive",
    "ArchiveError",
    "ArchiveUnavailable",
    "CursorNotFound",
    "QueryTooLong",
]

DEFAULT_PAGE_SIZE: Final = 20
MAX_PAGE_SIZE: Final = 100
SCHEMA_VERSION: Final = 1
TRIM_INTERVAL: Final = 256
"""Maximum number of new messages between two checks of capacity and age."""
TRIM_BYTES: Final = 1024 * 1024
"""Maximum size of new messages between two checks of capacity and age (bytes)."""

QUERY_STEPS: Final = 100_000
"""Number of SQLite steps between two checks of a query's duration, which take 1 to 2 ms."""
QUERY_LOOKS: Final = 10
"""Number of checks after which a query is cancelled. The query has then passed about 150,000
messages."""

_SCHEMA: Final = """
CREATE TABLE message (
    hash          BLOB NOT NULL UNIQUE,
    timestamp     INTEGER NOT NULL,
    pubsub_topic  TEXT NOT NULL,
    content_topic TEXT NOT NULL,
    payload       BLOB NOT NULL,
    meta          BLOB NOT NULL,
    version       INTEGER NOT NULL,
    proof         BLOB NOT NULL
) STRICT;
CREATE INDEX message_by_time ON message (timestamp, hash);
CREATE INDEX message_by_content_topic ON message (content_topic, timestamp, hash);
"""
_COLUMNS: Final = "hash, timestamp, pubsub_topic, content_topic, payload, meta, version, proof"
_INSERT: Final = f"INSERT OR IGNORE INTO message ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

_PROBE: Final = b""
"""A hash that no message has."""

_log = logging.getLogger("waku.node.store")

_Value = str | int | bytes
_Row = tuple[bytes, int, str, str, bytes, bytes, int, bytes]


def _make_private(path: str | Path) -> None:
    """Make a file that only its owner can read, unless it exists; SQLite gives its files beside it
    the same mode, and reports a path that cannot be used."""
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


class ArchiveError(Exception):
    """The archive of the Store service cannot be opened."""


class ArchiveUnavailable(ArchiveError):
    """The archive cannot be read or written now, because the disk is full or fails."""


class CursorNotFound(LookupError):
    """The query continues after a message that is not in the archive (any more)."""


class QueryTooLong(Exception):
    """The query passes too many messages that do not match its criteria."""


class Archive:
    """Archive of messages with a limited size. The oldest messages are evicted.

    Use the archive from one task at a time. A query reads about one page of rows for each content
    topic, even in a large archive.

    Args:
        path: of the SQLite file, or `:memory:`.
        capacity: messages to keep.
        capacity_bytes: bytes to take, indexes included; None takes what there is.

    Raises:
        ArchiveError: the file is not an archive, or a newer version wrote it.
    """

    def __init__(
        self,
        path: str | Path = ":memory:",
        *,
        capacity: int = 1_000_000,
        capacity_bytes: int | None = None,
    ) -> None:
        self.capacity = capacity
        self.capacity_bytes = capacity_bytes
        self.problem: str | None = None
        """Why the last write failed; None where it did not."""
        self._failed_bytes = 0
        self._until_trim = min(TRIM_INTERVAL, capacity)
        self._bytes_until_trim = TRIM_BYTES
        with ExitStack() as opened:
            try:
                if str(path) != ":memory:":
                    _make_private(path)
                # Opened in one thread and used in another is fine: only one uses it at a time.
                self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
                opened.callback(self._db.close)
                self._prepare(path)
                # Of a killed process.
                self._db.execute("DELETE FROM message WHERE hash = ?", (_PROBE,))
                self._count: int = self._db.execute("SELECT count(*) FROM message").fetchone()[0]
                self._page_bytes = self._pragma("page_size")
            except sqlite3.Error as error:
                what = f"cannot open the message store {str(path)!r}: {error}"
                raise ArchiveError(what) from error
            opened.pop_all()  # it stays open

    def _prepare(self, path: str | Path) -> None:
        # The node may lose the last messages when the machine dies (not when the process does).
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version == 0:
            self._db.executescript(
                f"BEGIN; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
            )
        elif version != SCHEMA_VERSION:
            raise ArchiveError(
                f"the message store {str(path)!r} has version {version}, but this program knows "
                f"version {SCHEMA_VERSION}; use a newer program or another file"
            )

    def close(self) -> None:
        """Close the file of the archive. A second call of `close` does nothing."""
        self._db.close()

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """Size of messages and indexes in the archive (bytes)."""
        return (self._pragma("page_count") - self._pragma("freelist_count")) * self._page_bytes

    def insert(self, message_hash: bytes, pubsub_topic: str, message: WakuMessage) -> bool:
        """Store a message, and return True if the message is new. A message that is already stored
        stays unchanged.

        Raises:
            ArchiveUnavailable: it is not kept.
        """
        row = (
            message_hash,
            message.timestamp,
            pubsub_topic,
            message.content_topic,
            message.payload,
            message.meta,
            message.version or 0,
            message.proof,
        )
        size_bytes = len(message.payload) + len(message.meta) + len(message.proof)
        with self._writing(size_bytes):
            added = self._db.execute(_INSERT, row).rowcount
        self._count += added
        self._until_trim -= 1
        self._bytes_until_trim -= size_bytes
        return bool(added)

    def check(self) -> None:
        """Write as much as in the last failed write, delete it again, and note the result in
        `problem`."""
        probe = (_PROBE, 0, "", "", bytes(self._failed_bytes), b"", 0, b"")
        with suppress(ArchiveUnavailable), self._writing(self._failed_bytes):
            self._db.execute(_INSERT, probe)
            self._db.execute("DELETE FROM message WHERE hash = ?", (_PROBE,))

    def trim(self, *, before_ns: int | None) -> None:
        """Evict messages older than `before_ns` or over the capacity, from time to time.

        The archive calls `trim` after each insertion, but most calls do nothing. If a call fails,
        the next call tries again.
        """
        if self._until_trim > 0 and self._bytes_until_trim > 0:
            return
        self._until_trim = min(TRIM_INTERVAL, self.capacity)
        self._bytes_until_trim = TRIM_BYTES
        with suppress(ArchiveUnavailable), self._writing():
            if before_ns is not None:
                self._delete("timestamp < ?", before_ns)
            self._delete_oldest(self._count - self.capacity)
            while self.capacity_bytes is not None and self._count:
                excess = self.size_bytes - self.capacity_bytes
                if excess <= 0:
                    return
                self._delete_oldest(max(1, self._count * excess // self.size_bytes))

    def _delete_oldest(self, number: int) -> None:
        if number > 0:
            oldest = "SELECT hash FROM message ORDER BY timestamp, hash LIMIT ?"
            self._delete(f"hash IN ({oldest})", number)

    def _delete(self, condition: str, value: int) -> None:
        deleted = self._db.execute(f"DELETE FROM message WHERE {condition}", (value,))
        self._count -= deleted.rowcount

    @contextmanager
    def _writing(self, size_bytes: int = 0) -> Iterator[None]:
        """Note how a write of some bytes ends; the log gets a line for each change.

        Raises:
            ArchiveUnavailable: it failed.
        """
        try:
            yield
        except sqlite3.Error as error:
            text = f"the message store cannot be written: {error}"
            if self.problem is None:
                _log.error("%s; nothing is published until it can", text)
            self.problem, self._failed_bytes = text, size_bytes
            raise ArchiveUnavailable(text) from error
        if self.problem is not None:
            _log.warning("the message store can be written again")
            self.problem = None

    def _pragma(self, name: str) -> int:
        value: int = self._db.execute(f"PRAGMA {name}").fetchone()[0]
        return value

    def newest_ns(self, until_ns: int) -> int | None:
        """Return the timestamp of the newest message before a time (ns since 1970), or None.

        The result is None if there is no message, or if the file cannot be read.
        """
        newest = "SELECT max(timestamp) FROM message WHERE timestamp <= ?"
        with suppress(sqlite3.Error):
            found: int | None = self._db.execute(newest, (until_ns,)).fetchone()[0]
            return found
        return None

    def query(self, query: StoreQuery) -> StorePage:
        """Return one page of messages, oldest message first, even if pages go backwards.

        Raises:
            CursorNotFound: the cursor names no message that is kept.
            QueryTooLong: it passes over too many messages.
            ArchiveUnavailable: the file cannot be read.
        """
        looks = count(1)
        self._db.set_progress_handler(lambda: next(looks) > QUERY_LOOKS, QUERY_STEPS)
        try:
            return self._query(query)
        except sqlite3.Error as error:
            if next(looks) > QUERY_LOOKS:
                raise QueryTooLong(
                    "the query reads too many messages; choose a shorter time span or fewer topics"
                ) from error
            raise ArchiveUnavailable(f"the message store cannot be read: {error}") from error
        finally:
            self._db.set_progress_handler(None, 0)

    def _query(self, query: StoreQuery) -> StorePage:
        size = min(query.page_size or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
        conditions, values = self._conditions(query)
        # One look a content topic, each along its index and a page long; merged, the first page
        # of all. Asking for them in one statement would sort everything they hold.
        topics: Sequence[str | None] = query.content_topics or (None,)
        rows = list(
            chain.from_iterable(
                self._select(topic, conditions, values, query.ascending, size + 1)
                for topic in dict.fromkeys(topics)
            )
        )
        rows.sort(key=lambda row: (row[1], row[0]), reverse=not query.ascending)
        more = len(rows) > size
        del rows[size:]
        cursor = rows[-1][0] if more else None
        if not query.ascending:
            rows.reverse()
        entries = tuple(_entry(row, include_data=query.include_data) for row in rows)
        return StorePage(entries, cursor)

    def _conditions(self, query: StoreQuery) -> tuple[list[str], list[_Value]]:
        conditions: list[str] = []
        values: list[_Value] = []
        if query.pubsub_topic is not None:
            conditions.append("pubsub_topic = ?")
            values.append(query.pubsub_topic)
        if query.hashes:
            conditions.append(f"hash IN ({', '.join('?' * len(query.hashes))})")
            values.extend(query.hashes)
        if query.start_time_ns is not None:
            conditions.append("timestamp >= ?")
            values.append(query.start_time_ns)
        if query.end_time_ns is not None:
            conditions.append("timestamp <= ?")
            values.append(query.end_time_ns)
        if query.cursor is not None:
            conditions.append(f"(timestamp, hash) {'>' if query.ascending else '<'} (?, ?)")
            values.extend((self._timestamp_of(query.cursor), query.cursor))
        return conditions, values

    def _select(
        self,
        content_topic: str | None,
        conditions: Iterable[str],
        values: Iterable[_Value],
        ascending: bool,
        limit: int,
    ) -> list[_Row]:
        where = list(conditions)
        bound = list(values)
        if content_topic is not None:
            where.append("content_topic = ?")
            bound.append(content_topic)
        direction = "ASC" if ascending else "DESC"
        return self._db.execute(
            f"SELECT {_COLUMNS} FROM message WHERE {' AND '.join(where) or 'TRUE'}"
            f" ORDER BY timestamp {direction}, hash {direction} LIMIT ?",
            (*bound, limit),
        ).fetchall()

    def _timestamp_of(self, message_hash: bytes) -> int:
        row: tuple[int] | None = self._db.execute(
            "SELECT timestamp FROM message WHERE hash = ?", (message_hash,)
        ).fetchone()
        if row is None:
            raise CursorNotFound(message_hash.hex())
        return row[0]


def _entry(row: _Row, *, include_data: bool) -> StoreEntry:
    message_hash, timestamp, pubsub_topic, content_topic, payload, meta, version, proof = row
    if not include_data:
        return StoreEntry(message_hash)
    message = WakuMessage(
        payload,
        content_topic,
        version=version,
        timestamp=timestamp,
        meta=meta,
        proof=proof,
    )
    return StoreEntry(message_hash, message, pubsub_topic)
