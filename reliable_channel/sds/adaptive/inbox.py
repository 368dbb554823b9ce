"""Queue of the messages that arrived in bundles, until a step processes them.

A new message costs a receiver far more than its bytes. Each message therefore counts `ENTRY_BYTES`
more than its own size. All senders share one budget, because anybody can invent sender names. The
senders take turns, one bundle each. If the queue is full, the sender with the most waiting bytes
loses its newest messages.
"""

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass
from typing import Final

from ..pacing import Bucket

ENTRY_BYTES: Final = 512
"""Cost (bytes) of a message besides its length, for objects in memory and work in a step."""
INBOX_BYTES: Final = 4 * 1024 * 1024
"""Maximum size (bytes) of all waiting messages, with `ENTRY_BYTES` added for each. Messages over
the limit are dropped, and requested again later."""
OPENED_BYTES: Final = 4 * 1024 * 1024
"""Budget (bytes) of messages that are processed at once, which is 5,000 short messages."""
OPENED_BYTES_PER_S: Final = 512 * 1024
"""Budget (bytes) that each further second adds, for 600 short messages and about 10 % of a core."""
PAUSE_MS: Final = 20
"""Time (ms) between steps when the budget is spent, so that a step processes several messages."""


@dataclass(slots=True, eq=False)
class Bundle:
    """Messages of one bundle from one participant."""

    sender_id: str
    messages: deque[bytes]


class Inbox:
    """Messages that wait to be processed, by sender."""

    def __init__(self) -> None:
        self.due_ms: int | None = None
        """When `take` has a message."""
        self.size_bytes = 0
        self._waiting: OrderedDict[str, deque[Bundle]] = OrderedDict()
        """The sender whose turn it is stands first."""
        self._sizes = Counter[str]()
        self._budget = Bucket(OPENED_BYTES, 1_000 / OPENED_BYTES_PER_S)

    def put(self, bundle: Bundle, now_ms: int) -> set[str]:
        """Add the messages of a bundle to the queue. Return the senders whose waiting messages were
        dropped to make room."""
        if not bundle.messages:
            return set()
        self._waiting.setdefault(bundle.sender_id, deque()).append(bundle)
        for data in bundle.messages:
            self._charge(bundle, _cost(data))
        if self.due_ms is None:
            self.due_ms = now_ms
        made_room = set[str]()
        while self.size_bytes > INBOX_BYTES:
            heaviest = max(self._sizes, key=self._sizes.__getitem__)
            made_room.add(heaviest)
            newest = self._waiting[heaviest][-1]
            while newest.messages and self.size_bytes > INBOX_BYTES:
                self._charge(newest, -_cost(newest.messages.pop()))
            self._tidy(newest)
        return made_room

    def take(self, now_ms: int) -> tuple[bytes, Bundle] | None:
        """Remove and return a message and its bundle.

        Return None if no message waits, or if the processing budget is spent.
        """
        if not self._waiting:
            return None
        bundle = next(iter(self._waiting.values()))[0]
        data = bundle.messages[0]
        if not self._budget.take(now_ms, _cost(data)):
            self.due_ms = now_ms + PAUSE_MS
            return None
        self._charge(bundle, -_cost(bundle.messages.popleft()))
        self._tidy(bundle)
        return data, bundle

    def skip(self, bundle: Bundle) -> None:
        """Drop the remaining messages of a bundle."""
        while bundle.messages:
            self._charge(bundle, -_cost(bundle.messages.pop()))
        self._tidy(bundle)

    def _charge(self, bundle: Bundle, size_bytes: int) -> None:
        self.size_bytes += size_bytes
        self._sizes[bundle.sender_id] += size_bytes

    def _tidy(self, bundle: Bundle) -> None:
        """Forget a bundle without messages; then it is another sender's turn."""
        bundles = self._waiting.get(bundle.sender_id)
        if bundles is None or bundle.messages or bundle not in bundles:
            return
        bundles.remove(bundle)
        self._waiting.move_to_end(bundle.sender_id)
        if not bundles:
            del self._waiting[bundle.sender_id], self._sizes[bundle.sender_id]
        if not self._waiting:
            self.due_ms = None


def _cost(data: bytes) -> int:
    return ENTRY_BYTES + len(data)
