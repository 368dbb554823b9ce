"""Deadlines of many keys. Finding the next deadline costs as much as in a heap."""

from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Timers(Generic[K]):
    """Deadlines of many keys, each due once, at the time that was set last."""

    def __init__(self) -> None:
        self._due_ms: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._count = 0

    def set(self, key: K, due_ms: int) -> None:
        """Set the deadline of a key, which replaces an earlier deadline."""
        self._due_ms[key] = due_ms
        self._count += 1  # keys need no order of their own
        heappush(self._heap, (due_ms, self._count, key))
        if len(self._heap) > 64 + 2 * len(self._due_ms):
            self._heap = [entry for entry in self._heap if self._due_ms.get(entry[2]) == entry[0]]
            heapify(self._heap)

    def cancel(self, key: K) -> None:
        """Remove the deadline of a key."""
        self._due_ms.pop(key, None)

    def next_ms(self) -> int | None:
        """Return the time at which the next key is due."""
        while self._heap and self._due_ms.get(self._heap[0][2]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take_due(self, now_ms: int) -> Iterator[K]:
        """Yield the keys that are due, and remove their deadlines."""
        while (due_ms := self.next_ms()) is not None and due_ms <= now_ms:
            key = heappop(self._heap)[2]
            del self._due_ms[key]
            yield key

    def __contains__(self, key: object) -> bool:
        return key in self._due_ms

    def __len__(self) -> int:
        return len(self._due_ms)
