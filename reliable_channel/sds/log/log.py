"""Local log of a channel, ordered by Lamport timestamp, then by the bytes of the message id.

The order follows LIP 109 (Deliver Message and Resolve Conflicts). A new message may belong in the
middle of the log. All participants that know the same messages have the same log, byte for byte.

With an archive, memory contains only the newest entries, and the archive contains all entries.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import islice
from sys import maxsize
from typing import Final

from sortedcontainers import SortedList

from ..changes import CHANNEL, NO_RECORDER, LogKey, Recorder, Row, Table, Tables
from ..ids import RecentIds
from ..message import LogEntry
from ..options import LOG_WINDOW_ENTRIES
from .archive import LOG_BLOCKS, NO_ARCHIVE, ArchiveBlocks, LogArchive
from .root import LOG_SUMS, SUMMED_FROM, LogSums

EVICTED_IDS: Final = 10_000
"""Number of remembered ids of evicted messages, so that no message waits for an evicted message.
One message may refer to as many ids as this number."""
WINDOW_BYTES: Final = 64 * 1024 * 1024
"""Content (bytes) that stays in memory if there is an archive."""
BEFORE_ALL: Final[LogKey] = (-1, "")
"""Log place before all other places."""
EVICTED: Final = Table("evicted_ids", (("message_id", "TEXT"),))


class MessageLog:
    """Log entries in order, with an index by message id. Every operation takes at most a time that
    grows with the logarithm of the length."""

    def __init__(
        self,
        limit: int,
        limit_bytes: int = maxsize,
        *,
        archive: LogArchive = NO_ARCHIVE,
        recorder: Recorder = NO_RECORDER,
        window: int = LOG_WINDOW_ENTRIES,
    ) -> None:
        self.limit = limit
        self.limit_bytes = limit_bytes
        """Of the contents."""
        self.size_bytes = 0
        """Of those in memory."""
        self.evicted = 0
        """Entries that left the log since the start of the process."""
        self.horizon: LogKey | None = None
        """The newest key that was evicted: what lies at or below it is too old to enter again."""
        self.sums = LogSums(recorder)
        """What the log is compared by."""
        self.touched: LogKey | None = None
        """The oldest place that changed since a `CausalTail` set it to None, of those
        from `watched_from` on."""
        self.watched_from: LogKey = BEFORE_ALL
        self.entries: dict[str, LogEntry] = {}
        """Those in memory by message id, for look-ups; in no order that means anything."""
        self._order: SortedList[LogKey] = SortedList()
        self._newest = BEFORE_ALL
        """The last of these, or `BEFORE_ALL` for none."""
        self._evicted_ids = RecentIds(EVICTED_IDS, recorder=recorder, table=EVICTED)
        self._recorder = recorder
        self._archive = archive
        self._blocks = ArchiveBlocks(recorder)
        self._window = min(limit, window)
        archived = archive is not NO_ARCHIVE
        self._most = self._window if archived else limit
        """Entries in memory."""
        self._most_bytes = min(WINDOW_BYTES, limit_bytes) if archived else limit_bytes

    def __len__(self) -> int:
        return self._blocks.total + len(self.entries)

    def __contains__(self, message_id: str) -> bool:
        return self.get(message_id) is not None

    def __iter__(self) -> Iterator[LogEntry]:
        entries = self.entries
        if self._blocks.total:
            yield from self._archive.entries(None, self._order[0])
        for _, message_id in self._order:
            yield entries[message_id]

    def get(self, message_id: str) -> LogEntry | None:
        """Return the entry of a message id, or None."""
        entry = self.entries.get(message_id)
        if entry is None and self._blocks.total:
            entry = self._archive.get(message_id)
        return entry

    def insert(self, entry: LogEntry) -> int:
        """Insert an entry into the log. Return the position of the entry, counted from the oldest
        kept entry."""
        order, blocks, key = self._order, self._blocks, entry.key
        if self._recorder.records:
            self._recorder.log(entry.row)
        self.sums.change(key, 1)
        self._touch(key)
        if blocks.total and order and key < order[0]:
            return blocks.insert(entry, self._archive)
        entries = self.entries
        if at_end := key > self._newest:
            self._newest = key
        order.add(key)
        entries[entry.message_id] = entry
        self.size_bytes += len(entry.content)
        position = blocks.total + (len(entries) - 1 if at_end else order.bisect_left(key))
        evicted = self.evicted
        if len(entries) > self._most or self.size_bytes > self._most_bytes:
            self._make_room()
        return max(0, position - (self.evicted - evicted))

    def position(self, entry: LogEntry) -> int:
        """Return the position of an entry in memory, counted from the oldest kept entry."""
        place: int = self._order.bisect_left(entry.key)
        return self._blocks.total + place

    def set_retrieval_hint(self, message_id: str, retrieval_hint: bytes) -> bool:
        """Note the hint by which other participants can retrieve a message from Store. Return True
        if the hint was not known yet."""
        entry = self.get(message_id)
        if entry is None or entry.retrieval_hint is not None:
            return False
        entry.retrieval_hint = retrieval_hint
        self._touch(entry.key)
        if self._recorder.records:
            self._recorder.hint(entry.row)
        return True

    def remove(self, message_id: str) -> LogEntry:
        """Remove an entry that turned out to be forged."""
        entry = self.entries.pop(message_id, None)
        if entry is not None:
            self.size_bytes -= len(entry.content)
            self._order.remove(entry.key)
            self._find_newest()
        else:
            entry = self._archive.get(message_id)
            assert entry is not None
            self._blocks.remove(entry)
        self.sums.change(entry.key, -1)
        self._touch(entry.key)
        self._recorder.remove(message_id)
        return entry

    def is_below_horizon(self, lamport_timestamp: int, message_id: str) -> bool:
        """Return True if a message is older than the evicted part of the log."""
        return self.horizon is not None and (lamport_timestamp, message_id) <= self.horizon

    @property
    def is_archived(self) -> bool:
        """True if there is an archive that has older entries."""
        return self._archive is not NO_ARCHIVE

    def was_evicted(self, message_id: str) -> bool:
        """Return True if a message was evicted from the log and its id is remembered."""
        return message_id in self._evicted_ids

    def is_known(self, message_id: str) -> bool:
        """Return True if a message that is not in memory is in the archive, or was evicted."""
        if message_id in self._evicted_ids:
            return True
        return self._blocks.total > 0 and self._archive.get(message_id) is not None

    def forget_before(self, lamport_timestamp: int) -> None:
        """Evict entries before a Lamport timestamp, from an archive in whole blocks."""
        order, blocks = self._order, self._blocks
        if blocks.total:
            self._trim(blocks.older_than(lamport_timestamp), 0)
        while not blocks.total and order and order[0][0] < lamport_timestamp:
            self._evict_oldest()
        self._find_newest()

    def last(self, count: int) -> list[LogEntry]:
        """Return the newest `count` entries, oldest first."""
        if count > len(self._order) and self._blocks.total:
            return list(islice(self, max(0, len(self) - count), None))
        entries = self.entries
        return [entries[message_id] for _, message_id in self._order[-count:]] if count else []

    def since(self, key: LogKey, most: int) -> list[LogEntry]:
        """Return at most `most` entries in memory from a place in the log on, oldest first."""
        entries, order = self.entries, self._order
        if most and entries and self._newest == key:  # nearly always the newest one changed
            return [entries[key[1]]]
        return [entries[message_id] for _, message_id in islice(order.irange(key), most)]

    def keys_between(self, start_ms: int, end_ms: int) -> Iterator[LogKey]:
        """Return the log places from one Lamport timestamp to before another, in log order."""
        if self._blocks.total:
            until = min((end_ms, ""), self._order[0])
            yield from (entry.key for entry in self._archive.entries((start_ms, ""), until))
        yield from self._order.irange((start_ms, ""), (end_ms, ""), (True, False))

    def digest(self) -> str:
        """Return the hex sha256 over Lamport timestamp, ids and content of all entries, in log
        order.

        Each field follows its length, so two different logs always give different input to the
        hash.
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

    def restore(
        self, newest: list[LogEntry], blocks: list[Row], evicted: list[Row], horizon: LogKey | None
    ) -> None:
        """Restore the saved log, with the newest entries, oldest first."""
        newest = newest[-self._window :]
        self.entries = {entry.message_id: entry for entry in newest}
        self.touched = self.watched_from = BEFORE_ALL
        self._order = SortedList(entry.key for entry in newest)
        self._find_newest()
        self.size_bytes = sum(len(entry.content) for entry in newest)
        self._evicted_ids.restore(evicted)
        self.horizon = horizon
        if newest:
            self._blocks.restore(blocks, self._archive, newest[0].key)

    def restore_from(self, tables: Tables, newest: Sequence[LogEntry]) -> None:
        """Restore the saved log from its tables, with the newest entries, oldest first."""
        values = {row[0]: row[1] for row in tables.get(CHANNEL.name, ())}
        lamport_timestamp = values.get("horizon_lamport_timestamp")
        message_id = values.get("horizon_message_id")
        horizon = None
        if isinstance(lamport_timestamp, int) and isinstance(message_id, str):
            horizon = lamport_timestamp, message_id
        blocks, evicted = tables.get(LOG_BLOCKS.name, ()), tables.get(EVICTED.name, ())
        self.restore(list(newest), list(blocks), list(evicted), horizon)
        start = values.get(SUMMED_FROM)
        self.sums.restore(tables.get(LOG_SUMS.name, ()), start if isinstance(start, int) else 0)

    def _find_newest(self) -> None:
        self._newest = self._order[-1] if self._order else BEFORE_ALL

    def _touch(self, key: LogKey) -> None:
        if key >= self.watched_from and (self.touched is None or key < self.touched):
            self.touched = key

    def _make_room(self) -> None:
        """Keep to the limits: oldest entries leave the log, or, where there is an archive, memory
        and then the archive."""
        entries, archived = self.entries, self._archive is not NO_ARCHIVE
        while len(entries) > self._most or (
            self.size_bytes > self._most_bytes and len(entries) > 1
        ):
            if archived:
                self._archive_oldest()
            else:
                self._evict_oldest()

    def _archive_oldest(self) -> None:
        key = self._order.pop(0)
        entry = self.entries.pop(key[1])
        self.size_bytes -= len(entry.content)
        self._blocks.append(entry)
        total_bytes = self.size_bytes + self._blocks.size_bytes
        self._trim(len(self) - self.limit, total_bytes - self.limit_bytes)

    def _trim(self, count: int, size_bytes: int) -> None:
        """Let the archive go of whole blocks: those of at most `count` entries together, and as
        many as it takes to make room for `size_bytes`."""
        if max(count, size_bytes) <= 0 or (start := self._blocks.trim(count, size_bytes)) is None:
            return
        for entry in self._archive.entries(None, start):
            self._evicted(entry.key)
        self._recorder.trim(start)
        self._record_horizon()

    def _evict_oldest(self) -> None:
        key = self._order.pop(0)
        self.size_bytes -= len(self.entries.pop(key[1]).content)
        self._evicted(key)
        self._recorder.trim((key[0], key[1] + "\0"))
        self._record_horizon()

    def _evicted(self, key: LogKey) -> None:
        # A message may have waited until it was older than the horizon; that must not move it back.
        self.horizon = max(self.horizon or key, key)
        self.sums.forget_until(self.horizon[0])
        self._evicted_ids.add(key[1])
        self.evicted += 1

    def _record_horizon(self) -> None:
        assert self.horizon is not None
        self._recorder.put(CHANNEL, "horizon_lamport_timestamp", self.horizon[0])
        self._recorder.put(CHANNEL, "horizon_message_id", self.horizon[1])
