"""What waits for a joined node: bounded, numbered, kept until it is acknowledged."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Final

import anyio

from waku.node.envelope import Envelope

__all__ = ["Outbox"]

BATCH_MESSAGES: Final = 500
BATCH_BYTES: Final = 512 * 1024
"""Of payload and topics; in base64 with its fields, a batch stays below the limit of a body."""


class Outbox:
    """Messages for one node, in order; when full, the oldest is dropped.

    A batch is read without being removed, and removed when the other side names its last number:
    an answer that is lost costs a repeat, never a message.
    """

    def __init__(self, capacity: int) -> None:
        self.dropped = 0
        """Messages lost because the other node was slow or away."""
        self._capacity = capacity
        self._waiting: deque[Envelope] = deque()
        self._acknowledged = 0
        self._changed = anyio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, envelope: Envelope) -> None:
        """Add a message."""
        if len(self._waiting) >= self._capacity:
            self._waiting.popleft()
            self._acknowledged += 1
            self.dropped += 1
        self._waiting.append(envelope)
        self.wake()

    def batch(self) -> tuple[list[Envelope], int]:
        """Return the oldest messages and the number of the last of them."""
        found: list[Envelope] = []
        room = BATCH_BYTES
        for envelope in islice(self._waiting, BATCH_MESSAGES):
            room -= len(envelope.message.payload) + len(envelope.message.content_topic)
            if found and room < 0:
                break
            found.append(envelope)
        return found, self._acknowledged + len(found)

    def acknowledge(self, number: int) -> None:
        """Remove the messages up to a number."""
        while self._waiting and self._acknowledged < number:
            self._waiting.popleft()
            self._acknowledged += 1

    def wake(self) -> None:
        """Let those who wait look again."""
        self._changed.set()

    async def wait(self) -> None:
        """Return when a message waits, or at the next `wake()`."""
        if not self._waiting:
            self._changed = anyio.Event() if self._changed.is_set() else self._changed
            await self._changed.wait()
