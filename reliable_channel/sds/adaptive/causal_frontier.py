"""In a self-tuning channel, a message refers to all messages without a reference so far.

The length of a causal history then depends on how many participants write at once.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ..changes import NO_RECORDER, Recorder, Row, Table
from ..ids import RecentIds
from ..log.log import MessageLog
from ..message import HistoryEntry, LogEntry
from ..references.causal_history import CausalTail, History, history_entry

NEWEST: Final = 2
"""Number of newest log messages that a new message always refers to."""
MAX_HEADS: Final = 200
REFERRED: Final = 10_000
MAX_UNACKNOWLEDGED: Final = 100
"""Maximum number of messages that one message acknowledges, with about 10 kB of references."""
HEADS_OF_SYNC: Final = 8
"""Maximum number of references in a sync message. Sync messages are short and frequent, and each
names other heads if there are more heads."""
HEADS: Final = Table("heads", (("message_id", "TEXT"),))


class CausalFrontier(CausalTail):
    """Heads of a log, its newest messages, and messages without an acknowledgement.

    References to heads alone would acknowledge one message of a stream, because each refers to the
    last.
    """

    def __init__(
        self,
        log: MessageLog,
        size: int,
        limit_bytes: int,
        encode: Callable[[HistoryEntry], bytes],
        recorder: Recorder = NO_RECORDER,
    ) -> None:
        super().__init__(log, min(size, MAX_HEADS), limit_bytes, encode)
        self._recorder = recorder
        self._heads: OrderedDict[str, None] = OrderedDict()
        """The most recent last."""
        self._referred = RecentIds(REFERRED)
        self._unacknowledged: OrderedDict[str, str] = OrderedDict()
        """Messages of others to which only their senders refer, and these senders."""
        self._encoded: list[str] = []
        """What the last message refers to."""
        self._turn = 0
        self.is_long = False
        """True if others need references to as many of the newest as are documented."""

    def heard(self, message_ids: Sequence[str], sender_id: str) -> None:
        """Note that another participant refers to these messages, in content or in a sync."""
        unacknowledged = self._unacknowledged
        for message_id in message_ids if unacknowledged else ():
            if unacknowledged.get(message_id, sender_id) != sender_id:
                del unacknowledged[message_id]

    def referred(self, message_ids: Iterable[str]) -> tuple[str, ...]:
        """Note that a message of this log, or one that soon enters it, refers to these messages.
        Return the messages that no earlier message refers to."""
        first = list[str]()
        for message_id in message_ids:
            if message_id in self._referred:
                continue
            self._referred.add(message_id)
            if message_id in self._heads:
                self._drop(message_id)
            elif message_id in self._log:
                continue  # no head any more
            first.append(message_id)
        return tuple(first)

    def unreferred(self, message_ids: Iterable[str]) -> None:
        """Undo the references of a message that was evicted before it entered the log."""
        for message_id in message_ids:
            self._referred.discard(message_id)
            if message_id in self._log:
                self.logged(message_id)

    def logged(self, message_id: str) -> None:
        """Note that a message entered the log."""
        if message_id not in self._referred:
            self._heads[message_id] = None
            self._recorder.put(HEADS, message_id)
            if len(self._heads) > self._size:
                self._drop(next(iter(self._heads)))

    @property
    def is_behind(self) -> bool:
        """True if a message of another participant waits for an acknowledgement."""
        return bool(self._unacknowledged)

    def acknowledge(self, message_id: str, sender_id: str) -> None:
        """Make the next own message refer to this message, unless another participant does so
        first."""
        self._unacknowledged[message_id] = sender_id
        if len(self._unacknowledged) > MAX_UNACKNOWLEDGED:
            self._unacknowledged.popitem(last=False)

    def encoded(self, *, is_sync: bool = False) -> History:
        """Return the references of the next message."""
        if self.is_long:  # whatever else it would refer to is among the newest, or older than these
            self._take_unacknowledged()
            history = super().encoded()
            first = bisect_left(self._starts, self._starts[0] + history.start)
            self._encoded = self._ids[first:]
            return history
        entries = self.entries(is_sync=is_sync)
        pieces = [self._encode(history_entry(each)) for each in entries]
        size_bytes = sum(map(len, pieces))
        while size_bytes > self._limit_bytes:
            size_bytes -= len(pieces.pop(0))
        self._encoded = [each.message_id for each in entries[len(entries) - len(pieces) :]]
        return History(b"".join(pieces), 0, size_bytes)

    def sent(self) -> None:
        """Note that the content message with the last `encoded` references was sent."""
        self.referred(self._encoded)

    def restore(self, rows: Sequence[Row]) -> None:
        """Restore the heads of the log that were saved before a restart."""
        heads = [self._log.get(str(message_id)) for (message_id,) in rows]
        found = sorted(head.key for head in heads if head is not None)
        self._heads = OrderedDict.fromkeys(message_id for _, message_id in found)

    def entries(self, *, is_sync: bool) -> list[LogEntry]:
        """Return the references of the next message, oldest first.

        DIVERGES: LIP 109 refers to the newest entries of the log, even if many messages refer to
        them already. A content message refers to all heads, so that they are heads no longer. Sync
        messages name the heads in turns. Content and sync messages refer to unacknowledged
        messages.
        """
        heads = list(self._heads)
        if is_sync and len(heads) > HEADS_OF_SYNC:
            self._turn = (self._turn + HEADS_OF_SYNC) % len(heads)
            heads = (heads + heads)[self._turn : self._turn + HEADS_OF_SYNC]
        newest = self._log.last(min(NEWEST, self._size))
        chosen = {entry.message_id: entry for entry in (*newest, *self._take_unacknowledged())}
        for message_id in heads:
            if message_id not in chosen and (entry := self._log.get(message_id)) is not None:
                chosen[message_id] = entry
        return sorted(chosen.values(), key=lambda entry: entry.key)[-max(1, self._size) :]

    def _take_unacknowledged(self) -> list[LogEntry]:
        """Take the messages of others that the next message acknowledges."""
        if not self._unacknowledged:
            return []
        unacknowledged, self._unacknowledged = self._unacknowledged, OrderedDict()
        taken = []
        for message_id, sender_id in unacknowledged.items():
            if (entry := self._log.get(message_id)) is None:
                self._unacknowledged[message_id] = sender_id  # it is parked: with a later message
            else:
                taken.append(entry)
        return taken

    def _drop(self, message_id: str) -> None:
        del self._heads[message_id]
        self._recorder.delete(HEADS, message_id)
