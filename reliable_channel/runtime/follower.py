"""What was said, then what happens: the log and live events, without a gap or a repetition."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Self

from ..engine.segments import Segmentation
from ..events import Event, MessageReceived
from ..sds.log_entry import LogEntry
from .event_stream import EventReader

Open = Callable[[bytes], Awaitable[bytes | None]]
"""Opens the content of a log entry; None where the key does not open it."""


class Follower(AsyncIterator[Event]):
    """A snapshot of the log, and an iterator over the events after it. Use it in `async with`.

    A message is in `snapshot` or among the events, never in both. Long payloads are whole in both;
    one of which a segment is still missing comes as an event. A follower confirms nothing, and
    leaves unread events to the readers of `events()`.
    """

    def __init__(
        self,
        entries: Sequence[LogEntry],
        reader: EventReader,
        segmentation: Segmentation,
        open_content: Open | None,
    ) -> None:
        self.snapshot: Sequence[LogEntry] = ()
        """Own and delivered messages in the order of the log, each with its whole payload."""
        self._entries = entries
        self._reader = reader
        self._segmentation = segmentation
        self._open = open_content
        self._in_snapshot: set[str] = set()

    async def __aenter__(self) -> Self:
        """Make the snapshot."""
        self.snapshot = [entry async for entry in self._payloads()]
        self._entries = ()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the follower: the channel keeps no events for it."""
        await self._reader.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """Wait for the next event."""
        while True:
            event = await anext(self._reader)
            # Delivered before the snapshot was made, and emitted after: while it was written, say.
            if isinstance(event, MessageReceived) and event.message_id in self._in_snapshot:
                continue
            return event

    async def _payloads(self) -> AsyncIterator[LogEntry]:
        """Put the entries' segments together; what stays unfinished is not in the snapshot."""
        parts: dict[int, str] = {}
        for number, entry in enumerate(self._entries, 1):
            content = entry.content if self._open is None else await self._open(entry.content)
            if content is None:
                continue
            parts[number] = entry.message_id
            delivery = MessageReceived(
                entry.message_id,
                entry.sender_id,
                content,
                entry.lamport_timestamp,
                position=0,
                retrieval_hint=entry.retrieval_hint,
            )
            for event, numbers in self._segmentation.join(delivery, 0, number):
                if isinstance(event, MessageReceived):
                    self._in_snapshot.update(parts.pop(number) for number in numbers)
                    yield LogEntry(
                        event.message_id,
                        event.sender_id,
                        event.lamport_timestamp,
                        event.content,
                        event.retrieval_hint,
                    )
