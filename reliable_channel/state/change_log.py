"""Change log of a state file, with the rows of the small tables in the order of writing. A
transaction appends all its rows as one row. The rows of many transactions are moved into their
tables together.

Most rows are soon deleted again, such as the rows of acknowledged messages. Few rows therefore
reach their tables. A transaction writes one page of the change log, instead of one or two pages of
each table.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from struct import Struct
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
"""Size of bytes from which their row, such as a whole message, is written directly to its table. A
large row is thus written only once."""
_INTEGER_BYTES: Final = 8
_LENGTH_BYTES: Final = 4
_LENGTH: Final = Struct(">cI").pack
_NUMBER: Final = Struct(">cq").pack
_PUT: Final = [b"+%c" % count for count in range(256)]
"""What precedes a row of as many values."""

Key = tuple[Table, Value]
Rows = Mapping[Key, Row | None]
"""Rows by table and key, with None for a deleted row."""


class Packed(NamedTuple):
    """Encoded rows of a transaction."""

    data: bytes
    large: Rows
    """Rows that are written directly to their tables."""

    @property
    def large_bytes(self) -> int:
        return sum(map(_size_bytes, filter(None, self.large.values())))


class ChangeLog:
    """Appended rows of one file that are not in their tables yet, with the newest row for each
    key."""

    def __init__(self) -> None:
        self._rows: dict[Key, Row | None] = {}
        self._writes = self._size_bytes = 0

    def has_room(self, size_bytes: int = 0) -> bool:
        """Return True if the rows of another transaction may wait in the change log."""
        return (
            self._writes < MAX_WRITES
            and self._size_bytes <= MAX_BYTES
            and size_bytes <= MAX_TRANSACTION_BYTES
        )

    def appended(self, size_bytes: int, rows: Rows, large: Iterable[Key]) -> None:
        """Note that the rows of a transaction were appended, and its large rows written to their
        tables."""
        self._writes += 1
        self._size_bytes += size_bytes
        self._rows.update(rows)
        for key in large:
            self._rows.pop(key, None)

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
        for number, data in verified(path, TABLE, rows):
            moved += 1
            if number != moved or not isinstance(data, bytes):
                raise damaged(path, f"row {moved} of {TABLE!r} is missing")
            self.appended(len(data), *unpack(data))
        return moved

    def count(self, connection: sqlite3.Connection, table: str) -> int:
        """Return the number of rows of a table, with the rows that wait in the change log."""
        keys = {key for (key, *_) in connection.execute(f"SELECT * FROM {table}")}
        for (changed, key), row in self._rows.items():
            if changed.name == table:
                (keys.discard if row is None else keys.add)(key)
        return len(keys)


def create(connection: sqlite3.Connection) -> None:
    connection.execute(
        f"CREATE TABLE {TABLE} (number INTEGER PRIMARY KEY, rows BLOB NOT NULL, "
        f"{CHECKSUM} INTEGER NOT NULL) STRICT"
    )


def put_rows(connection: sqlite3.Connection, rows: Rows) -> None:
    """Write rows into their existing tables."""
    tables: dict[str, dict[Value, Row | None]] = {}
    for (table, key), row in rows.items():
        tables.setdefault(table.name, {})[key] = row
    for name, changed in tables.items():
        columns = [column for _, column, *_ in connection.execute(f"PRAGMA table_info({name})")]
        connection.executemany(
            f"DELETE FROM {name} WHERE {columns[0]} = ?",
            [(key,) for key, row in changed.items() if row is None],
        )
        connection.executemany(
            f"INSERT OR REPLACE INTO {name} VALUES ({', '.join('?' * len(columns))})",
            [(*row, checksum(name, row)) for row in changed.values() if row is not None],
        )


def pack(rows: Rows, large: Rows | None = None) -> Packed:
    """Encode the rows of a transaction. `+` precedes a row, `-` the key of a deleted row, and `=`
    the key of a large row.

    Raises:
        struct.error: a number that a column cannot have.
    """
    parts: list[bytes] = []
    for (table, key), row in rows.items():
        if row is None or (large and (table, key) in large):
            parts += (b"=\1" if row else b"-\1", _NAMES[table])
            row = (key,)
        else:
            parts += (_PUT[len(row)], _NAMES[table])
        for value in row:
            if (kind := type(value)) is str:  # faster than `isinstance`
                text = value.encode()  # type: ignore[union-attr]
                parts += (_TEXTS[len(text)], text)
            elif value is None:
                parts.append(b"n")
            elif kind is not bytes:
                parts.append(_NUMBER(b"i", value))
            elif large is None and len(value) > LARGE_BYTES:  # type: ignore[arg-type]
                large = {
                    k: row for k, row in rows.items() if row and _size_bytes(row) > LARGE_BYTES
                }
                return pack(rows, large)
            else:
                parts += (_LENGTH(b"b", len(value)), value)  # type: ignore[arg-type]
    return Packed(b"".join(parts), large or {})


def unpack(data: bytes) -> tuple[dict[Key, Row | None], set[Key]]:
    """Return the rows that `pack` has encoded, and the keys of large rows."""
    rows, large, at = dict[Key, Row | None](), set[Key](), 0
    while at < len(data):
        kind, count = data[at : at + 1], data[at + 1]
        name, at = _unpacked(data, at + 2)
        values = list[Value]()
        for _ in range(count):
            value, at = _unpacked(data, at)
            values.append(value)
        key = _named(str(name)), values[0]
        if kind == b"=":
            large.add(key)
        else:
            rows[key] = tuple(values) if kind == b"+" else None
    return rows, large


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


class _Names(dict[Table, bytes]):
    """Encoded names of tables."""

    def __missing__(self, table: Table) -> bytes:
        self[table] = name = _LENGTH(b"s", len(table.name)) + table.name.encode()
        return name


class _Texts(dict[int, bytes]):
    """What precedes a text of as many bytes."""

    def __missing__(self, size_bytes: int) -> bytes:
        head = _LENGTH(b"s", size_bytes)
        if size_bytes < LARGE_BYTES:
            self[size_bytes] = head
        return head


_NAMES: Final = _Names()
_TEXTS: Final = _Texts()


@cache
def _named(name: str) -> Table:
    """Return one table for a name that was read, whose columns nobody asks for."""
    return Table(name, ())


def _size_bytes(row: Row) -> int:
    """Return the size of the texts and bytes in a row, which is nearly the whole size."""
    return sum(len(value) for value in row if isinstance(value, (str, bytes)))
