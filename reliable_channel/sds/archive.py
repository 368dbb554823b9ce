"""The part of a long log that is not kept in memory.

The core needs three things of it: whether an id is known, an entry by its id, and how many entries
stand before a given place. The last is answered from counts of blocks, which are kept here, so that
a message that lands deep in a log of millions costs no more than one that lands near its end.
"""

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Protocol

from .changes import LogKey, Recorder, Row, Table

if TYPE_CHECKING:
    from .log import LogEntry

BLOCK_ENTRIES: Final = 4_096
"""Entries that are counted together, and trimmed together."""
LOG_BLOCKS: Final = Table(
    "log_blocks",
    (
        ("number", "INTEGER"),
        ("lamport_timestamp", "INTEGER"),
        ("message_id", "TEXT"),
        ("entries", "INTEGER"),
    ),
)


class LogArchive(Protocol):
    """Where older entries are. What was recorded is found from the next call on, written or not."""

    def get(self, message_id: str) -> "LogEntry | None":
        """The entry of an id, or None."""
        ...

    def entries(self, start: LogKey | None, end: LogKey) -> "Iterator[LogEntry]":
        """The entries from `start` (the oldest where None) up to and without `end`, in log
        order."""
        ...

    def count(self, start: LogKey | None, end: LogKey) -> int:
        """How many these are."""
        ...


class _NoArchive:
    """Nothing is archived."""

    def get(self, message_id: str) -> "LogEntry | None":
        return None

    def entries(self, start: LogKey | None, end: LogKey) -> "Iterator[LogEntry]":
        return iter(())

    def count(self, start: LogKey | None, end: LogKey) -> int:
        return 0


NO_ARCHIVE: Final[LogArchive] = _NoArchive()


class ArchiveBlocks:
    """How many archived entries stand where.

    A block reaches from its first key to the first key of the next one.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.total = 0
        self._recorder = recorder
        self._starts: list[LogKey] = []
        self._counts: list[int] = []
        self._first_number = 0

    def append(self, key: LogKey) -> None:
        """An entry was moved here that stands after all others."""
        if not self._counts or self._counts[-1] >= BLOCK_ENTRIES:
            if self._counts:
                self._record(len(self._counts) - 1)
            self._starts.append(key)
            self._counts.append(0)
        self._counts[-1] += 1
        self.total += 1

    def insert(self, key: LogKey, archive: LogArchive) -> int:
        """An entry came that stands among those here; return how many stand before it."""
        block = max(0, bisect_right(self._starts, key) - 1)
        if key < self._starts[block]:
            self._starts[block] = key
        before = sum(self._counts[:block])
        before += archive.count(self._starts[block], key)
        self._counts[block] += 1
        self.total += 1
        self._record(block)
        return before

    def trim(self, count: int) -> LogKey | None:
        """Let go of whole blocks, the oldest first, of at most `count` entries together; return
        where what is left begins, or None where nothing was let go."""
        blocks = 0
        while blocks < len(self._counts) - 1 and self._counts[blocks] <= count:
            count -= self._counts[blocks]
            blocks += 1
        if not blocks:
            return None
        self.total -= sum(self._counts[:blocks])
        for number in range(self._first_number, self._first_number + blocks):
            self._recorder.delete(LOG_BLOCKS, number)
        self._first_number += blocks
        del self._starts[:blocks], self._counts[:blocks]
        return self._starts[0]

    def older_than(self, lamport_timestamp: int) -> int:
        """How many entries stand in blocks in which all are older."""
        blocks = bisect_right(self._starts, (lamport_timestamp, ""))
        return sum(self._counts[: max(0, blocks - 1)])

    def restore(self, rows: "list[Row]", archive: LogArchive, end: LogKey) -> None:
        """Take the counts of full blocks from before a restart, and count what came after them, up
        to `end`."""
        for number, lamport_timestamp, message_id, entries in sorted(rows, key=_number):
            assert isinstance(number, int) and isinstance(lamport_timestamp, int)
            assert isinstance(message_id, str) and isinstance(entries, int)
            if not self._starts:
                self._first_number = number
            self._starts.append((lamport_timestamp, message_id))
            self._counts.append(entries)
        full = self._counts[-1] if self._counts else 0
        self.total = sum(self._counts)
        for place, entry in enumerate(archive.entries(self._starts[-1] if full else None, end)):
            if place >= full:
                self.append((entry.lamport_timestamp, entry.message_id))

    def _record(self, block: int) -> None:
        number = self._first_number + block
        self._recorder.put(LOG_BLOCKS, number, *self._starts[block], self._counts[block])


def _number(row: Row) -> int:
    assert isinstance(row[0], int)
    return row[0]
