"""Backlog of events that left the event buffer before every reader had read them.

The backlog keeps only the place of a message in the log, not its content. For a slow reader, the
content is read from the log again, in memory or on disk. Temporary events, such as progress, are
not kept.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ..events import (
    AnyEvent,
    DeliveryFailed,
    EphemeralReceived,
    MessageAcknowledged,
    MessageLost,
    MessageReceived,
    SendFailed,
)

BACKLOG_LIMIT: Final = 100_000
"""Maximum number of messages and reports in the backlog. The oldest events are dropped."""
BACKLOG_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Maximum size of contents (bytes) that the backlog keeps because the log has another form.
Examples are long payloads of several segments, and contents encrypted inside SDS."""
LASTING: Final = (MessageReceived, MessageAcknowledged, DeliveryFailed, SendFailed, MessageLost)
"""Events that a reader must not miss, which are messages and their results."""

ContentOf = Callable[[str], bytes | None]
"""Function that returns the payload of a message in the log by its id. The result is None if the
log does not have the message any more."""


WITH_CONTENT: Final = (MessageReceived, EphemeralReceived)
"""Events whose memory is counted. All others are small."""


def content_bytes(event: AnyEvent) -> int:
    """Return the memory that the content of an event takes (bytes)."""
    return len(event.content) if isinstance(event, WITH_CONTENT) else 0


@dataclass(slots=True)
class _Kept:
    """An event, and its number in the stream; its content may be in the log instead."""

    number: int
    event: AnyEvent
    in_log: bool


class Backlog:
    """Limited queue of events, from which a reader gets an event by its place."""

    def __init__(
        self,
        content_of: ContentOf,
        *,
        limit: int = BACKLOG_LIMIT,
        limit_bytes: int = BACKLOG_LIMIT_BYTES,
    ) -> None:
        self._content_of = content_of
        self._limit = limit
        self._limit_bytes = limit_bytes
        self.kept: deque[_Kept] = deque()
        """Events of the backlog, oldest first; open to read."""
        self._bytes = 0

    def add(self, number: int, event: AnyEvent) -> int:
        """Add the newest event to the backlog. Return how many old events were dropped to make
        room."""
        in_log = False
        if isinstance(event, MessageReceived):
            in_log = self._content_of(event.message_id) == event.content
            event = replace(event, content=b"") if in_log else event
        kept = _Kept(number, event, in_log)
        self.kept.append(kept)
        self._bytes += content_bytes(kept.event)
        dropped = 0
        while len(self.kept) > self._limit or self._bytes > self._limit_bytes:
            self._drop_oldest()
            dropped += 1
        return dropped

    def forget_before(self, number: int) -> None:
        """Drop the events before a number, because every reader has read them."""
        while self.kept and self.kept[0].number < number:
            self._drop_oldest()

    def number(self, place: int) -> int:
        """Return the number in the stream of the event at a place in the backlog."""
        return self.kept[place].number

    def event(self, place: int) -> AnyEvent | None:
        """Return the event at a place in the backlog, or None if the log has lost its content."""
        kept = self.kept[place]
        if not kept.in_log:
            return kept.event
        assert isinstance(kept.event, MessageReceived)
        content = self._content_of(kept.event.message_id)
        return None if content is None else replace(kept.event, content=content)

    def _drop_oldest(self) -> None:
        self._bytes -= content_bytes(self.kept.popleft().event)
