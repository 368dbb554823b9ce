"""Messages for the transport: content first, and no other kind keeps the rest waiting."""

import heapq
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from ..sds.events import Outgoing, OutgoingKind

_IN_TURNS: Final = tuple(kind for kind in OutgoingKind if kind is not OutgoingKind.CONTENT)
CONTROL_LIMIT: Final = 1_000
EPHEMERAL_LIMIT: Final = 100
"""Nothing is promised for ephemeral messages, and an old "is typing" is worth nothing."""
_OF_APPLICATION: Final = (OutgoingKind.CONTENT, OutgoingKind.EPHEMERAL, OutgoingKind.CONTROL)
_NEWEST: Final = {
    OutgoingKind.CONTROL: CONTROL_LIMIT,
    OutgoingKind.SYNC: 1,
    OutgoingKind.EPHEMERAL: EPHEMERAL_LIMIT,
}
"""The number of messages of a kind that are kept, the newest."""
FRESH_NS: Final = 10_000_000_000
"""A failed dispatch may have reached the node: within 10 s the same envelope goes again, which the
network recognises as a repetition. A later one needs a new timestamp, since archives refuse old
ones (nwaku: 20 s)."""


@dataclass(order=True, slots=True, weakref_slot=True, unsafe_hash=True)
class Item:
    """A message in the outbox, and its place there."""

    number: int
    outgoing: Outgoing = field(compare=False)

    def stamp_ns(self, wall_ns: int) -> int:
        """The timestamp to send it with: that of its id while it is fresh, so that others can check
        the id."""
        id_ns = self.outgoing.timestamp_ns
        return wall_ns if id_ns is None or abs(wall_ns - id_ns) >= FRESH_NS else id_ns


class Outbox:
    """A queue for each kind: content in the order it was sent, before all else; syncs, control
    messages, retries, repairs and ephemeral messages in turns.

    A transport may be slower than a kind comes, and syncs above all never end: with a priority for
    each kind nothing would be repeated or repaired any more.

    Bounded by what fills it: own messages by the outgoing buffer, answers by the repair buffer; of
    syncs only the newest is kept, since each says all that the one before said, of control messages
    the newest `CONTROL_LIMIT`, and of ephemeral messages the newest `EPHEMERAL_LIMIT`.
    """

    def __init__(self) -> None:
        self._waiting: dict[OutgoingKind, list[Item]] = {kind: [] for kind in OutgoingKind}
        """Heaps."""
        self._had_turn = dict.fromkeys(_IN_TURNS, 0)
        """When a kind had its turn last, in turns."""
        self.queued: set[tuple[OutgoingKind, str]] = set()
        """What waits, by kind and message id; open to read."""
        self._newest: dict[OutgoingKind, deque[Outgoing]] = {kind: deque() for kind in _NEWEST}
        self._added = self._turns = 0
        self.in_hand = 0
        """Messages that were taken, of which the transport has not answered."""
        self._is_closing = False

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values())) + self.in_hand

    def __contains__(self, message_id: str) -> bool:
        """Return True if a message of the application waits here, for the first time or again."""
        queued = self.queued
        return (OutgoingKind.CONTENT, message_id) in queued or (
            OutgoingKind.RETRY,
            message_id,
        ) in queued

    def put(self, outgoing: Outgoing) -> None:
        """Add a message, unless the same is waiting."""
        kind = outgoing.kind
        key = (kind, outgoing.message_id)
        if key in self.queued or self._is_unwanted(kind):
            return
        if (newest := self._newest.get(kind)) is not None:
            if len(newest) >= _NEWEST[kind]:
                self._discard(newest.popleft())
            newest.append(outgoing)
        self._added += 1
        self.queued.add(key)
        heapq.heappush(self._waiting[kind], Item(self._added, outgoing))

    @property
    def first(self) -> Outgoing | None:
        """The message whose turn it is."""
        first = self._first()
        return first[0].outgoing if first else None

    def take(self) -> Item:
        """Take the message whose turn it is; `done` or `put_back` must follow."""
        first = self._first()
        assert first, "nothing waits"
        item = heapq.heappop(first)
        outgoing = item.outgoing
        if outgoing.kind is not OutgoingKind.CONTENT:
            self._turns += 1
            self._had_turn[outgoing.kind] = self._turns
        self.queued.discard((outgoing.kind, outgoing.message_id))
        if (newest := self._newest.get(outgoing.kind)) is not None:
            newest.remove(outgoing)
        self.in_hand += 1
        return item

    def done(self) -> None:
        """A message that was taken needs no more."""
        self.in_hand -= 1

    def put_back(self, item: Item) -> None:
        """Return a message that the transport did not take, in its old place, unless newer ones of
        its kind took that meanwhile."""
        outgoing = item.outgoing
        self.in_hand -= 1
        if self._is_unwanted(outgoing.kind):
            return
        if (newest := self._newest.get(outgoing.kind)) is not None:
            if len(newest) >= _NEWEST[outgoing.kind]:
                return
            newest.appendleft(outgoing)
        self.queued.add((outgoing.kind, outgoing.message_id))
        heapq.heappush(self._waiting[outgoing.kind], item)

    def close(self) -> None:
        """Keep what the application sent, and drop syncs, retries and repairs, now and later: who
        closes a channel must not wait for them."""
        self._is_closing = True
        for kind in filter(self._is_unwanted, OutgoingKind):
            self._waiting[kind].clear()
            self.queued = {key for key in self.queued if key[0] is not kind}
            self._newest.get(kind, deque[Outgoing]()).clear()

    def waiting(self) -> dict[str, int]:
        """How many messages of each kind wait."""
        return {kind.value: len(items) for kind, items in self._waiting.items() if items}

    def undispatched(self) -> list[Outgoing]:
        """The messages of the application that wait."""
        return [item.outgoing for item in sorted(self._waiting[OutgoingKind.CONTENT])]

    def _is_unwanted(self, kind: OutgoingKind) -> bool:
        return self._is_closing and kind not in _OF_APPLICATION

    def _first(self) -> list[Item] | None:
        waiting = self._waiting
        if content := waiting[OutgoingKind.CONTENT]:
            return content
        kinds = [kind for kind in _IN_TURNS if waiting[kind]]
        return waiting[min(kinds, key=self._had_turn.__getitem__)] if kinds else None

    def _discard(self, outgoing: Outgoing) -> None:
        items = self._waiting[outgoing.kind]
        items[:] = [item for item in items if item.outgoing is not outgoing]
        heapq.heapify(items)
        self.queued.discard((outgoing.kind, outgoing.message_id))
