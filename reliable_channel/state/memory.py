"""Saved state in memory, which survives a channel but not its process."""

from collections.abc import Iterator

from sortedcontainers import SortedList

from .._contracts.state_store import Identity, Saved
from ..errors import StateMismatch
from ..sds.changes import Changes, LogKey, Row, Value
from ..sds.message import LogEntry
from ..sds.options import LOG_WINDOW_ENTRIES


class MemoryStateStore:
    """State store in memory, for tests and simulations. To start a channel from the written state,
    open the store again."""

    blocking = False

    def __init__(self, *, outlives_channel: bool = True) -> None:
        self.outlives_channel = outlives_channel
        self._identity: Identity | None = None
        self._tables: dict[str, dict[Value, Row]] = {}
        self._entries: dict[str, LogEntry] = {}
        self._order: SortedList[LogKey] = SortedList()

    def open(self, identity: Identity) -> Saved:
        """Return the state that was written before.

        Raises:
            StateMismatch: it belongs to another participant.
        """
        if self._identity not in (None, identity):
            raise StateMismatch(f"the state belongs to {self._identity}, not to {identity}")
        self._identity = identity
        newest = [self._entries[key[1]] for key in self._order[-LOG_WINDOW_ENTRIES:]]
        tables = {name: list(rows.values()) for name, rows in self._tables.items()}
        return Saved(tables, [LogEntry(*entry.row) for entry in newest])

    def write(self, changes: Changes) -> None:
        """Store all the changes in memory."""
        for message_id in changes.removed:
            if removed := self._entries.pop(message_id, None):
                self._order.remove(removed.key)
        for row in changes.entries.values():
            entry = LogEntry(*row)
            self._entries[entry.message_id] = entry
            self._order.add(entry.key)
        for message_id, (*_, hint) in changes.hints.items():
            if known := self._entries.get(message_id):
                known.retrieval_hint = hint
        while changes.trimmed_below and self._order and self._order[0] < changes.trimmed_below:
            del self._entries[self._order.pop(0)[1]]
        for (table, key), changed in changes.rows.items():
            rows = self._tables.setdefault(table.name, {})
            if changed is None:
                rows.pop(key, None)
            else:
                rows[key] = changed

    def archive(self) -> "MemoryStateStore":
        """Return the archive of the log."""
        return self

    def get(self, message_id: str) -> LogEntry | None:
        """Return the entry of a message id, or None."""
        entry = self._entries.get(message_id)
        return LogEntry(*entry.row) if entry else None

    def entries(self, start: LogKey | None, end: LogKey) -> Iterator[LogEntry]:
        """Return the entries from `start` to before `end`, in log order."""
        for key in list(self._order.irange(start, end, (True, False))):
            yield LogEntry(*self._entries[key[1]].row)

    def count(self, start: LogKey | None, end: LogKey) -> int:
        """Return the number of entries from `start` to before `end`."""
        first: int = 0 if start is None else self._order.bisect_left(start)
        last: int = self._order.bisect_left(end)
        return max(0, last - first)

    def close(self) -> None:
        """Do nothing, because the written state stays in memory."""
