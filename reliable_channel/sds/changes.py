"""Changes of a step to the data that a restart needs.

The core keeps its state in memory. If the state must survive the process, the owner of the core
gives it a `Recorder`. After each step, the owner writes the result of `take()` in one transaction,
before it releases the step. `restoring.py` reads the changes back after a restart.

Small tables are rows by key, and putting a key again replaces its row. The log is separate, because
it is large, and its entries are added, get a hint, and are trimmed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, TypeVar, get_type_hints

Value = str | int | bytes | None
Row = tuple[Value, ...]
"""Values of one table row. The first value is the key."""
LogKey = tuple[int, str]
"""Place of an entry in the log, as Lamport timestamp and message id."""
LogRow = tuple[str, str, int, bytes, bytes | None]
"""Log entry as message id, sender id, Lamport timestamp, content and retrieval hint."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Small table of the saved state, whose columns are `TEXT`, `INTEGER`, `BLOB` or `ANY`. A table
    is a constant of its module and has a unique name."""

    name: str
    columns: tuple[tuple[str, str], ...]
    """Names and types of the columns, with the key first."""


class DamagedRow(ValueError):
    """A row of the saved state was not written by this package."""


R = TypeVar("R")
_COLUMN_TYPES: Final[dict[Any, str]] = {
    **{str: "TEXT", int: "INTEGER", bytes: "BLOB", Value: "ANY"},
    **{str | None: "TEXT", int | None: "INTEGER", bytes | None: "BLOB"},
}


@dataclass(frozen=True, slots=True, eq=False)
class TypedTable(Table, Generic[R]):
    """Table whose columns are the fields of a named tuple."""

    make: Callable[..., R]
    types: tuple[Any, ...]

    def read(self, rows: Iterable[Row]) -> Iterator[R]:
        """Return the rows as named tuples.

        Raises:
            DamagedRow: a row has a value of another type, or more or fewer values.
        """
        for row in rows:
            if len(row) != len(self.types) or not all(map(isinstance, row, self.types)):
                columns = ", ".join(" ".join(column) for column in self.columns)
                raise DamagedRow(f"a row of {self.name!r} must have {columns} (got {row!r})")
            yield self.make(*row)


def typed_table(name: str, row: Callable[..., R]) -> TypedTable[R]:
    """Return the table whose columns are the fields of the named tuple `row`. The first field is
    the key."""
    fields = get_type_hints(row)
    columns = tuple((column, _COLUMN_TYPES[of]) for column, of in fields.items())
    return TypedTable(name, columns, row, tuple(fields.values()))


@dataclass(slots=True)
class Changes:
    """Changes of one step or several steps, to be written in one transaction."""

    entries: dict[str, LogRow] = field(default_factory=dict)
    """New log entries by message id."""
    hints: dict[str, LogRow] = field(default_factory=dict)
    """Existing log entries that got their retrieval hint, by message id."""
    removed: set[str] = field(default_factory=set)
    """Ids of entries that were removed from the log before `entries` were added."""
    trimmed_below: LogKey | None = None
    """Log place below which all entries left the log."""
    rows: dict[tuple[Table, Value], Row | None] = field(default_factory=dict)
    """Changed rows, by table and key. The value is None if the row was deleted."""

    def __bool__(self) -> bool:
        return bool(self.rows or self.entries or self.hints or self.removed or self.trimmed_below)

    def add(self, later: "Changes") -> None:
        """Add the changes of a later step."""
        for message_id in later.removed:
            self.removed.add(message_id)
            self.entries.pop(message_id, None)
            self.hints.pop(message_id, None)
        if later.entries:
            self.entries.update(later.entries)
        for row in later.hints.values():
            self.hint(row)
        if later.trimmed_below is not None:
            self.trimmed_below = later.trimmed_below
        self.rows.update(later.rows)

    def hint(self, row: LogRow) -> None:
        """Record that an entry of the log got its retrieval hint."""
        message_id = row[0]
        (self.entries if message_id in self.entries else self.hints)[message_id] = row


class Recorder:
    """Recorder of the changes of a step."""

    records: ClassVar[bool] = True
    """True if the recorder keeps the recorded values. Check this flag before you make a row that
    costs time."""

    def __init__(self) -> None:
        self._changes = Changes()

    def put(self, table: Table, *row: Value) -> None:
        """Record a new or changed row."""
        self._changes.rows[table, row[0]] = row

    def delete(self, table: Table, key: Value) -> None:
        """Record that a row is deleted, even if it was never written."""
        self._changes.rows[table, key] = None

    def log(self, row: LogRow) -> None:
        """Record that a message entered the log."""
        self._changes.entries[row[0]] = row

    def logged(self, start: LogKey, end: LogKey) -> int:
        """Return how many entries between two places entered the log since `take()`, `end`
        excluded. An archive does not find these entries yet."""
        return sum(start <= (row[2], row[0]) < end for row in self._changes.entries.values())

    def hint(self, row: LogRow) -> None:
        """Record that an entry of the log got its retrieval hint."""
        self._changes.hint(row)

    def remove(self, message_id: str) -> None:
        """Record that an entry was removed from the log."""
        self._changes.add(Changes(removed={message_id}))

    def trim(self, below: LogKey) -> None:
        """Record that all entries below this place left the log."""
        self._changes.trimmed_below = below

    def take(self) -> Changes:
        """Return the changes since the last call of `take()`."""
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
"""Table of single values, such as the clock, the start of the log and the start of this
participant."""

NO_RECORDER: Final[Recorder] = _NoRecorder()

Tables = Mapping[str, Sequence[Row]]
"""Rows of each table, by the name of the table."""
