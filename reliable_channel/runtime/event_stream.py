"""Events on their way to the application."""

from collections import deque
from collections.abc import AsyncIterator
from typing import Self

import anyio

from ..events import Event


class _Reader:
    """What one iteration over `events()` has not read yet."""

    def __init__(self, queue: deque[Event]) -> None:
        self.queue = queue
        self.changed = anyio.Event()


class EventStream:
    """Hands every event to every reader, in order, and lets a slow reader slow down the source.

    While there is no reader, the newest `limit` events are kept for the next one.
    """

    def __init__(self, limit: int) -> None:
        self.dropped = 0
        """Events that nobody read and that had to make room."""
        self._limit = limit
        self._unread: deque[Event] = deque()
        self._readers: list[_Reader] = []
        self._drained = anyio.Event()
        self._closed = False

    def emit(self, event: Event) -> None:
        """Queue an event for every reader."""
        if not self._readers:
            self._keep([event])
        for reader in self._readers:
            reader.queue.append(event)
            reader.changed.set()

    async def writable(self) -> None:
        """Wait while a reader is more than the limit behind."""
        while any(len(reader.queue) > self._limit for reader in self._readers) and not self._closed:
            if self._drained.is_set():
                self._drained = anyio.Event()
            await self._drained.wait()

    def read(self) -> AsyncIterator[Event]:
        """Iterate over events until the channel closes; what nobody has read comes first."""
        return _Iteration(self)

    def close(self) -> None:
        """Let every reader finish once it has read what is queued."""
        self._closed = True
        self._drained.set()
        for reader in self._readers:
            reader.changed.set()

    def join(self) -> _Reader:
        """Add a reader."""
        reader = _Reader(self._unread)
        self._unread = deque()
        self._readers.append(reader)
        return reader

    def leave(self, reader: _Reader) -> None:
        """Remove a reader; what the last one did not read waits for the next."""
        self._readers.remove(reader)
        if not self._readers:
            self._keep(reader.queue)
        self._drained.set()

    async def next(self, reader: _Reader) -> Event:
        """Wait for a reader's next event.

        Raises:
            StopAsyncIteration: the channel was closed and all is read.
        """
        while not reader.queue:
            if self._closed:
                raise StopAsyncIteration
            reader.changed = anyio.Event()
            await reader.changed.wait()
        self._drained.set()
        return reader.queue.popleft()

    def _keep(self, events: "deque[Event] | list[Event]") -> None:
        self._unread.extend(events)
        while len(self._unread) > self._limit:
            self._unread.popleft()
            self.dropped += 1


class _Iteration:
    """One iteration over events. Leaving its loop ends it.

    No generator: one that is left halfway is resented by trio, and takes what it did not read to
    its grave.
    """

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream
        self._reader: _Reader | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if self._reader is None:
            self._reader = self._stream.join()
        return await self._stream.next(self._reader)

    def __del__(self) -> None:
        if self._reader is not None:
            self._stream.leave(self._reader)
