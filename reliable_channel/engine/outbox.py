"""Queue of messages for the transport. Content messages come first, and no kind of message can
block the other kinds."""

from collections import OrderedDict
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Final

from ..sds.draft import SavedDraft
from ..sds.events import Outgoing, OutgoingKind

_IN_TURNS: Final = tuple(kind for kind in OutgoingKind if kind is not OutgoingKind.CONTENT)
SENT_TWICE: Final = (OutgoingKind.CONTENT, OutgoingKind.RETRY)
"""Kinds of own messages with content, which are sent until another participant has them."""
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


@dataclass(slots=True, weakref_slot=True, eq=False)
class Item:
    """Message in the outbox, and its place in the queue."""

    number: int
    outgoing: Outgoing
    since_ms: int = 0
    """Time (ms) at which the message entered the outbox. It may be before a restart."""
    is_cancelled: bool = False
    """True if the application cancelled the message while it was in hand."""

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
        self._waiting: dict[OutgoingKind, OrderedDict[str, Item]] = {
            kind: OrderedDict() for kind in OutgoingKind
        }
        """By message id, in the order of their numbers."""
        self._had_turn = dict.fromkeys(_IN_TURNS, 0)
        """When a kind had its turn last, in turns."""
        self.queued = 0
        """Number of messages that wait, without those in hand; open to read."""
        self._added = self._turns = 0
        self._in_hand: dict[int, Item] = {}
        """Messages that were taken, of which the transport has not answered, by number."""
        self._is_closing = False

    def __len__(self) -> int:
        return self.queued + len(self._in_hand)

    def __contains__(self, message_id: str) -> bool:
        """Return True if a message of the application waits here, for the first time or again."""
        return any(message_id in self._waiting[kind] for kind in SENT_TWICE)

    def put(self, outgoing: Outgoing, now_ms: int = 0) -> None:
        """Add a message, unless the message waits already."""
        kind = outgoing.kind
        waiting = self._waiting[kind]
        if outgoing.message_id in waiting or (self._is_closing and kind not in OF_APPLICATION):
            return
        if len(waiting) == _NEWEST.get(kind):
            waiting.popitem(last=False)
            self.queued -= 1
        self._added += 1
        self.queued += 1
        draft = outgoing.draft
        since_ms = draft.lamport_timestamp if isinstance(draft, SavedDraft) else now_ms
        waiting[outgoing.message_id] = Item(self._added, outgoing, min(since_ms, now_ms))

    @property
    def first(self) -> Outgoing | None:
        """Message that will be sent next."""
        first = self._waiting[OutgoingKind.CONTENT] or self._others()
        return next(iter(first.values())).outgoing if first else None

    def take(self) -> Item:
        """Remove and return the next message. Call `done` or `put_back` after the attempt to send
        it."""
        first = self._waiting[OutgoingKind.CONTENT] or self._others()
        _, item = first.popitem(last=False)
        kind = item.outgoing.kind
        if kind is not OutgoingKind.CONTENT:
            self._turns += 1
            self._had_turn[kind] = self._turns
        self.queued -= 1
        self._in_hand[item.number] = item
        return item

    def done(self, item: Item) -> None:
        """Note that a taken message needs no more work."""
        del self._in_hand[item.number]

    @property
    def in_hand(self) -> int:
        """Number of taken messages of which the transport has not answered."""
        return len(self._in_hand)

    @property
    def is_drained(self) -> bool:
        """True if no message waits, and the transport has answered of the application's."""
        in_hand = self._in_hand.values()
        return not self.queued and all(i.outgoing.kind not in OF_APPLICATION for i in in_hand)

    def put_back(self, item: Item) -> bool:
        """Put back a message that the transport did not accept. Return False if a newer message
        took its place, or if the message was cancelled."""
        self.done(item)
        outgoing = item.outgoing
        kind, message_id = outgoing.kind, outgoing.message_id
        waiting = self._waiting[kind]
        if (
            item.is_cancelled
            or (self._is_closing and kind not in OF_APPLICATION)
            or len(waiting) == _NEWEST.get(kind)
            or message_id in waiting
        ):
            return False
        # Only messages that were in hand at the same time can be older, at most `CONCURRENCY`.
        older = [*takewhile(lambda each: each.number < item.number, waiting.values()), item]
        waiting[message_id] = item
        self.queued += 1
        for each in reversed(older):
            waiting.move_to_end(each.outgoing.message_id, last=False)
        return True

    def cancel(self, message_id: str) -> None:
        """Remove a message of the application. If the message is in hand, it leaves if the present
        attempt succeeds, and not otherwise."""
        for kind in SENT_TWICE:
            if self._waiting[kind].pop(message_id, None) is not None:
                self.queued -= 1
        for item in self._in_hand.values():
            outgoing = item.outgoing
            if outgoing.message_id == message_id and outgoing.kind in SENT_TWICE:
                item.is_cancelled = True

    def close(self) -> None:
        """Keep the application's messages for sending, and drop all other messages. Syncs, retries
        and repairs are dropped from now on, because closing must not wait for them."""
        self._is_closing = True
        for kind in set(OutgoingKind).difference(OF_APPLICATION):
            self._waiting[kind].clear()
        self.queued = sum(map(len, self._waiting.values()))

    @property
    def undispatched_count(self) -> int:
        """Number of content messages that wait to be sent."""
        return len(self._waiting[OutgoingKind.CONTENT])

    def oldest_ms(self, now_ms: int) -> int:
        """Return the age of the oldest content message that waits or is in hand (ms)."""
        content = OutgoingKind.CONTENT
        items = [*self._in_hand.values(), *islice(self._waiting[content].values(), 1)]
        ages = [
            now_ms - item.since_ms
            for item in items
            if item.outgoing.kind is content and not item.is_cancelled
        ]
        return max(ages, default=0)

    def waiting(self) -> dict[str, int]:
        """Return the number of waiting messages of each kind."""
        return {kind.value: len(items) for kind, items in self._waiting.items() if items}

    def undispatched(self) -> list[Outgoing]:
        """Return the content messages that wait to be sent."""
        return [item.outgoing for item in self._waiting[OutgoingKind.CONTENT].values()]

    def _others(self) -> OrderedDict[str, Item]:
        """Return the messages of the kind, except content, that is next."""
        kinds = [kind for kind in _IN_TURNS if self._waiting[kind]]
        kind = min(kinds, key=self._had_turn.__getitem__, default=OutgoingKind.CONTENT)
        return self._waiting[kind]
