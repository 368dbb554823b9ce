"""The local log of a channel: messages ordered by Lamport timestamp, then message id by bytes.

LIP 109, Deliver Message and Resolve Conflicts. Order is data here: a message may land in the
middle, and all participants that know the same messages have the same log, byte for byte.
"""

from collections.abc import Iterator
from hashlib import sha256
from sys import intern, maxsize
from typing import Final

from sortedcontainers import SortedList

from .ids import RecentIds

_Key = tuple[int, str]

EVICTED_IDS: Final = 10_000
"""Evicted ids that are remembered, so that nobody waits for a message that was here: as many as one
message may refer to."""


class LogEntry:
    """A message that was sent here or delivered here."""

    __slots__ = ("content", "lamport_timestamp", "message_id", "retrieval_hint", "sender_id")

    def __init__(
        self,
        message_id: str,
        sender_id: str,
        lamport_timestamp: int,
        content: bytes,
        retrieval_hint: bytes | None = None,
    ) -> None:
        self.message_id = message_id
        self.sender_id = intern(sender_id)  # few senders, many messages
        self.lamport_timestamp = lamport_timestamp
        self.content = content
        self.retrieval_hint = retrieval_hint

    def __repr__(self) -> str:
        return f"LogEntry({self.message_id!r}, {self.sender_id!r}, {self.lamport_timestamp})"


class MessageLog:
    """An ordered index over log entries; every operation costs at most the logarithm of the
    length."""

    def __init__(self, limit: int, limit_bytes: int = maxsize) -> None:
        self.limit = limit
        self.limit_bytes = limit_bytes
        """Of the contents."""
        self.size_bytes = 0
        self.evicted = 0
        self.horizon: _Key | None = None
        """The newest key that was evicted: what lies at or below it is too old to enter again."""
        self.entries: dict[str, LogEntry] = {}
        """By message id, for look-ups; in no order that means anything."""
        self._order: SortedList[_Key] = SortedList()
        self._evicted_ids = RecentIds(EVICTED_IDS)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, message_id: str) -> bool:
        return message_id in self.entries

    def __iter__(self) -> Iterator[LogEntry]:
        entries = self.entries
        for _, message_id in self._order:
            yield entries[message_id]

    def get(self, message_id: str) -> LogEntry | None:
        """The entry of an id, or None."""
        return self.entries.get(message_id)

    def insert(self, entry: LogEntry) -> int:
        """Put an entry in its place and return its position, counted from the oldest entry that is
        kept."""
        order = self._order
        key = (entry.lamport_timestamp, entry.message_id)
        at_end = not order or key > order[-1]
        order.add(key)
        self.entries[entry.message_id] = entry
        self.size_bytes += len(entry.content)
        while len(order) > self.limit or (self.size_bytes > self.limit_bytes and len(order) > 1):
            self._evict_oldest()
        return len(order) - 1 if at_end else order.bisect_left(key)

    def remove(self, message_id: str) -> LogEntry:
        """Take out an entry that turned out to be forged."""
        entry = self.entries.pop(message_id)
        self.size_bytes -= len(entry.content)
        self._order.remove((entry.lamport_timestamp, message_id))
        return entry

    def is_below_horizon(self, lamport_timestamp: int, message_id: str) -> bool:
        """Whether a message is older than what the full log has already let go."""
        return self.horizon is not None and (lamport_timestamp, message_id) <= self.horizon

    def was_evicted(self, message_id: str) -> bool:
        """Whether an id is among the last that the full log let go: known, though no entry is
        left."""
        return message_id in self._evicted_ids

    def last(self, count: int) -> list[LogEntry]:
        """The newest `count` entries, oldest first."""
        entries = self.entries
        return [entries[message_id] for _, message_id in self._order[-count:]] if count else []

    def digest(self) -> str:
        """Hex sha256 over Lamport timestamp, ids and content of all entries, in log order.

        Each field is preceded by its length, so that no two logs share a digest by the way they are
        cut.
        """
        total = sha256()
        for entry in self:
            for field in (
                str(entry.lamport_timestamp).encode(),
                entry.message_id.encode(),
                entry.sender_id.encode(),
                entry.content,
            ):
                total.update(len(field).to_bytes(8))
                total.update(field)
        return total.hexdigest()

    def _evict_oldest(self) -> None:
        key = self._order.pop(0)
        # A message may have waited until it was older than the horizon; that must not move it back.
        self.horizon = max(self.horizon or key, key)
        self.size_bytes -= len(self.entries.pop(key[1]).content)
        self._evicted_ids.add(key[1])
        self.evicted += 1
