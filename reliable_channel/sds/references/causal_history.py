"""Encoder of causal histories, which keeps the last entries of the log encoded."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Final

from ..changes import LogKey
from ..log.entry import LogEntry
from ..log.log import BEFORE_ALL, MessageLog
from ..message import HistoryEntry

SPARE: Final = 100
"""Number of kept entries besides those of an own message, because other logs reach back further."""


class CausalTail:
    """Newest entries of the log in their encoded form.

    With this form, sending a message with 200 entries costs one copy. Participants have the same
    log, so the history of a received message is nearly always part of these bytes. The ids of such
    a history are then known without decoding.
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
        """Where each entry starts in the bytes, and where the last one ends."""
        self._bytes = bytearray()

    def encoded(self, *, is_sync: bool = False) -> bytes:
        """Return the encoded causal history of the next message, with its last log entries, oldest
        first.

        If the bytes exceed `limit_bytes`, the oldest entries are left out. Without this limit, one
        participant with a very long id could make all messages too long.
        """
        self._catch_up()
        starts, count = self._starts, min(self._size, len(self._log))
        oldest = len(self._ids) - count
        within_limit = bisect_left(starts, starts[-1] - self._limit_bytes)
        return bytes(memoryview(self._bytes)[starts[max(oldest, within_limit)] :])

    def common(self, data: bytes, start: int, end_of_first: int) -> tuple[Sequence[str], int]:
        """Return the ids of encoded entries from `start` on that are here in the same order, and
        where they end. `end_of_first` is the end of the first encoded entry."""
        self._catch_up()
        own, starts = self._bytes, self._starts
        offset = own.find(data[start:end_of_first])
        first = bisect_left(starts, offset)
        if offset < 0 or starts[first] != offset:
            return (), start

        def is_same(until: int) -> bool:
            return data.startswith(own[offset : starts[until]], start)

        last = len(self._ids)
        if not is_same(last):
            # The newest differ: those that only one of both had.
            last = first + bisect_left(range(first + 1, last), True, key=lambda n: not is_same(n))
        return self._ids[first:last], start + starts[last] - offset

    def _catch_up(self) -> None:
        """Follow what changed in the log."""
        log, size = self._log, self._size
        if (touched := log.touched) is None or not size:
            return
        log.touched = None
        keep = bisect_left(self._keys, touched)
        del self._keys[keep:], self._ids[keep:], self._starts[keep + 1 :]
        del self._bytes[self._starts[-1] :]
        entries = log.since(touched, size)
        if len(entries) == size or len(self._keys) + len(entries) < min(size, len(log)):
            self._forget_before(len(self._keys))
            entries = log.last(size)
        for entry in entries:
            self._keys.append(entry.key)
            self._ids.append(entry.message_id)
            self._bytes += self._encode(history_entry(entry))
            self._starts.append(len(self._bytes))
        if len(self._ids) > size + 2 * SPARE:
            self._forget_before(len(self._ids) - size - SPARE)
        log.watched_from = self._keys[0] if len(self._keys) >= size else BEFORE_ALL

    def _forget_before(self, place: int) -> None:
        lengths = [end - start for start, end in pairwise(self._starts[place:])]
        del self._keys[:place], self._ids[:place], self._bytes[: self._starts[place]]
        self._starts = list(accumulate(lengths, initial=0))


def history_entry(entry: LogEntry) -> HistoryEntry:
    """Return the reference to a log entry, as other participants need it."""
    return HistoryEntry(entry.message_id, entry.retrieval_hint, entry.sender_id)
