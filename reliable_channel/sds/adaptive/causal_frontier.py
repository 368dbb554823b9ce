"""References of a channel that tunes itself: to messages without any reference.

With references to all of them, concurrency sizes a causal history: it grows where many write at
once, and is short where they write in turns.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ..changes import NO_RECORDER, Recorder, Row, Table
from ..ids import RecentIds
from ..log.entry import LogEntry
from ..log.log import MessageLog
from ..message import HistoryEntry
from ..references.causal_history import CausalTail, history_entry

NEWEST: Final = 2
"""Of the log, which are referred to in any case."""
MAX_HEADS: Final = 200
REFERRED: Final = 10_000
MAX_UNACKNOWLEDGED: Final = 100
"""Messages that one message acknowledges: a second of a fast stream, in some 10 kB."""
HEADS_OF_SYNC: Final = 8
"""A sync says little and often; with more heads each one names others."""
HEADS: Final = Table("heads", (("message_id", "TEXT"),))


class CausalFrontier(CausalTail):
    """The heads of a log, the newest of it, and what no participant has acknowledged yet.

    Heads alone acknowledge one message of a stream, as each refers to the one before.
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
        """Whether others need references to as many of the newest as are documented."""

    def heard(self, message_ids: Sequence[str], sender_id: str) -> None:
        """Another participant refers to these, in content or in a sync."""
        unacknowledged = self._unacknowledged
        for message_id in message_ids if unacknowledged else ():
            if unacknowledged.get(message_id, sender_id) != sender_id:
                del unacknowledged[message_id]

    def referred(self, message_ids: Iterable[str]) -> tuple[str, ...]:
        """A message of the log, now or soon, refers to these; return those to which none did."""
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
        """The message that was the first to refer to these was evicted before it entered the log,
        and may never come again."""
        for message_id in message_ids:
            self._referred.discard(message_id)
            if message_id in self._log:
                self.logged(message_id)

    def logged(self, message_id: str) -> None:
        """A message entered the log."""
        if message_id not in self._referred:
            self._heads[message_id] = None
            self._recorder.put(HEADS, message_id)
            if len(self._heads) > self._size:
                self._drop(next(iter(self._heads)))

    @property
    def is_behind(self) -> bool:
        """Whether a message of another participant waits to be acknowledged."""
        return bool(self._unacknowledged)

    def acknowledge(self, message_id: str, sender_id: str) -> None:
        """Have the next message refer to this one, unless another participant does before."""
        self._unacknowledged[message_id] = sender_id
        if len(self._unacknowledged) > MAX_UNACKNOWLEDGED:
            self._unacknowledged.popitem(last=False)

    def encoded(self, *, is_sync: bool = False) -> bytes:
        """What the next message refers to, as the bytes of a causal history field."""
        entries = self.entries(is_sync=is_sync)
        pieces = [self._encode(history_entry(each)) for each in entries]
        size_bytes = sum(map(len, pieces))
        while size_bytes > self._limit_bytes:
            size_bytes -= len(pieces.pop(0))
        self._encoded = [each.message_id for each in entries[len(entries) - len(pieces) :]]
        return b"".join(pieces)

    def sent(self) -> None:
        """The content message with the last `encoded` references is sent."""
        self.referred(self._encoded)

    def restore(self, rows: Sequence[Row]) -> None:
        """Begin with the heads from before a restart."""
        heads = [self._log.get(str(message_id)) for (message_id,) in rows]
        found = sorted(head.key for head in heads if head is not None)
        self._heads = OrderedDict.fromkeys(message_id for _, message_id in found)

    def entries(self, *, is_sync: bool) -> list[LogEntry]:
        """What the next message refers to, oldest first.

        DIVERGES: LIP 109 has the newest entries of the log, however many refer to them already.
        Content refers to all heads, which are none then; syncs take turns with them. Both refer to
        what is unacknowledged.
        """
        heads = list(self._heads)
        if is_sync and len(heads) > HEADS_OF_SYNC:
            self._turn = (self._turn + HEADS_OF_SYNC) % len(heads)
            heads = (heads + heads)[self._turn : self._turn + HEADS_OF_SYNC]
        newest = self._log.last(self._size if self.is_long else min(NEWEST, self._size))
        chosen = {entry.message_id: entry for entry in newest}
        unacknowledged, self._unacknowledged = self._unacknowledged, OrderedDict()
        for message_id, sender_id in unacknowledged.items():
            if (entry := self._log.get(message_id)) is None:
                self._unacknowledged[message_id] = sender_id  # it is parked: with a later message
            else:
                chosen[message_id] = entry
        for message_id in heads:
            if message_id not in chosen and (entry := self._log.get(message_id)) is not None:
                chosen[message_id] = entry
        return sorted(chosen.values(), key=lambda entry: entry.key)[-max(1, self._size) :]

    def _drop(self, message_id: str) -> None:
        del self._heads[message_id]
        self._recorder.delete(HEADS, message_id)
