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
        self.backlog: Final = backlog
        self._limit = limit
        self._fell_behind = fell_behind
        self.buffer: Final[deque[tuple[AnyEvent, Cursor, int]]] = deque()
        """The newest events, each with the place after it and the bytes of its content."""
        self.size_bytes = 0
        self.start: Cursor = (0, 0)
        """Of the buffer's first event."""
        self.end: Cursor = (0, 0)
        self.unread: Cursor = (0, 0)
        """The first event that no reader has read; followers do not count."""
        self._readers: WeakSet[EventReader] = WeakSet()
        # Weak, so that an abandoned iterator keeps no events; nothing else depends on it.
        self.changed: Final = Notifier()
        self.is_closed = False

    def emit(self, event: AnyEvent) -> None:
        """Add an event to the stream for every reader."""
        events, lasting = self.end
        self.end = end = events + 1, lasting + isinstance(event, LASTING)
        size = len(event.content) if isinstance(event, WITH_CONTENT) else 0
        self.buffer.append((event, end, size))
        self.size_bytes += size
        if len(self.buffer) > self._limit or self.size_bytes > BUFFER_LIMIT_BYTES:
            self.trim()
            while self._is_over_limit():
                self._shelve_oldest()
            self._notice_slow_readers()
        if self.changed.waiting:
            self.changed.notify()

    def read(self, *, confirm: bool = True) -> "EventReader":
        """Return a reader of all events from now on, after the events that are still unread."""
        return self._join(EventReader(self, self.unread, confirm=confirm, claims=True))

    def follow(self) -> "EventReader":
        """Return a reader of all events from now on, which leaves unread events to other
        readers."""
        return self._join(EventReader(self, self.end, confirm=False, claims=False))

    def leave(self, reader: "EventReader") -> None:
        """Remove a closed reader, and end its wait for an event."""
        self._readers.discard(reader)
        self.trim()
        self.changed.notify()

    def close(self) -> None:
        """Let every reader finish after it has read the existing events."""
        self.is_closed = True
        self.changed.notify()

    @property
    def behind(self) -> int:
        """Return the number of events that the slowest reader has not read."""
        return max((self.end[0] - reader.place[0] for reader in self._readers), default=0)

    def _join(self, reader: "EventReader") -> "EventReader":
        self._readers.add(reader)
        return reader

    def _is_over_limit(self) -> bool:
        return len(self.buffer) > self._limit or (
            self.size_bytes > BUFFER_LIMIT_BYTES and len(self.buffer) > 1
        )

    def trim(self) -> None:
        """Let go of what every reader has read."""
        needed = min((self.unread, *(reader.place for reader in self._readers)))[0]
        if self.backlog.kept:
            self.backlog.forget_before(needed)
        buffer, size = self.buffer, 0
        for _ in range(needed - self.start[0]):
            _, self.start, size = buffer.popleft()
            self.size_bytes -= size

    def _shelve_oldest(self) -> None:
        number = self.start[0]
        event, self.start, size = self.buffer.popleft()
        self.size_bytes -= size
        self.dropped += self.backlog.add(number, event) if isinstance(event, LASTING) else 1

    def _notice_slow_readers(self) -> None:
        slow = [
            reader for reader in self._readers if reader.place < self.start and not reader.is_slow
        ]
        for reader in slow:
            reader.is_slow = True
        if slow:
            slowest = min(reader.place for reader in slow)
            self._fell_behind(len(slow), self.end[0] - slowest[0])


class EventReader(AsyncIterator[AnyEvent]):
    """Reader of a channel's events in their order, until the channel or the reader is closed.

    Read the events with `async for`. The end of an `async with` block closes the reader, even after
    an early end of the loop. Two tasks must not use the same reader at the same time.
    """

    def __init__(self, stream: EventStream, place: Cursor, *, confirm: bool, claims: bool) -> None:
        self.place = place
        self.is_slow = False
        self._accounted = place
        """Up to here it is counted what the reader missed."""
        self._missed = self._missed_lasting = 0
        self._claims = claims
        """True if an event that this reader has read is read."""
        self._stream = stream
        self._confirm = confirm
        self._given: AnyEvent | None = None
        self.is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AnyEvent:
        """Confirm the event before, and wait for the next one."""
        stream = self._stream
        if self._given is not None:
            if stream.confirm is not None:
                stream.confirm(self._given)
            self._given = None
        event: AnyEvent | None = None
        while event is None:
            if self.is_closed:
                raise StopAsyncIteration
            place = self.place[0] - stream.start[0]
            if place < 0:
                await anyio.lowlevel.checkpoint()  # a long way to catch up, perhaps from disk
                event = self._from_backlog()
            elif place < len(stream.buffer):
                event, self.place, _ = stream.buffer[place]
            else:
                self.is_slow = False
                if stream.is_closed:
                    raise StopAsyncIteration
                is_large = len(stream.buffer) > TRIM_AT or stream.size_bytes > TRIM_AT_BYTES
                if is_large or stream.backlog.kept:
                    stream.trim()
                await stream.changed.wait()
        if self._claims and self.place > stream.unread:
            stream.unread = self.place
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

    def _from_backlog(self) -> AnyEvent | None:
        """The next event of a reader behind the buffer; None where the buffer has it."""
        stream, event = self._stream, None
        backlog = stream.backlog
        while event is None and (place := self._accounted_place()) < len(backlog.kept):
            event = backlog.event(place)
            if event is None or not self._missed:
                self.place = backlog.number(place) + 1, self.place[1] + 1
            if event is None:
                self._missed += 1
                self._missed_lasting += 1
        if event is None:
            self.place = stream.start
        if self._missed:
            event = EventsMissed(self._missed, self._missed_lasting)
            self._missed = self._missed_lasting = 0
        return event

    def _accounted_place(self) -> int:
        """Count what left the buffer and the backlog since the last look; return the reader's place
        in the backlog."""
        start = self._stream.start
        first_kept = start[1] - len(self._stream.backlog.kept)
        if self._accounted < start:
            begin = max(self.place, self._accounted)
            self._missed += start[0] - begin[0] - (start[1] - begin[1])
            self._accounted = start
        if (dropped := first_kept - self.place[1]) > 0:
            self._missed += dropped
            self._missed_lasting += dropped
            self.place = self.place[0], first_kept
        return self.place[1] - first_kept
