"""Events on their way to the application."""

from collections import deque
from collections.abc import AsyncIterator

import anyio

from ..events import Event


class _Reader:
    """The queue of one iteration over `events()`."""

    def __init__(self, backlog: deque[Event]) -> None:
        self.queue = backlog
        self.changed = anyio.Event()


class EventStream:
    """Hands every event to every reader, in order, and lets a slow reader slow down the source.

    Until there is a reader, the newest `limit` events are kept for the first one.
    """

    def __init__(self, limit: int) -> None:
        self.dropped = 0
        """Events that nobody read and that had to make room."""
        self._limit = limit
        self._backlog: deque[Event] | None = deque()
        self._readers: list[_Reader] = []
        self._drained = anyio.Event()
        self._closed = False

    def emit(self, event: Event) -> None:
        """Queue an event for every reader."""
        if self._backlog is not None:
            self._backlog.append(event)
            if len(self._backlog) > self._limit:
                self._backlog.popleft()
                self.dropped += 1
        for reader in self._readers:
            reader.queue.append(event)
            reader.changed.set()

    async def writable(self) -> None:
        """Wait while a reader is more than the limit behind."""
        while any(len(reader.queue) > self._limit for reader in self._readers) and not self._closed:
            self._drained = anyio.Event()
            await self._drained.wait()

    async def read(self) -> AsyncIterator[Event]:
        """Iterate over events until the channel closes; what came before the first reader is handed
        to it."""
        reader = _Reader(self._backlog if self._backlog is not None else deque())
        self._backlog = None
        self._readers.append(reader)
        try:
            while True:
                while reader.queue:
                    yield reader.queue.popleft()
                    self._drained.set()
                if self._closed:
                    return
                reader.changed = anyio.Event()
                await reader.changed.wait()
        finally:
            self._readers.remove(reader)
            self._drained.set()

    def close(self) -> None:
        """Let every reader finish once it has read what is queued."""
        self._closed = True
        self._drained.set()
        for reader in self._readers:
            reader.changed.set()
