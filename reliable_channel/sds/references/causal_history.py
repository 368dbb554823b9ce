"""Encoder of causal histories, which keeps the last entries of the log encoded."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ..changes import LogKey
from ..log.entry import LogEntry
from ..log.log import BEFORE_ALL, MessageLog
from ..message import HistoryEntry

SPARE: Final = 100
"""Number of kept entries besides those of an own message, because other logs reach back further."""


class History(NamedTuple):
    """Encoded causal history, as a part of a byte string that several messages share."""

    shared: bytes | bytearray
    start: int
    end: int

    @property
    def view(self) -> memoryview:
        """Bytes of the history without a copy. Keep no view, because the shared string grows."""
        return memoryview(self.shared)[self.start : self.end]

    def __bytes__(self) -> bytes:
        return bytes(self.view)


class CausalTail:
    """Newest entries of the log in their encoded form.

    With this form, sending a message with 200 entries copies nothing: its history is a part of
    these bytes. Participants have the same log, so the history of a received message is nearly
    always part of these bytes, too. The ids of such a history are then known without decoding.
    """

    def __init__(
        self,
        log: MessageLog,
        size: int,
        limit_bytes: int,
        encode: Callable[[HistoryEntry], bytes],
    ) -> None:
        self._log = log
        self._size = size
        self._limit_bytes = limit_bytes
        self._encode = encode
        self._keys: list[LogKey] = []
        self._ids: list[str] = []
        self._starts: list[int] = [0]
        """Where each entry starts in all bytes so far, and where the last one ends."""
        self._bytes = bytearray()
        """From the first of these places on."""
        self._shared_until = 0
        """Up to this place histories share the bytes, which therefore stay as they are."""

    def encoded(self, *, is_sync: bool = False) -> History:
        """Return the causal history of the next message, with its last log entries, oldest first.

        If the bytes exceed `limit_bytes`, the oldest entries are left out. Without this limit, one
        participant with a very long id could make all messages too long.
        """
        self._catch_up()
        starts, end = self._starts, self._starts[-1]
        oldest = starts[max(0, len(self._ids) - self._size)]
        if end - oldest > self._limit_bytes:
            oldest = starts[bisect_left(starts, end - self._limit_bytes)]
        self._shared_until = end
        return History(self._bytes, oldest - starts[0], end - starts[0])

    def common(self, data: bytes, start: int, end_of_first: int) -> tuple[Sequence[str], int]:
        """Return the ids of encoded entries from `start` on that are here in the same order, and
        where they end. `end_of_first` is the end of the first encoded entry."""
        self._catch_up()
        own, starts = self._bytes, self._starts
        base, offset = starts[0], own.find(data[start:end_of_first])
        first = bisect_left(starts, offset + base)
        if offset < 0 or starts[first] != offset + base:
            return (), start

        def is_same(until: int) -> bool:
            return data.startswith(memoryview(own)[offset : starts[until] - base], start)

        last = len(self._ids)
        if not is_same(last):
            # The newest differ: those that only one of both had.
            last = first + bisect_left(range(first + 1, last), True, key=lambda n: not is_same(n))
        return self._ids[first:last], start + starts[last] - starts[first]

    def _catch_up(self) -> None:
        """Follow what changed in the log."""
        log, size = self._log, self._size
        if (touched := log.touched) is None or not size:
            return
        log.touched = None
        keep, base = bisect_left(self._keys, touched), self._starts[0]
        del self._keys[keep:], self._ids[keep:], self._starts[keep + 1 :]
        entries = log.since(touched, size)
        kept = keep + len(entries)
        if len(entries) == size or (kept < size and kept < len(log)):
            gone, entries = keep, log.last(size)
        else:
            gone = keep - size - SPARE if keep > size + 2 * SPARE else 0
        del self._keys[:gone], self._ids[:gone], self._starts[:gone]
        begin, end = self._starts[0], self._starts[-1]
        if gone or end < self._shared_until:
            self._bytes = self._bytes[begin - base : end - base]
            self._shared_until = begin
        else:
            del self._bytes[end - base :]
        for entry in entries:
            self._keys.append(entry.key)
            self._ids.append(entry.message_id)
            self._bytes += self._encode(history_entry(entry))
            self._starts.append(begin + len(self._bytes))
        log.watched_from = self._keys[0] if len(self._keys) >= size else BEFORE_ALL


def history_entry(entry: LogEntry) -> HistoryEntry:
    """Return the reference to a log entry, as other participants need it."""
    return HistoryEntry(entry.message_id, entry.retrieval_hint, entry.sender_id)
