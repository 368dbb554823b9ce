"""Messages for the transport, most urgent first."""

import heapq
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final

from ..sds.events import Outgoing, OutgoingKind

_URGENCY: Final = {kind: urgency for urgency, kind in enumerate(OutgoingKind)}
CONTROL_LIMIT: Final = 1_000
EPHEMERAL_LIMIT: Final = 100
"""Nothing is promised for ephemeral messages, and an old "is typing" is worth nothing."""
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

    urgency: int
    number: int
    outgoing: Outgoing = field(compare=False)

    def stamp_ns(self, wall_ns: int) -> int:
        """The timestamp to send it with: that of its id while it is fresh, so that others can check
        the id."""
        id_ns = self.outgoing.timestamp_ns
        return wall_ns if id_ns is None or abs(wall_ns - id_ns) >= FRESH_NS else id_ns


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
        self.in_hand = 0
        """Messages that were taken, of which the transport has not answered."""

    def __len__(self) -> int:
        return len(self._heap) + self.in_hand

    def __contains__(self, message_id: str) -> bool:
        """Whether a message of the application waits here, for the first time or again."""
        queued = self._queued
        return (OutgoingKind.CONTENT, message_id) in queued or (
            OutgoingKind.RETRY,
            message_id,
        ) in queued

    def put(self, outgoing: Outgoing) -> None:
        """Add a message, unless the same is waiting."""
        kind = outgoing.kind
        key = (kind, outgoing.message_id)
        if key in self._queued:
            return
        if (newest := self._newest.get(kind)) is not None:
            if len(newest) >= _NEWEST[kind]:
                self._discard(newest.popleft())
            newest.append(outgoing)
        self._added += 1
        self._queued.add(key)
        heapq.heappush(self._heap, Item(_URGENCY[kind], self._added, outgoing))

    @property
    def first(self) -> Outgoing | None:
        """The most urgent message."""
        return self._heap[0].outgoing if self._heap else None

    def take(self) -> Item:
        """Take the most urgent message; `done` or `put_back` must follow."""
        item = heapq.heappop(self._heap)
        outgoing = item.outgoing
        self._queued.discard((outgoing.kind, outgoing.message_id))
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
        if (newest := self._newest.get(outgoing.kind)) is not None:
            if len(newest) >= _NEWEST[outgoing.kind]:
                return
            newest.appendleft(outgoing)
        self._queued.add((outgoing.kind, outgoing.message_id))
        heapq.heappush(self._heap, item)

    def waiting(self) -> dict[str, int]:
        """How many messages of each kind wait."""
        return dict(Counter(item.outgoing.kind.value for item in self._heap))

    def undispatched(self) -> list[Outgoing]:
        """The messages of the application that wait."""
        waiting = [item.outgoing for item in sorted(self._heap)]
        return [outgoing for outgoing in waiting if outgoing.kind is OutgoingKind.CONTENT]

    def _discard(self, outgoing: Outgoing) -> None:
        self._heap = [item for item in self._heap if item.outgoing is not outgoing]
        heapq.heapify(self._heap)
        self._queued.discard((outgoing.kind, outgoing.message_id))
