"""What waits for the transport, most urgent first."""

import heapq
from collections import Counter, deque
from typing import Final

import anyio

from ..sds.events import Outgoing, OutgoingKind
from .pulse import Pulse

_URGENCY: Final = {kind: urgency for urgency, kind in enumerate(OutgoingKind)}
CONTROL_LIMIT: Final = 1_000
EPHEMERAL_LIMIT: Final = 100
"""Nothing is promised for ephemeral messages, and an old "is typing" is worth nothing."""
_NEWEST: Final = {
    OutgoingKind.CONTROL: CONTROL_LIMIT,
    OutgoingKind.SYNC: 1,
    OutgoingKind.EPHEMERAL: EPHEMERAL_LIMIT,
}
"""So many of a kind are kept, the newest."""
Item = tuple[int, int, Outgoing]
"""Urgency, number and message."""


class Outbox:
    """A priority queue: content in the order it was sent, then syncs, control messages, retries,
    repairs and ephemeral messages.

    Bounded by what fills it: own messages by the outgoing buffer, answers by the repair buffer; of
    syncs only the newest is kept, since each says all that the one before said, of control messages
    the newest `CONTROL_LIMIT`, and of ephemeral messages the newest `EPHEMERAL_LIMIT`.
    """

    def __init__(self) -> None:
        self._heap: list[Item] = []
        self._queued: set[tuple[OutgoingKind, str]] = set()
        self._newest: dict[OutgoingKind, deque[Outgoing]] = {kind: deque() for kind in _NEWEST}
        self._added = 0
        self._in_hand = 0
        self._changed = anyio.Event()
        self._emptied = anyio.Event()
        self._content_came = Pulse()

    def __len__(self) -> int:
        return len(self._heap) + self._in_hand

    def put(self, outgoing: Outgoing) -> None:
        """Add a message, unless the same is waiting."""
        key = (outgoing.kind, outgoing.message_id)
        if key in self._queued:
            return
        if (newest := self._newest.get(outgoing.kind)) is not None:
            if len(newest) >= _NEWEST[outgoing.kind]:
                self._discard(newest.popleft())
            newest.append(outgoing)
        if outgoing.kind is OutgoingKind.CONTENT:
            self._content_came.fire()
        self._added += 1
        self._push((_URGENCY[outgoing.kind], self._added, outgoing))

    async def get(self) -> Item:
        """Wait for the most urgent message and take it; `done` or `put_back` must follow."""
        while not self._heap:
            if self._changed.is_set():  # a new one would leave those behind who wait already
                self._changed = anyio.Event()
            await self._changed.wait()
        item = heapq.heappop(self._heap)
        outgoing = item[2]
        self._queued.discard((outgoing.kind, outgoing.message_id))
        if (newest := self._newest.get(outgoing.kind)) is not None:
            newest.remove(outgoing)
        self._in_hand += 1
        return item

    def done(self) -> None:
        """A message that was taken needs no more."""
        self._in_hand -= 1
        if not self._heap and not self._in_hand:
            self._emptied.set()

    def put_back(self, item: Item) -> None:
        """Return a message that the transport did not take, in its old place, unless newer ones of
        its kind took that meanwhile."""
        kind = item[2].kind
        if (newest := self._newest.get(kind)) is not None:
            if len(newest) >= _NEWEST[kind]:
                self.done()
                return
            newest.appendleft(item[2])
        self._in_hand -= 1
        self._push(item)

    async def content_comes(self) -> None:
        """Wait for a new message of the application, which may go when others may not."""
        await self._content_came.wait()

    def waiting(self) -> dict[str, int]:
        """How many messages of each kind wait."""
        return dict(Counter(item[2].kind.value for item in self._heap))

    async def drained(self) -> None:
        """Wait until nothing waits for the transport."""
        while self._heap or self._in_hand:
            self._emptied = anyio.Event()
            await self._emptied.wait()

    def undispatched(self) -> list[Outgoing]:
        """The messages of the application that wait."""
        waiting = sorted(self._heap, key=lambda item: item[:2])
        return [item[2] for item in waiting if item[2].kind is OutgoingKind.CONTENT]

    def _push(self, item: Item) -> None:
        self._queued.add((item[2].kind, item[2].message_id))
        heapq.heappush(self._heap, item)
        self._changed.set()

    def _discard(self, outgoing: Outgoing) -> None:
        self._heap = [item for item in self._heap if item[2] is not outgoing]
        heapq.heapify(self._heap)
        self._queued.discard((outgoing.kind, outgoing.message_id))
