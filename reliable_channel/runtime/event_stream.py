"""Events on their way to the application."""

from collections import deque
from collections.abc import AsyncIterator, Callable
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

    confirm: Callable[[Event], object] | None = None
    """Told of each event that a confirming reader has gone beyond."""
    forget: Callable[[Event], object] | None = None
    """Told of each event that nobody read in time."""

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

    async def room(self) -> None:
        """Wait while more than the limit is unread, be there a reader or not."""
        while len(self._unread) >= self._limit and not self._closed:
            if self._drained.is_set():
                self._drained = anyio.Event()
            await self._drained.wait()
        await self.writable()

    def read(self, *, confirm: bool = True) -> AsyncIterator[Event]:
        """Iterate over events until the channel closes; what nobody has read comes first.

        A confirming reader has handled an event when it asks for the next one.
        """
        return _Iteration(self, confirm)

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
        self._drained.set()
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
            event = self._unread.popleft()
            self.dropped += 1
            if self.forget is not None:
                self.forget(event)


class _Iteration:
    """One iteration over events. Leaving its loop ends it.

    No generator: one that is left halfway is resented by trio, and takes what it did not read to
    its grave.
    """

    def __init__(self, stream: EventStream, confirm: bool) -> None:
        self._stream = stream
        self._reader: _Reader | None = None
        self._confirm = confirm
        self._given: Event | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if self._reader is None:
            self._reader = self._stream.join()
        if self._given is not None and self._stream.confirm is not None:
            self._stream.confirm(self._given)
        self._given = None
        event = await self._stream.next(self._reader)
        if self._confirm:
            self._given = event
        return event

    def __del__(self) -> None:
        if self._reader is not None:
            self._stream.leave(self._reader)
