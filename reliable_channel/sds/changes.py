"""What a step changes of that which a restart needs.

The core works in memory. An owner that wants it to outlive its process gives it a `Recorder`; after
each step, and before anything of that step is let out, the owner writes what `take()` hands out, in
one transaction. `restoring.py` is the way back.

Small tables are rows by key: putting a key again replaces its row. The log is apart, since it is
large: its entries are added, learn a retrieval hint, and are trimmed from the oldest on.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, TypeVar, get_type_hints

Value = str | int | bytes | None
Row = tuple[Value, ...]
"""The values of a table's columns; the first one is the key."""
LogKey = tuple[int, str]
"""Lamport timestamp and message id: where an entry stands in the log."""
LogRow = tuple[str, str, int, bytes, bytes | None]
"""Message id, sender id, Lamport timestamp, content and retrieval hint of a log entry."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A small table, and what its columns hold: `TEXT`, `INTEGER`, `BLOB` or `ANY`, each of them
    possibly nothing. A constant of its module: no two have one name."""

    name: str
    columns: tuple[tuple[str, str], ...]
    """Names and types, the key first."""


class DamagedRow(ValueError):
    """A row is not one that this package writes."""


R = TypeVar("R")
_COLUMN_TYPES: Final[dict[Any, str]] = {
    **{str: "TEXT", int: "INTEGER", bytes: "BLOB", Value: "ANY"},
    **{str | None: "TEXT", int | None: "INTEGER", bytes | None: "BLOB"},
}


@dataclass(frozen=True, slots=True, eq=False)
class TypedTable(Table, Generic[R]):
    """A table whose columns are the fields of a named tuple."""

    make: Callable[..., R]
    types: tuple[Any, ...]

    def read(self, rows: Iterable[Row]) -> Iterator[R]:
        """Give rows their types.

        Raises:
            DamagedRow: a row has a value of another type, or more or fewer values.
        """
        for row in rows:
            if len(row) != len(self.types) or not all(map(isinstance, row, self.types)):
                columns = ", ".join(" ".join(column) for column in self.columns)
                raise DamagedRow(f"a row of {self.name!r} must have {columns} (got {row!r})")
            yield self.make(*row)


def typed_table(name: str, row: Callable[..., R]) -> TypedTable[R]:
    """Return the table whose rows are `row`, a named tuple; its first field is the key."""
    fields = get_type_hints(row)
    columns = tuple((column, _COLUMN_TYPES[of]) for column, of in fields.items())
    return TypedTable(name, columns, row, tuple(fields.values()))


@dataclass(slots=True)
class Changes:
    """What one step changed, or several, to be written in one transaction."""

    entries: dict[str, LogRow] = field(default_factory=dict)
    """New in the log, by message id."""
    hints: dict[str, LogRow] = field(default_factory=dict)
    """Entries that stood in the log already and learned their retrieval hint, by message id."""
    removed: set[str] = field(default_factory=set)
    """Ids of entries that were taken out of the log, before `entries` were put in."""
    trimmed_below: LogKey | None = None
    """What stands below this key left the log."""
    rows: dict[tuple[Table, Value], Row | None] = field(default_factory=dict)
    """By table and key; None where the row was deleted."""

    def __bool__(self) -> bool:
        return bool(self.rows or self.entries or self.hints or self.removed or self.trimmed_below)

    def add(self, later: "Changes") -> None:
        """Include what a later step changed."""
        for message_id in later.removed:
            self.removed.add(message_id)
            self.entries.pop(message_id, None)
            self.hints.pop(message_id, None)
        self.entries.update(later.entries)
        for row in later.hints.values():
            self.hint(row)
        self.trimmed_below = later.trimmed_below or self.trimmed_below
        self.rows.update(later.rows)

    def hint(self, row: LogRow) -> None:
        """An entry of the log learned its retrieval hint."""
        message_id = row[0]
        (self.entries if message_id in self.entries else self.hints)[message_id] = row


class Recorder:
    """Collects the changes of a step."""

    records: ClassVar[bool] = True
    """False if what is put goes nowhere: ask it before making a row that costs something."""

    def __init__(self) -> None:
        self._changes = Changes()

    def put(self, table: Table, *row: Value) -> None:
        """A row is new, or new in what it says."""
        self._changes.rows[table, row[0]] = row

    def delete(self, table: Table, key: Value) -> None:
        """A row is gone, if it ever was there."""
        self._changes.rows[table, key] = None

    def log(self, row: LogRow) -> None:
        """A message entered the log."""
        self._changes.entries[row[0]] = row

    def logged(self, start: LogKey, end: LogKey) -> int:
        """How many entries entered the log since `take()` that stand from `start` up to and without
        `end`: an archive does not find them yet."""
        return sum(start <= (row[2], row[0]) < end for row in self._changes.entries.values())

    def hint(self, row: LogRow) -> None:
        """An entry of the log learned its retrieval hint."""
        self._changes.hint(row)

    def remove(self, message_id: str) -> None:
        """An entry was taken out of the log."""
        self._changes.add(Changes(removed={message_id}))

    def trim(self, below: LogKey) -> None:
        """What stands below this key left the log."""
        self._changes.trimmed_below = below

    def take(self) -> Changes:
        """Hand out what changed since the last time."""
        changes, self._changes = self._changes, Changes()
        return changes


class _NoRecorder(Recorder):
    """For participants that start from nothing each time."""

    records = False

    def put(self, table: Table, *row: Value) -> None:
        pass

    def delete(self, table: Table, key: Value) -> None:
        pass

    def log(self, row: LogRow) -> None:
        pass

    def hint(self, row: LogRow) -> None:
        pass

    def remove(self, message_id: str) -> None:
        pass

    def trim(self, below: LogKey) -> None:
        pass


CHANNEL: Final = Table("channel", (("name", "TEXT"), ("value", "ANY")))
"""Single values: the clock, the horizon of the log, since when this participant takes part."""

NO_RECORDER: Final[Recorder] = _NoRecorder()

Tables = Mapping[str, Sequence[Row]]
"""The rows of each table by its name."""
