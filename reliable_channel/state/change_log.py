"""Change log of a state file, with the rows of the small tables in the order of writing. A
transaction appends all its rows as one row. The rows of many transactions are moved into their
tables together.

Most rows are soon deleted again, such as the rows of acknowledged messages. Few rows therefore
reach their tables. A transaction writes one page of the change log, instead of one or two pages of
each table.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ..sds.changes import Row, Table, Value
from .rows import CHECKSUM, checksum, damaged, verified

TABLE: Final = "change_log"
MAX_WRITES: Final = 500
"""Maximum number of transactions whose rows wait in the change log."""
MAX_BYTES: Final = 512 * 1024
"""Maximum size of the waiting rows without the last transaction (bytes). Memory holds the waiting
rows, and a start after a crash has to move them."""
MAX_TRANSACTION_BYTES: Final = 128 * 1024
"""Maximum size of the rows of one transaction (bytes)."""
LARGE_BYTES: Final = 8 * 1024
"""Size (bytes) from which a row, such as a whole message, is written directly to its table. A large
row is thus written only once."""
_INTEGER_BYTES: Final = 8
_LENGTH_BYTES: Final = 4

Rows = dict[str, dict[Value, Row | None]]
"""Rows by table name and key, with None for a deleted row."""


class Packed(NamedTuple):
    """Encoded rows of a transaction, with the rows themselves."""

    data: bytes
    small: Rows
    large: Rows
    """Rows that are written directly to their tables."""

    @property
    def large_bytes(self) -> int:
        return sum(size_bytes(keys.values()) for keys in self.large.values())


class ChangeLog:
    """Appended rows of one file that are not in their tables yet, with the newest row for each
    key."""

    def __init__(self) -> None:
        self._rows: Rows = {}
        self._writes = self._size_bytes = 0

    def has_room(self, size_bytes: int = 0) -> bool:
        """Return True if the rows of another transaction may wait in the change log."""
        return (
            self._writes < MAX_WRITES
            and self._size_bytes <= MAX_BYTES
            and size_bytes <= MAX_TRANSACTION_BYTES
        )

    def appended(self, packed: Packed) -> None:
        """Note that the rows of a transaction were appended, and its large rows written to their
        tables."""
        self._writes += 1
        self._size_bytes += len(packed.data)
        for table, changed in packed.small.items():
            self._rows.setdefault(table, {}).update(changed)
        for table, keys in packed.large.items():
            for key in keys:
                self._rows.get(table, {}).pop(key, None)

    def move(self, connection: sqlite3.Connection) -> None:
        """Move all waiting rows into their tables, within a transaction. Call `clear` after the
        transaction is committed."""
        if self._writes:
            put_rows(connection, self._rows)
            connection.execute(f"DELETE FROM {TABLE}")

    def clear(self) -> None:
        self._rows = {}
        self._writes = self._size_bytes = 0

    def read(self, connection: sqlite3.Connection, path: Path, moved: int) -> int:
        """Read the appended rows of a file whose tables already have the first `moved`
        transactions. Return the number of transactions in the file.

        Raises:
            StateCorrupt: a row is damaged, or missing.
        """
        self.clear()
        rows = connection.execute(f"SELECT * FROM {TABLE} ORDER BY number")
        for number, packed in verified(path, TABLE, rows):
            moved += 1
            if number != moved or not isinstance(packed, bytes):
                raise damaged(path, f"row {moved} of {TABLE!r} is missing")
            self.appended(unpack(packed))
        return moved

    def count(self, connection: sqlite3.Connection, table: str) -> int:
        """Return the number of rows of a table, with the rows that wait in the change log."""
        keys = {key for (key, *_) in connection.execute(f"SELECT * FROM {table}")}
        for key, row in self._rows.get(table, {}).items():
            (keys.discard if row is None else keys.add)(key)
        return len(keys)


def create(connection: sqlite3.Connection) -> None:
    connection.execute(
        f"CREATE TABLE {TABLE} (number INTEGER PRIMARY KEY, rows BLOB NOT NULL, "
        f"{CHECKSUM} INTEGER NOT NULL) STRICT"
    )


def by_table(changed: Mapping[tuple[Table, Value], Row | None]) -> Rows:
    """Return changed rows by table, in the form in which a step has them."""
    rows: Rows = {}
    for (table, key), row in changed.items():
        rows.setdefault(table.name, {})[key] = row
    return rows


def put_rows(connection: sqlite3.Connection, rows: Rows) -> None:
    """Write rows into their existing tables."""
    for table, changed in rows.items():
        columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
        connection.executemany(
            f"DELETE FROM {table} WHERE {columns[0]} = ?",
            [(key,) for key, row in changed.items() if row is None],
        )
        connection.executemany(
            f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(columns))})",
            [(*row, checksum(table, row)) for row in changed.values() if row is not None],
        )


def size_bytes(rows: Iterable[Row | None]) -> int:
    """Return the size of the texts and bytes in rows, which is nearly the whole size (bytes)."""
    size = 0
    for row in rows:
        for value in row or ():
            if isinstance(value, (bytes, str)):
                size += len(value)
    return size


def pack(rows: Rows) -> Packed:
    """Encode the rows of a transaction. `+` precedes a row, `-` the key of a deleted row,
    and `=` the key of a large row.

    Raises:
        OverflowError: a number that a column cannot have.
    """
    parts: list[bytes] = []
    small: Rows = {}
    large: Rows = {}
    for table, changed in rows.items():
        name = _packed(table)
        for key, row in changed.items():
            values = _packed_row((key,) if row is None else row)
            if row is not None and len(values) > LARGE_BYTES:
                large.setdefault(table, {})[key] = row
                parts += (b"=\1", name, _packed(key))
            else:
                small.setdefault(table, {})[key] = row
                parts += (b"-\1" if row is None else b"+%c" % len(row), name, values)
    return Packed(b"".join(parts), small, large)


def unpack(data: bytes) -> Packed:
    """Decode the rows that `pack` has encoded. For large rows, the result has only the keys."""
    small: Rows = {}
    large: Rows = {}
    at = 0
    while at < len(data):
        kind, count = data[at : at + 1], data[at + 1]
        name, at = _unpacked(data, at + 2)
        table, values = str(name), list[Value]()
        for _ in range(count):
            value, at = _unpacked(data, at)
            values.append(value)
        row = tuple(values) if kind == b"+" else None
        (large if kind == b"=" else small).setdefault(table, {})[values[0]] = row
    return Packed(data, small, large)


def _packed(value: Value) -> bytes:
    return _packed_row((value,))


def _packed_row(row: Row) -> bytes:
    parts: list[bytes] = []
    for value in row:
        if isinstance(value, str):
            data = value.encode()
            parts += (b"s", len(data).to_bytes(_LENGTH_BYTES), data)
        elif isinstance(value, int):
            parts += (b"i", value.to_bytes(_INTEGER_BYTES, signed=True))
        elif value is None:
            parts.append(b"n")
        else:
            parts += (b"b", len(value).to_bytes(_LENGTH_BYTES), value)
    return b"".join(parts)


def _unpacked(packed: bytes, at: int) -> tuple[Value, int]:
    """The value at `at`, and where it ends."""
    kind, start = packed[at : at + 1], at + 1
    if kind == b"n":
        return None, start
    if kind == b"i":
        end = start + _INTEGER_BYTES
        return int.from_bytes(packed[start:end], signed=True), end
    begin = start + _LENGTH_BYTES
    end = begin + int.from_bytes(packed[start:begin])
    data = packed[begin:end]
    return (data.decode() if kind == b"s" else data), end
