"""Log of a channel as the core sees it, with written entries and entries that wait for the
writer."""

from collections.abc import Iterator
from heapq import merge

from .._contracts.state_store import Archive
from ..errors import StateError
from ..sds.changes import Changes, LogKey, LogRow
from ..sds.message import LogEntry


class ArchiveOverlay:
    """Archive that also finds entries that were passed to the writer but are not written yet.

    The thread of the channel calls `add`, `remove` and the look-ups. A look-up that fails returns
    nothing, because the core needs an answer. After a failed look-up, `failure` has the reason.
    """

    def __init__(self, written: Archive) -> None:
        self._written = written
        self._unwritten: dict[str, LogRow] = {}
        self._removed: set[str] = set()
        self.failure: StateError | None = None
        """The last look-up that failed."""

    def __len__(self) -> int:
        return len(self._unwritten)

    def add(self, changes: Changes) -> None:
        """Add changes that were given to the writer."""
        for message_id in changes.removed:
            self._removed.add(message_id)
            self._unwritten.pop(message_id, None)
        self._unwritten.update(changes.entries)
        for message_id, row in changes.hints.items():
            if message_id in self._unwritten:
                self._unwritten[message_id] = row

    def remove(self, changes: Changes) -> None:
        self._removed -= changes.removed
        for message_id in changes.entries:
            self._unwritten.pop(message_id, None)

    def give_up(self, message_id: str) -> None:
        """Remove an entry that will not be written."""
        self._unwritten.pop(message_id, None)

    def get(self, message_id: str) -> LogEntry | None:
        """Return the entry of a message id, or None."""
        if (row := self._unwritten.get(message_id)) is not None:
            return LogEntry(*row)
        return None if message_id in self._removed else self._find(message_id)

    def entries(self, start: LogKey | None, end: LogKey) -> Iterator[LogEntry]:
        """Return the entries from `start` to before `end`, in log order."""
        last: LogKey | None = None
        for entry in merge(self._read(start, end), self._within(start, end), key=_key):
            if entry.key != last and self._is_there(entry):
                last = entry.key
                yield entry

    def count(self, start: LogKey | None, end: LogKey) -> int:
        if self._removed:
            return sum(1 for _ in self.entries(start, end))
        unwritten = [e for e in self._within(start, end) if self._find(e.message_id) is None]
        try:
            return self._written.count(start, end) + len(unwritten)
        except StateError as error:
            self.failure = error
            return len(unwritten)

    def close(self) -> None:
        """Close the connection that reads the written entries."""
        self._written.close()

    def _find(self, message_id: str) -> LogEntry | None:
        try:
            return self._written.get(message_id)
        except StateError as error:
            self.failure = error
            return None

    def _read(self, start: LogKey | None, end: LogKey) -> Iterator[LogEntry]:
        try:
            yield from self._written.entries(start, end)
        except StateError as error:
            self.failure = error

    def _is_there(self, entry: LogEntry) -> bool:
        return entry.message_id not in self._removed or entry.message_id in self._unwritten

    def _within(self, start: LogKey | None, end: LogKey) -> list[LogEntry]:
        entries = (LogEntry(*row) for row in self._unwritten.values())
        return sorted(
            (each for each in entries if each.key < end and (start is None or start <= each.key)),
            key=_key,
        )


def _key(entry: LogEntry) -> LogKey:
    return entry.key
