"""Queue of messages for the transport. Content messages come first, and no kind of message can
block the other kinds."""

import heapq
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from ..sds.draft import SavedDraft
from ..sds.events import Outgoing, OutgoingKind

_IN_TURNS: Final = tuple(kind for kind in OutgoingKind if kind is not OutgoingKind.CONTENT)
CONCURRENCY: Final = 8
"""Maximum number of messages that are being sent to a node. A limit for each Waku node also limits
the bytes of these messages (`waku/_gate.py`). The core of the receiver restores the order."""
GROWS_MS: Final = 60_000
"""Time (ms) for which the queue must grow before `SendingFellBehind` is emitted."""
CONTROL_LIMIT: Final = 1_000
EPHEMERAL_LIMIT: Final = 100
"""Maximum number of ephemeral messages in the queue. Ephemeral messages may be dropped, and an old
"is typing" message is useless."""
OF_APPLICATION: Final = (OutgoingKind.CONTENT, OutgoingKind.EPHEMERAL, OutgoingKind.CONTROL)
"""Kinds of messages that are sent before a channel closes."""
_NEWEST: Final = {
    OutgoingKind.CONTROL: CONTROL_LIMIT,
    OutgoingKind.SYNC: 1,
    OutgoingKind.EPHEMERAL: EPHEMERAL_LIMIT,
}
"""The number of messages of a kind that are kept, the newest."""
FRESH_NS: Final = 10_000_000_000
"""Maximum age (ns) at which the same envelope is sent again. A failed dispatch may have reached the
node, and the network recognises the same envelope. An older message needs a new timestamp, because
archives refuse timestamps that are 20 s old (nwaku)."""


@dataclass(order=True, slots=True, weakref_slot=True, unsafe_hash=True)
class Item:
    """Message in the outbox, and its place in the queue."""

    number: int
    outgoing: Outgoing = field(compare=False)
    since_ms: int = field(compare=False, default=0)
    """Time (ms) at which the message entered the outbox. It may be before a restart."""

    def stamp_ns(self, wall_ns: int) -> int:
        """Return the timestamp (ns) with which a message is sent. A new message keeps the timestamp
        of its id, so that other participants can check the id."""
        id_ns = self.outgoing.timestamp_ns
        return wall_ns if id_ns is None or abs(wall_ns - id_ns) >= FRESH_NS else id_ns


class Growth:
    """Detector of a queue that grows for a minute."""

    def __init__(self) -> None:
        self.since_ms: int | None = None
        self._size = self._most = 0

    def is_lasting(self, size: int, now_ms: int) -> bool:
        """Note the present queue size, and return True after each minute of growth."""
        # Half of the most is no growth any more, but the start of another.
        if self.since_ms is not None and size > max(self._size, self._most // 2):
            self._most = max(self._most, size)
            if now_ms - self.since_ms < GROWS_MS or size < self._most:
                return False
            self.since_ms, self._size = now_ms, size
            return True
        self.since_ms, self._size = now_ms if size else None, size
        self._most = size
        return False


class Outbox:
    """Outbox with a queue for each kind of message. Content messages come first, in the order in
    which they were sent. Syncs, control messages, retries, repairs and ephemeral messages take
    turns.

    Messages of a kind may arrive faster than the transport sends, and syncs never end. With fixed
    priorities, retries and repairs might therefore never be sent.

    Every queue has a limit. The outgoing buffer limits the own messages, and the repair buffer
    limits the answers. The outbox keeps only the newest sync, because it repeats the previous sync.
    `CONTROL_LIMIT` and `EPHEMERAL_LIMIT` limit the control and ephemeral messages.
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
        self._in_hand: dict[int, Item] = {}
        """Messages that were taken, of which the transport has not answered, by number."""
        self._is_closing = False

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values())) + len(self._in_hand)

    def __contains__(self, message_id: str) -> bool:
        """Return True if a message of the application waits here, for the first time or again."""
        queued = self.queued
        return (OutgoingKind.CONTENT, message_id) in queued or (
            OutgoingKind.RETRY,
            message_id,
        ) in queued

    def put(self, outgoing: Outgoing, now_ms: int = 0) -> None:
        """Add a message, unless the message waits already."""
        kind = outgoing.kind
        key = (kind, outgoing.message_id)
        if key in self.queued or (self._is_closing and kind not in OF_APPLICATION):
            return
        if (newest := self._newest.get(kind)) is not None:
            if len(newest) >= _NEWEST[kind]:
                self._discard(newest.popleft())
            newest.append(outgoing)
        self._added += 1
        self.queued.add(key)
        draft = outgoing.draft
        since_ms = draft.lamport_timestamp if isinstance(draft, SavedDraft) else now_ms
        heapq.heappush(self._waiting[kind], Item(self._added, outgoing, min(since_ms, now_ms)))

    @property
    def first(self) -> Outgoing | None:
        """Message that will be sent next."""
        first = self._waiting[OutgoingKind.CONTENT] or self._first()
        return first[0].outgoing if first else None

    def take(self) -> Item:
        """Remove and return the next message. Call `done` or `put_back` after the attempt to send
        it."""
        first = self._waiting[OutgoingKind.CONTENT] or self._first()
        assert first, "nothing waits"
        item = heapq.heappop(first)
        outgoing = item.outgoing
        if outgoing.kind is not OutgoingKind.CONTENT:
            self._turns += 1
            self._had_turn[outgoing.kind] = self._turns
        self.queued.discard((outgoing.kind, outgoing.message_id))
        if (newest := self._newest.get(outgoing.kind)) is not None:
            newest.remove(outgoing)
        self._in_hand[item.number] = item
        return item

    def done(self, item: Item) -> None:
        """Note that a taken message needs no more work."""
        del self._in_hand[item.number]

    @property
    def in_hand(self) -> int:
        """Number of taken messages of which the transport has not answered."""
        return len(self._in_hand)

    def put_back(self, item: Item) -> None:
        """Put back a message that the transport did not accept. A newer message of the same kind
        may have taken its place in the queue."""
        outgoing = item.outgoing
        self.done(item)
        if self._is_closing and outgoing.kind not in OF_APPLICATION:
            return
        if (newest := self._newest.get(outgoing.kind)) is not None:
            if len(newest) >= _NEWEST[outgoing.kind]:
                return
            newest.appendleft(outgoing)
        self.queued.add((outgoing.kind, outgoing.message_id))
        heapq.heappush(self._waiting[outgoing.kind], item)

    def close(self) -> None:
        """Keep the application's messages for sending, and drop all other messages. Syncs, retries
        and repairs are dropped from now on, because closing must not wait for them."""
        self._is_closing = True
        for kind in set(OutgoingKind).difference(OF_APPLICATION):
            self._waiting[kind].clear()
            self.queued = {key for key in self.queued if key[0] is not kind}
            self._newest.get(kind, deque[Outgoing]()).clear()

    @property
    def undispatched_count(self) -> int:
        """Number of content messages that wait to be sent."""
        return len(self._waiting[OutgoingKind.CONTENT])

    def oldest_ms(self, now_ms: int) -> int:
        """Return the age of the oldest content message that waits or is in hand (ms)."""
        content = OutgoingKind.CONTENT
        oldest = self._waiting[content][:1]
        oldest += [item for item in self._in_hand.values() if item.outgoing.kind is content]
        return now_ms - min((item.since_ms for item in oldest), default=now_ms)

    def waiting(self) -> dict[str, int]:
        """Return the number of waiting messages of each kind."""
        return {kind.value: len(items) for kind, items in self._waiting.items() if items}

    def undispatched(self) -> list[Outgoing]:
        """Return the content messages that wait to be sent."""
        return [item.outgoing for item in sorted(self._waiting[OutgoingKind.CONTENT])]

    def _first(self) -> list[Item] | None:
        """Return the messages of the kind, except content, that is next."""
        waiting = self._waiting
        kinds = [kind for kind in _IN_TURNS if waiting[kind]]
        return waiting[min(kinds, key=self._had_turn.__getitem__)] if kinds else None

    def _discard(self, outgoing: Outgoing) -> None:
        items = self._waiting[outgoing.kind]
        items[:] = [item for item in items if item.outgoing is not outgoing]
        heapq.heapify(items)
        self.queued.discard((outgoing.kind, outgoing.message_id))
