"""Entry of the log of a channel."""

from sys import intern
from typing import Final

from ..changes import LogKey, LogRow

SHOWN_BYTES: Final = 60
"""Maximum number of content bytes in the `repr` of an entry."""


class LogEntry:
    """Own message, or a delivered message of another participant."""

    __slots__ = ("content", "key", "lamport_timestamp", "message_id", "retrieval_hint", "sender_id")

    def __init__(
        self,
        message_id: str,
        sender_id: str,
        lamport_timestamp: int,
        content: bytes,
        retrieval_hint: bytes | None = None,
    ) -> None:
        self.message_id = message_id
        self.sender_id = intern(sender_id)  # few senders, many messages
        self.lamport_timestamp = lamport_timestamp
        self.content = content
        self.retrieval_hint = retrieval_hint
        self.key: LogKey = (lamport_timestamp, message_id)
        """Where it stands in the log."""

    @property
    def row(self) -> LogRow:
        """Return the values that are saved for a restart."""
        return (
            self.message_id,
            self.sender_id,
            self.lamport_timestamp,
            self.content,
            self.retrieval_hint,
        )

    def __repr__(self) -> str:
        content = repr(self.content[:SHOWN_BYTES])
        if len(self.content) > SHOWN_BYTES:
            content += f"… ({len(self.content)} bytes)"
        place = f"{self.message_id!r}, {self.sender_id!r}, {self.lamport_timestamp}"
        return f"LogEntry({place}, {content})"
