"""References of a channel that tunes itself: to messages without any reference.

With references to all of them, concurrency sizes a causal history: it grows where many write at
once, and is short where they write in turns.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from .causal_history import CausalTail, history_entry
from .ids import RecentIds
from .log import MessageLog
from .log_entry import LogEntry
from .message import HistoryEntry

NEWEST: Final = 2
"""Of the log, which are referred to in any case."""
MAX_HEADS: Final = 200
REFERRED: Final = 10_000
ASKED: Final = 20
HEADS_OF_SYNC: Final = 8
"""A sync says little and often; with more heads each one names others."""


class Heads(CausalTail):
    """The heads of a log, the newest of it, and what a sender wants acknowledged."""

    def __init__(
        self,
        log: MessageLog,
        size: int,
        limit_bytes: int,
        encode: Callable[[HistoryEntry], bytes],
    ) -> None:
        super().__init__(log, min(size, MAX_HEADS), limit_bytes, encode)
        self._heads: OrderedDict[str, None] = OrderedDict()
        """The most recent last."""
        self._referred = RecentIds(REFERRED)
        self._asked: OrderedDict[str, None] = OrderedDict()
        self._turn = 0
        self.is_long = False
        """Whether others need references to as many of the newest as are documented."""

    def heard(self, message_ids: Sequence[str], *, is_content: bool) -> None:
        """Another participant refers to these, in content or in a sync."""
        for message_id in message_ids if self._asked else ():
            self._asked.pop(message_id, None)
        if is_content:
            self.referred(message_ids)

    def referred(self, message_ids: Sequence[str]) -> None:
        """A message of the log, now or soon, refers to these."""
        for message_id in message_ids:
            if message_id not in self._referred:
                self._referred.add(message_id)
            self._heads.pop(message_id, None)

    def logged(self, message_id: str) -> None:
        """A message entered the log."""
        if message_id not in self._referred:
            self._heads[message_id] = None
            if len(self._heads) > self._size:
                self._heads.popitem(last=False)

    def ask_for(self, message_id: str) -> None:
        """Its sender waits for an acknowledgement of this message."""
        self._asked[message_id] = None
        if len(self._asked) > ASKED:
            self._asked.popitem(last=False)

    def encoded(self, *, is_sync: bool = False) -> bytes:
        """What the next message refers to, as the bytes of a causal history field."""
        pieces = [self._encode(history_entry(each)) for each in self.entries(is_sync=is_sync)]
        size_bytes = sum(map(len, pieces))
        while size_bytes > self._limit_bytes:
            size_bytes -= len(pieces.pop(0))
        return b"".join(pieces)

    def entries(self, *, is_sync: bool) -> list[LogEntry]:
        """What the next message refers to, oldest first.

        DIVERGES: LIP 109 has the newest entries of the log, however many refer to them already.
        Content refers to all heads, which are none then; syncs take turns with them.
        """
        asked, self._asked = self._asked, OrderedDict()
        heads = list(self._heads)
        if is_sync and len(heads) > HEADS_OF_SYNC:
            self._turn = (self._turn + HEADS_OF_SYNC) % len(heads)
            heads = (heads + heads)[self._turn : self._turn + HEADS_OF_SYNC]
        newest = self._log.last(self._size if self.is_long else min(NEWEST, self._size))
        chosen = {entry.message_id: entry for entry in newest}
        for message_id in (*asked, *heads):
            if message_id not in chosen and (entry := self._log.get(message_id)) is not None:
                chosen[message_id] = entry
        entries = sorted(chosen.values(), key=lambda entry: entry.key)[-max(1, self._size) :]
        if not is_sync:
            self.referred([entry.message_id for entry in entries])
        return entries
