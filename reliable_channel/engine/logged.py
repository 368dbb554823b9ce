"""Event for the journal about a message that entered the log."""

from dataclasses import dataclass
from typing import Self

from ..events import MessageReceived
from ..sds.message import LogEntry


@dataclass(frozen=True, slots=True)
class Logged:
    """A message entered the log. Only the journal shows this event, not the application. The
    application may receive the message later, or as a part of a longer payload. The application
    does not receive own messages."""

    message_id: str
    sender_id: str
    lamport_timestamp: int
    position: int
    """Position in the log, counted from 0 at the oldest kept entry."""
    evicted: int
    """Number of entries that had left the log since the process began."""
    content: bytes
    first_segment_id: str | None = None
    """Id of the first segment of an own payload, by which events name the whole payload."""
    message_hash: bytes | None = None
    """Waku message hash, if the message is another participant's."""
    missing: tuple[str, ...] = ()
    """Ids in the causal history of messages that were declared lost before."""

    @classmethod
    def own(cls, entry: LogEntry, position: int, evicted: int, *, first_segment_id: str) -> Self:
        """Return the event for an accepted own message."""
        return cls(
            entry.message_id,
            entry.sender_id,
            entry.lamport_timestamp,
            position,
            evicted,
            entry.content,
            first_segment_id,
        )

    @classmethod
    def delivered(cls, event: MessageReceived, evicted: int) -> Self:
        """Return the event for another participant's message that the core delivered."""
        return cls(
            event.message_id,
            event.sender_id,
            event.lamport_timestamp,
            event.position,
            evicted,
            event.content,
            message_hash=event.retrieval_hint,
            missing=tuple(entry.message_id for entry in event.missing),
        )
