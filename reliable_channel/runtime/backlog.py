"""Messages and reports that left the event buffer before every reader had read them.

A message keeps its place here, not its content: that is read from the log again, in memory or on
disk, when a reader gets there. Events of the moment, such as progress, are not kept.
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
"""Messages and reports in the backlog; the oldest are dropped beyond."""
BACKLOG_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""Content in the backlog that the log does not have in this form: long payloads, put together from
their segments, and what was encrypted inside SDS."""
LASTING: Final = (MessageReceived, MessageAcknowledged, DeliveryFailed, SendFailed, MessageLost)
"""Events that a reader must not miss: messages, and what became of them."""

ContentOf = Callable[[str], bytes | None]
"""The payload of a message in the log, by its id; None where the log no longer has it."""


def content_bytes(event: AnyEvent) -> int:
    """The memory that an event's content takes; all else of an event is small."""
    return len(event.content) if isinstance(event, (MessageReceived, EphemeralReceived)) else 0


@dataclass(slots=True)
class _Kept:
    """An event, and its number in the stream; its content may be in the log instead."""

    number: int
    event: AnyEvent
    in_log: bool


class Backlog:
    """A bounded queue of lasting events, read by their place in it."""

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
        self._kept: deque[_Kept] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, number: int, event: AnyEvent) -> int:
        """Add the newest event; return how many old ones were dropped for it."""
        in_log = False
        if isinstance(event, MessageReceived):
            in_log = self._content_of(event.message_id) == event.content
            event = replace(event, content=b"") if in_log else event
        kept = _Kept(number, event, in_log)
        self._kept.append(kept)
        self._bytes += content_bytes(kept.event)
        dropped = 0
        while len(self._kept) > self._limit or self._bytes > self._limit_bytes:
            self._drop_oldest()
            dropped += 1
        return dropped

    def forget_before(self, number: int) -> None:
        """Every reader has read the events before this number."""
        while self._kept and self._kept[0].number < number:
            self._drop_oldest()

    def number(self, place: int) -> int:
        """The number in the stream of the event at a place."""
        return self._kept[place].number

    def event(self, place: int) -> AnyEvent | None:
        """The event at a place; None where the log no longer has its content."""
        kept = self._kept[place]
        if not kept.in_log:
            return kept.event
        assert isinstance(kept.event, MessageReceived)
        content = self._content_of(kept.event.message_id)
        return None if content is None else replace(kept.event, content=content)

    def _drop_oldest(self) -> None:
        self._bytes -= content_bytes(self._kept.popleft().event)
