"""Memory of a gossipsub router, which keeps ids for minutes and messages for seconds."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable
from dataclasses import dataclass, field

__all__ = ["Kept", "MessageCache", "SeenIds"]


class SeenIds:
    """Set of the ids of recent messages. The oldest ids are evicted."""

    def __init__(self, limit: int, seen_ms: int) -> None:
        self._limit = limit
        self._seen_ms = seen_ms
        self._since: dict[bytes, int] = {}

    def __contains__(self, message_id: bytes) -> bool:
        return message_id in self._since

    def __len__(self) -> int:
        return len(self._since)

    def add(self, message_id: bytes, now_ms: int) -> None:
        """Add a message id that is not in the set."""
        self._since[message_id] = now_ms
        if len(self._since) > self._limit:
            del self._since[next(iter(self._since))]

    def expire(self, now_ms: int) -> None:
        """Remove the ids that are older than the time limit."""
        while self._since:
            oldest = next(iter(self._since))
            if now_ms - self._since[oldest] < self._seen_ms:
                return
            del self._since[oldest]


@dataclass(slots=True)
class Kept:
    """Message that is kept, because peers may request it."""

    topic: str
    data: bytes
    sent: Counter[Hashable] = field(default_factory=Counter)
    """Number of times that each peer got the message as an answer to IWANT."""


class MessageCache:
    """Messages of the last heartbeats, in one window for each heartbeat."""

    def __init__(self, windows: int, gossip_windows: int, limit_bytes: int) -> None:
        self._gossip_windows = gossip_windows
        self._limit_bytes = limit_bytes
        self._windows: deque[dict[bytes, None]] = deque([{}], maxlen=windows)
        """The newest first."""
        self._kept: dict[bytes, Kept] = {}
        self._bytes = 0

    @property
    def size_bytes(self) -> int:
        return self._bytes

    def add(self, message_id: bytes, topic: str, data: bytes) -> None:
        """Add a message to the newest window. The oldest messages are evicted."""
        if message_id in self._kept:
            return
        self._windows[0][message_id] = None
        self._kept[message_id] = Kept(topic, data)
        self._bytes += len(data)
        for window in reversed(self._windows):
            while window and self._bytes > self._limit_bytes:
                oldest = next(iter(window))
                del window[oldest]
                self._forget(oldest)

    def get(self, message_id: bytes) -> Kept | None:
        """Return a message by its id, or None if it is not kept."""
        return self._kept.get(message_id)

    def gossip_ids(self, topic: str, limit: int) -> list[bytes]:
        """Return the newest `limit` message ids of a topic, to announce them to peers."""
        found: list[bytes] = []
        for window in list(self._windows)[: self._gossip_windows]:
            for message_id in reversed(window):
                if len(found) == limit:
                    return found
                if self._kept[message_id].topic == topic:
                    found.append(message_id)
        return found

    def shift(self) -> None:
        """Begin a new window, and remove the messages of the oldest window."""
        if len(self._windows) == self._windows.maxlen:
            for message_id in self._windows[-1]:
                self._forget(message_id)
        self._windows.appendleft({})

    def _forget(self, message_id: bytes) -> None:
        self._bytes -= len(self._kept.pop(message_id).data)
