"""The part of a long log that is not kept in memory.

The core needs three things of it: whether an id is known, an entry by its id, and how many entries
stand before a given place. The last is answered from counts of blocks, which are kept here, so that
a message that lands deep in a log of millions costs no more than one that lands near its end.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from ..changes import LogKey, Recorder, Row, typed_table
from .entry import LogEntry

BLOCK_ENTRIES: Final = 4_096
"""Entries that are counted together, and trimmed together."""


class _BlockRow(NamedTuple):
    number: int
    lamport_timestamp: int
    message_id: str
    entries: int
    content_bytes: int


LOG_BLOCKS: Final = typed_table("log_blocks", _BlockRow)


class LogArchive(Protocol):
    """Where older entries are. What was recorded is found from the next call on, written or not."""

    def get(self, message_id: str) -> LogEntry | None:
        """The entry of an id, or None."""
        ...

    def entries(self, start: LogKey | None, end: LogKey) -> Iterator[LogEntry]:
        """The entries from `start` (the oldest where None) up to and without `end`, in log
        order."""
        ...

    def count(self, start: LogKey | None, end: LogKey) -> int:
        """How many these are."""
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
    """How many archived entries stand where, and how much content they have."""

    def __init__(self, recorder: Recorder) -> None:
        self.total = 0
        self.size_bytes = 0
        self._recorder = recorder
        self._blocks: list[_Block] = []
        self._first_number = 0

    def append(self, entry: LogEntry) -> None:
        """An entry was moved here that stands after all others."""
        if not self._blocks or self._blocks[-1].entries >= BLOCK_ENTRIES:
            if self._blocks:
                self._record(len(self._blocks) - 1)
            self._blocks.append(_Block(entry.key))
        self._change(len(self._blocks) - 1, 1, len(entry.content))

    def insert(self, entry: LogEntry, archive: LogArchive) -> int:
        """An entry came that stands among those here; return how many stand before it."""
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
        """An entry was taken out."""
        number = self._number(entry.key)
        self._change(number, -1, -len(entry.content))
        self._record(number)

    def trim(self, count: int, size_bytes: int) -> LogKey | None:
        """Let go of whole blocks, the oldest first: those of at most `count` entries together, and
        as many as it takes to make room for `size_bytes`. Return where what is left begins, or None
        where nothing was let go."""
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
        """How many entries stand in blocks in which all are older."""
        number = bisect_right(self._blocks, (lamport_timestamp, ""), key=_start)
        return sum(block.entries for block in self._blocks[: max(0, number - 1)])

    def restore(self, rows: list[Row], archive: LogArchive, end: LogKey) -> None:
        """Take the full blocks from before a restart, and look at what came after them, up to
        `end`."""
        for number, lamport_timestamp, message_id, entries, content_bytes in sorted(
            LOG_BLOCKS.read(rows)
        ):
            if not self._blocks:
                self._first_number = number
            self._blocks.append(_Block((lamport_timestamp, message_id)))
            self._change(len(self._blocks) - 1, entries, content_bytes)
        last = self._blocks[-1] if self._blocks else None
        full = last.entries if last else 0
        start = last.start if last else None
        for place, entry in enumerate(archive.entries(start, end)):
            if place >= full:
                self.append(entry)

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
