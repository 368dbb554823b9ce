"""Stream of events to the application, with one buffer, and a place in it for each reader.

The stream never waits for a reader. The buffer has the newest events. A slow reader gets messages
and reports from the backlog, and one `EventsMissed` for other events.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final, Self
from weakref import WeakSet

import anyio

from .._notifier import Notifier
from ..events import AnyEvent, EventsMissed
from .backlog import LASTING, WITH_CONTENT, Backlog

BUFFER_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Maximum size of contents in the event buffer (bytes). Over this limit, the oldest events leave
the buffer early."""


TRIM_AT: Final = 64
"""Number of events in the buffer from which events that every reader has read are removed."""
TRIM_AT_BYTES: Final = 1024 * 1024
"""Size of contents in the buffer from which events that every reader has read are removed
(bytes)."""


Cursor = tuple[int, int]
"""Place in the stream, as the numbers of all events and of lasting events before it."""


class EventStream:
    """Buffer that keeps each event until every reader has read it, up to the limits.

    Events that no reader has read yet are kept for the next reader.

    Args:
        limit: events in the buffer.
        backlog: takes the lasting events that leave the buffer unread.
        confirm: called with each event that a confirming reader has handled; None for no call.
        fell_behind: called when readers fall behind the buffer, with how many they are and the most
            events that one has not read; again for one that had caught up.
    """

    def __init__(
        self,
        limit: int,
        backlog: Backlog,
        *,
        confirm: Callable[[AnyEvent], object] | None = None,
        fell_behind: Callable[[int, int], object] = lambda readers, unread: None,
    ) -> None:
        self.confirm: Final = confirm
        self.dropped = 0
        """Events that made room before every reader had read them."""
        self._limit = limit
        self._backlog = backlog
        self._fell_behind = fell_behind
        self._buffer: deque[tuple[AnyEvent, Cursor, int]] = deque()
        """The newest events, each with the place after it and the bytes of its content."""
        self._buffer_bytes = 0
        self._start: Cursor = (0, 0)
        """Of the buffer's first event."""
        self._end: Cursor = (0, 0)
        self._unread: Cursor = (0, 0)
        """The first event that no reader has read; followers do not count."""
        self._readers: WeakSet[EventReader] = WeakSet()
        # Weak, so that an abandoned iterator keeps no events; nothing else depends on it.
        self._changed = Notifier()
        self._closed = False

    def emit(self, event: AnyEvent) -> None:
        """Add an event to the stream for every reader."""
        events, lasting = self._end
        self._end = end = events + 1, lasting + isinstance(event, LASTING)
        size = len(event.content) if isinstance(event, WITH_CONTENT) else 0
        self._buffer.append((event, end, size))
        self._buffer_bytes += size
        if len(self._buffer) > self._limit or self._buffer_bytes > BUFFER_LIMIT_BYTES:
            self._trim()
            while self._is_over_limit():
                self._shelve_oldest()
            self._notice_slow_readers()
        if self._changed.waiting:
            self._changed.notify()

    def read(self, *, confirm: bool = True) -> "EventReader":
        """Return a reader of all events from now on, after the events that are still unread."""
        return self._join(EventReader(self, self._unread, confirm=confirm, claims=True))

    def follow(self) -> "EventReader":
        """Return a reader of all events from now on, which leaves unread events to other
        readers."""
        return self._join(EventReader(self, self._end, confirm=False, claims=False))

    def leave(self, reader: "EventReader") -> None:
        """Remove a closed reader, and end its wait for an event."""
        self._readers.discard(reader)
        self._trim()
        self._changed.notify()

    def close(self) -> None:
        """Let every reader finish after it has read the existing events."""
        self._closed = True
        self._changed.notify()

    @property
    def behind(self) -> int:
        """Return the number of events that the slowest reader has not read."""
        return max((self._end[0] - reader.place[0] for reader in self._readers), default=0)

    async def next(self, reader: "EventReader") -> AnyEvent:
        """Wait for the next event of a reader, and return it.

        Raises:
            StopAsyncIteration: the reader was closed, or the channel was and all is read.
        """
        while True:
            place = reader.place[0] - self._start[0]
            if place < 0:
                await anyio.lowlevel.checkpoint()  # a long way to catch up, perhaps from disk
                if (kept := self._from_backlog(reader)) is not None:
                    return kept
            elif place < len(self._buffer):
                event, reader.place, _ = self._buffer[place]
                if reader.claims and reader.place > self._unread:
                    self._unread = reader.place
                return event
            else:
                reader.is_slow = False
                if self._closed or reader.is_closed:
                    raise StopAsyncIteration
                is_large = len(self._buffer) > TRIM_AT or self._buffer_bytes > TRIM_AT_BYTES
                if is_large or self._backlog.kept:
                    self._trim()
                await self._changed.wait()

    def _join(self, reader: "EventReader") -> "EventReader":
        self._readers.add(reader)
        return reader

    def _from_backlog(self, reader: "EventReader") -> AnyEvent | None:
        """The next event of a reader behind the buffer; None where the buffer has it."""
        event = None
        while event is None and self._account(reader) < len(self._backlog.kept):
            place = reader.place[1] - self._first_kept
            event = self._backlog.event(place)
            if event is None or not reader.missed:
                reader.place = self._backlog.number(place) + 1, reader.place[1] + 1
            if event is None:
                reader.missed += 1
                reader.missed_lasting += 1
        if event is None:
            reader.place = self._start
        if reader.missed:
            event = EventsMissed(reader.missed, reader.missed_lasting)
            reader.missed = reader.missed_lasting = 0
        if reader.claims and reader.place > self._unread:
            self._unread = reader.place
        return event

    def _account(self, reader: "EventReader") -> int:
        """Count what left the buffer and the backlog since a reader's last look; return its place
        in the backlog."""
        events, lasting = self._start
        if reader.accounted < self._start:
            begin = max(reader.place, reader.accounted)
            reader.missed += events - begin[0] - (lasting - begin[1])
            reader.accounted = self._start
        if (dropped := self._first_kept - reader.place[1]) > 0:
            reader.missed += dropped
            reader.missed_lasting += dropped
            reader.place = reader.place[0], self._first_kept
        return reader.place[1] - self._first_kept

    @property
    def _first_kept(self) -> int:
        """Lasting events before the first one in the backlog."""
        return self._start[1] - len(self._backlog.kept)

    def _is_over_limit(self) -> bool:
        return len(self._buffer) > self._limit or (
            self._buffer_bytes > BUFFER_LIMIT_BYTES and len(self._buffer) > 1
        )

    def _trim(self) -> None:
        """Let go of what every reader has read."""
        needed = min((self._unread, *(reader.place for reader in self._readers)))[0]
        if self._backlog.kept:
            self._backlog.forget_before(needed)
        buffer, size = self._buffer, 0
        for _ in range(needed - self._start[0]):
            _, self._start, size = buffer.popleft()
            self._buffer_bytes -= size

    def _take_oldest(self) -> AnyEvent:
        event, self._start, size = self._buffer.popleft()
        self._buffer_bytes -= size
        return event

    def _shelve_oldest(self) -> None:
        number = self._start[0]
        event = self._take_oldest()
        self.dropped += self._backlog.add(number, event) if isinstance(event, LASTING) else 1

    def _notice_slow_readers(self) -> None:
        slow = [
            reader for reader in self._readers if reader.place < self._start and not reader.is_slow
        ]
        for reader in slow:
            reader.is_slow = True
        if slow:
            slowest = min(reader.place for reader in slow)
            self._fell_behind(len(slow), self._end[0] - slowest[0])


class EventReader(AsyncIterator[AnyEvent]):
    """Reader of a channel's events in their order, until the channel or the reader is closed.

    Read the events with `async for`. The end of an `async with` block closes the reader, even after
    an early end of the loop. Two tasks must not use the same reader at the same time.
    """

    def __init__(self, stream: EventStream, place: Cursor, *, confirm: bool, claims: bool) -> None:
        self.place = place
        self.accounted = place
        """Up to here it is counted what the reader missed."""
        self.missed = 0
        self.missed_lasting = 0
        self.is_slow = False
        self.claims: Final = claims
        """True if an event that this reader has read is read."""
        self._stream = stream
        self._confirm = confirm
        self._given: AnyEvent | None = None
        self.is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AnyEvent:
        """Confirm the event before, and wait for the next one."""
        if self._given is not None:
            if self._stream.confirm is not None:
                self._stream.confirm(self._given)
            self._given = None
        if self.is_closed:
            raise StopAsyncIteration
        event = await self._stream.next(self)
        if self._confirm:
            self._given = event
        return event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the reader, so that the channel keeps no more events for it. The last event that
        the reader returned stays unconfirmed."""
        self._given, self.is_closed = None, True
        self._stream.leave(self)
