"""What a journal notes of the log."""

from dataclasses import dataclass
from typing import Self

from ..events import MessageReceived
from ..sds.log.entry import LogEntry


@dataclass(frozen=True, slots=True)
class Logged:
    """A message entered the log. For the journal alone: what the application receives may come
    later, in pieces put together, and not at all of own messages."""

    message_id: str
    sender_id: str
    lamport_timestamp: int
    position: int
    """From 0, counted from the oldest entry that is kept."""
    evicted: int
    """Entries that had left the log since the process began."""
    content: bytes
    first_segment_id: str | None = None
    """Of an own message the first one of its payload, which stands for all of them in events."""
    message_hash: bytes | None = None
    """Of one of others, under which Waku message hash it came."""
    missing: tuple[str, ...] = ()
    """Messages of its causal history that were declared lost before."""

    @classmethod
    def own(cls, entry: LogEntry, position: int, evicted: int, *, first_segment_id: str) -> Self:
        """An own message that was accepted."""
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
        """A message of others that the core delivered."""
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
