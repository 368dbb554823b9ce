"""Part of a long log that is not kept in memory.

The core asks an archive for an id, for its entry, and for the number of entries before a place.
Counts of blocks answer the last question. A message deep in a log of millions therefore costs no
more than a message near its end.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from ..changes import LogKey, Recorder, Row, typed_table
from ..message import LogEntry

BLOCK_ENTRIES: Final = 4_096
"""Number of entries in a block, which are counted and trimmed together."""


class _BlockRow(NamedTuple):
    number: int
    lamport_timestamp: int
    message_id: str
    entries: int
    content_bytes: int


LOG_BLOCKS: Final = typed_table("log_blocks", _BlockRow)


class LogArchive(Protocol):
    """Source of log entries that are not in memory. A recorded entry is found from the next call
    on, even before it is written."""

    def get(self, message_id: str) -> LogEntry | None:
        """Return the entry of a message id, or None."""
        ...

    def entries(self, start: LogKey | None, end: LogKey) -> Iterator[LogEntry]:
        """Return the entries from `start` (the oldest if None) to before `end`, in log order."""
        ...

    def count(self, start: LogKey | None, end: LogKey) -> int:
        """Return the number of entries from `start` to before `end`."""
        ...


class _NoArchive:
    """Nothing is archived."""

    def get(self, message_id: str) -> LogEntry | None:
        return None

    def entries(self, start: LogKey | None, end: LogKey) -> Iterator[LogEntry]:
        return iter(())

    def count(self, start: LogKey | None, end: LogKey) -> int:
        return 0


NO_ARCHIVE: Final[LogArchive] = _NoArchive()


@dataclass(slots=True)
class _Block:
    """Entries from a key on, up to the first key of the next block."""

    start: LogKey
    entries: int = 0
    size_bytes: int = 0


class ArchiveBlocks:
    """Number and content size of the archived entries in each block."""

    def __init__(self, recorder: Recorder) -> None:
        self.total = 0
        self.size_bytes = 0
        self._recorder = recorder
        self._blocks: list[_Block] = []
        self._first_number = 0

    def append(self, entry: LogEntry) -> None:
        """Note that the newest of all archived entries was added."""
        if not self._blocks or self._blocks[-1].entries >= BLOCK_ENTRIES:
            if self._blocks:
                self._record(len(self._blocks) - 1)
            self._blocks.append(_Block(entry.key))
        self._change(len(self._blocks) - 1, 1, len(entry.content))

    def insert(self, entry: LogEntry, archive: LogArchive) -> int:
        """Note an entry that belongs between archived entries. Return how many entries are before
        the new entry."""
        number = self._number(entry.key)
        block = self._blocks[number]
        block.start = min(block.start, entry.key)
        before = sum(block.entries for block in self._blocks[:number])
        before += archive.count(block.start, entry.key)
        before += self._recorder.logged(block.start, entry.key)
        self._change(number, 1, len(entry.content))
        self._record(number)
        return before

    def remove(self, entry: LogEntry) -> None:
        """Note that an entry was removed from the archive."""
        number = self._number(entry.key)
        self._change(number, -1, -len(entry.content))
        self._record(number)

    def trim(self, count: int, size_bytes: int) -> LogKey | None:
        """Remove the oldest blocks, up to `count` entries together, or more until `size_bytes` are
        free. Return the place of the first entry that is left, or None if no block was removed."""
        gone = 0
        while gone < len(self._blocks) - 1 and (
            self._blocks[gone].entries <= count or size_bytes > 0
        ):
            count -= self._blocks[gone].entries
            size_bytes -= self._blocks[gone].size_bytes
            gone += 1
        if not gone:
            return None
        for number in range(gone):
            self._change(number, -self._blocks[number].entries, -self._blocks[number].size_bytes)
            self._recorder.delete(LOG_BLOCKS, self._first_number + number)
        self._first_number += gone
        del self._blocks[:gone]
        return self._blocks[0].start

    def older_than(self, lamport_timestamp: int) -> int:
        """Return the number of entries in blocks that hold only older entries."""
        number = bisect_right(self._blocks, (lamport_timestamp, ""), key=_start)
        return sum(block.entries for block in self._blocks[: max(0, number - 1)])

    def restore(self, rows: list[Row], archive: LogArchive, end: LogKey) -> None:
        """Restore the saved blocks, and read the entries after the last full block, up to `end`."""
        for number, lamport_timestamp, message_id, entries, content_bytes in sorted(
            LOG_BLOCKS.read(rows)
        ):
            if (lamport_timestamp, message_id) >= end:
                # Entries in memory left the log, or more may be there: these are in memory again.
                self._recorder.delete(LOG_BLOCKS, number)
                continue
            if not self._blocks:
                self._first_number = number
            self._blocks.append(_Block((lamport_timestamp, message_id)))
            self._change(len(self._blocks) - 1, entries, content_bytes)
        last = self._blocks[-1] if self._blocks else _Block(end)
        full, seen, seen_bytes = last.entries, 0, 0
        for entry in archive.entries(last.start if self._blocks else None, end):
            if seen >= full:
                self.append(entry)
            else:
                seen += 1
                seen_bytes += len(entry.content)
        if seen < full:
            self._change(len(self._blocks) - 1, seen - full, seen_bytes - last.size_bytes)

    def _number(self, key: LogKey) -> int:
        """Which block a place belongs to."""
        return max(0, bisect_right(self._blocks, key, key=_start) - 1)

    def _change(self, number: int, entries: int, size_bytes: int) -> None:
        block = self._blocks[number]
        block.entries += entries
        block.size_bytes += size_bytes
        self.total += entries
        self.size_bytes += size_bytes

    def _record(self, number: int) -> None:
        block = self._blocks[number]
        self._recorder.put(
            LOG_BLOCKS, self._first_number + number, *block.start, block.entries, block.size_bytes
        )


def _start(block: _Block) -> LogKey:
    return block.start
