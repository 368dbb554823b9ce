"""Snapshot of the log, followed by live events, without a gap or a repetition."""

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import aclosing
from dataclasses import replace
from typing import Final, Self

from ..engine.segments import Segmentation
from ..events import AnyEvent, MessageReceived, SendingMessage
from ..sds.log.log import MessageLog
from ..sds.message import LogEntry
from .event_stream import EventReader

MOST_SEARCHED: Final = 10_000
"""Maximum number of log entries that are searched for the segments of one own message."""
SEARCHED_AT_ONCE: Final = 200

Open = Callable[[bytes], Awaitable[bytes | None]]
"""Function that decrypts the content of a log entry. The result is None if the key cannot decrypt
the content."""


class Follower(AsyncIterator[AnyEvent]):
    """Snapshot of the log, and an iterator over the events after the snapshot. Use a follower in
    `async with`.

    A message is either in `snapshot` or among the events, never in both. Long payloads are whole in
    the snapshot and in the events. A payload with a missing segment comes later as an event. A
    follower confirms nothing, and leaves unread events to the readers of `events()`.

    With the channel's `log`, own messages come too, as a `MessageReceived` for each
    `SendingMessage`.
    """

    def __init__(
        self,
        entries: Sequence[LogEntry],
        reader: EventReader,
        make_segmentation: Callable[[], Segmentation],
        open_content: Open | None,
        log: MessageLog | None = None,
    ) -> None:
        self.snapshot: Sequence[LogEntry] = ()
        """Own and delivered messages in the order of the log, each with its whole payload."""
        self._entries = entries
        self._reader = reader
        self._make_segmentation = make_segmentation
        self._open = open_content
        self._log = log
        self._in_snapshot: set[str] = set()

    async def __aenter__(self) -> Self:
        """Make the snapshot."""
        payloads = [payload async for payload in self._payloads(self._entries)]
        for _, message_ids in payloads:
            self._in_snapshot.update(message_ids)
        self.snapshot = [
            LogEntry(
                event.message_id,
                event.sender_id,
                event.lamport_timestamp,
                event.content,
                event.retrieval_hint,
            )
            for event, _ in payloads
        ]
        self._entries = ()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the follower, so that the channel keeps no more events for it."""
        await self._reader.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AnyEvent:
        """Wait for the next event."""
        while True:
            event = await anext(self._reader)
            # Delivered before the snapshot was made, and emitted after: while it was written, say.
            if (
                isinstance(event, MessageReceived | SendingMessage)
                and event.message_id in self._in_snapshot
            ):
                continue
            if self._log is not None and isinstance(event, SendingMessage):
                return await self._own(event, self._log)
            return event

    async def _own(self, event: SendingMessage, log: MessageLog) -> AnyEvent:
        """Return the own message that an event announces; the event itself if it was evicted."""
        first = log.get(event.message_id)
        if first is None:
            return event
        async with aclosing(self._payloads(_segments(first, log))) as payloads:
            async for payload, _ in payloads:
                return replace(payload, message_id=event.message_id, position=log.position(first))
        return event

    async def _payloads(
        self, entries: Iterable[LogEntry]
    ) -> AsyncGenerator[tuple[MessageReceived, list[str]]]:
        """Put the entries' segments together: each whole payload and the ids of its messages."""
        segmentation, parts = self._make_segmentation(), dict[int, str]()
        for number, entry in enumerate(entries, 1):
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
            for event, numbers in segmentation.join(delivery, 0, number):
                if isinstance(event, MessageReceived):
                    yield event, [parts.pop(number) for number in numbers]


def _segments(first: LogEntry, log: MessageLog) -> Iterator[LogEntry]:
    """Generate a message and what its sender wrote next; usually the first one is all of it."""
    yield first
    key = first.key
    for _ in range(MOST_SEARCHED // SEARCHED_AT_ONCE):
        entries = log.since(key, SEARCHED_AT_ONCE)[1:]
        if not entries:
            return
        yield from (entry for entry in entries if entry.sender_id == first.sender_id)
        key = entries[-1].key
