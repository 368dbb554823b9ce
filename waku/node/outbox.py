"""What waits for a joined node: bounded, numbered, kept until it is acknowledged."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio

from waku.node.envelope import Envelope, carried_size

if TYPE_CHECKING:
    from waku.node.options import NodeOptions

__all__ = ["BATCH_MESSAGES", "Outbox", "ServiceItem", "batch_json"]

BATCH_MESSAGES: Final = 500
BATCH_BYTES: Final = 512 * 1024
"""In base64 with its fields, a batch stays below the limit of a body."""


@dataclass(slots=True)
class ServiceItem:
    """A request of a service, an answer or a filter push, between messages of the relay."""

    value: Mapping[str, object] | None
    """None once no node waits for it any more: its number stays, and nothing is sent."""
    size_bytes: int

    @classmethod
    def of(cls, value: Mapping[str, object]) -> ServiceItem:
        """Wrap what is sent as JSON."""
        return cls(value, len(json.dumps(value)))


Item: TypeAlias = Envelope | ServiceItem


class Outbox:
    """Items for one node, in order; when full, the oldest are dropped.

    A batch is read without being removed, and removed when the other side names its last number:
    an answer that is lost costs a repeat, never a message.
    """

    def __init__(self, capacity: int, capacity_bytes: int) -> None:
        self.dropped = 0
        """Items lost because the other node was slow or away."""
        self._capacity = capacity
        self._capacity_bytes = capacity_bytes
        self._size_bytes = 0
        self._waiting: deque[Item] = deque()
        self._acknowledged = 0
        self._changed = anyio.Event()

    @classmethod
    def of(cls, options: NodeOptions) -> Outbox:
        """Return an empty one with the limits of a node."""
        return cls(options.peer_queue_capacity, options.peer_queue_capacity_bytes)

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether another item may drop the oldest."""
        return len(self) >= self._capacity or self._size_bytes >= self._capacity_bytes

    def put(self, item: Item) -> None:
        """Add an item."""
        self._waiting.append(item)
        self._size_bytes += _size(item)
        while len(self._waiting) > self._capacity or (
            self._size_bytes > self._capacity_bytes and len(self._waiting) > 1
        ):
            self.drop_first()
        self.wake()

    def drop_first(self) -> None:
        """Give up the oldest item."""
        self._remove_first()
        self.dropped += 1

    def batch(self) -> tuple[list[Item], int]:
        """Return the oldest items and the number of the last of them."""
        found: list[Item] = []
        room = BATCH_BYTES
        for item in islice(self._waiting, BATCH_MESSAGES):
            room -= _size(item)
            if found and room < 0:
                break
            found.append(item)
        return found, self._acknowledged + len(found)

    def acknowledge(self, number: int) -> None:
        """Remove the items up to a number."""
        while self._waiting and self._acknowledged < number:
            self._remove_first()

    def wake(self) -> None:
        """Let waiting tasks look again."""
        self._changed.set()

    async def wait(self) -> None:
        """Return when an item waits, or at the next `wake()`."""
        if not self._waiting:
            self._changed = anyio.Event() if self._changed.is_set() else self._changed
            await self._changed.wait()

    def _remove_first(self) -> None:
        self._size_bytes -= _size(self._waiting.popleft())
        self._acknowledged += 1


def batch_json(batch: Iterable[Item]) -> dict[str, object]:
    """Return the items of a batch as `/mesh/v1/messages` carries them, each kind in order."""
    envelopes: list[object] = []
    services: list[object] = []
    for item in batch:
        if isinstance(item, Envelope):
            envelopes.append(item.to_json())
        elif item.value is not None:
            services.append(item.value)
    # Nodes without services know the first list alone.
    return {"messages": envelopes, **({"services": services} if services else {})}


def _size(item: Item) -> int:
    if isinstance(item, Envelope):
        return carried_size(item.pubsub_topic, item.message)
    return item.size_bytes
