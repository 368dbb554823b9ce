"""What waits for a joined node: bounded, numbered, kept until it is acknowledged."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final

import anyio

from waku.node.envelope import Envelope, encoded_size

if TYPE_CHECKING:
    from waku.node.options import NodeOptions

__all__ = ["BATCH_MESSAGES", "Outbox"]

BATCH_MESSAGES: Final = 500
BATCH_BYTES: Final = 512 * 1024
"""In base64 with its fields, a batch stays below the limit of a body."""
ESCAPED: Final = 6
"""Bytes that JSON may need for one of a topic."""


class Outbox:
    """Messages for one node, in order; when full, the oldest are dropped.

    A batch is read without being removed, and removed when the other side names its last number:
    an answer that is lost costs a repeat, never a message.
    """

    def __init__(self, capacity: int, capacity_bytes: int) -> None:
        self.dropped = 0
        """Messages lost because the other node was slow or away."""
        self._capacity = capacity
        self._capacity_bytes = capacity_bytes
        self._size_bytes = 0
        self._waiting: deque[Envelope] = deque()
        self._acknowledged = 0
        self._changed = anyio.Event()

    @classmethod
    def of(cls, options: NodeOptions) -> Outbox:
        """Return an empty one with the limits of a node."""
        return cls(options.peer_queue_capacity, options.peer_queue_capacity_bytes)

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, envelope: Envelope) -> None:
        """Add a message."""
        self._waiting.append(envelope)
        self._size_bytes += _size(envelope)
        while len(self._waiting) > self._capacity or (
            self._size_bytes > self._capacity_bytes and len(self._waiting) > 1
        ):
            self.drop_first()
        self.wake()

    def drop_first(self) -> None:
        """Give up the oldest message."""
        self._remove_first()
        self.dropped += 1

    def batch(self) -> tuple[list[Envelope], int]:
        """Return the oldest messages and the number of the last of them."""
        found: list[Envelope] = []
        room = BATCH_BYTES
        for envelope in islice(self._waiting, BATCH_MESSAGES):
            room -= _size(envelope)
            if found and room < 0:
                break
            found.append(envelope)
        return found, self._acknowledged + len(found)

    def acknowledge(self, number: int) -> None:
        """Remove the messages up to a number."""
        while self._waiting and self._acknowledged < number:
            self._remove_first()

    def wake(self) -> None:
        """Let those who wait look again."""
        self._changed.set()

    async def wait(self) -> None:
        """Return when a message waits, or at the next `wake()`."""
        if not self._waiting:
            self._changed = anyio.Event() if self._changed.is_set() else self._changed
            await self._changed.wait()

    def _remove_first(self) -> None:
        self._size_bytes -= _size(self._waiting.popleft())
        self._acknowledged += 1


def _size(envelope: Envelope) -> int:
    topics = len(envelope.pubsub_topic.encode()) + len(envelope.message.content_topic.encode())
    return encoded_size(envelope.message) + ESCAPED * topics
