"""Messages of SDS as values: on the wire (LIP 109, Wire protocol), as references and in the log.

SDS-R adds the field `repair_request`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from sys import intern
from typing import Final, overload

from .changes import LogKey, LogRow
from .fast_dataclass import value

FINGERPRINT_BYTES: Final = 16
SHORT_BYTES: Final = 8
"""Length (bytes) of a message hash in lists. If two messages have equal short hashes,
reconciliation does not repair them."""
SHOWN_BYTES: Final = 60
"""Maximum number of content bytes in the `repr` of an entry."""


@value
class HistoryEntry:
    """Reference to a message, in a causal history or in a repair request."""

    message_id: str
    retrieval_hint: bytes | None = None
    """Waku message hash (32 bytes), by which a message can be retrieved from Store."""
    sender_id: str | None = None
    """Id of the message's first sender. Without a sender id, no participant can answer a repair
    request (SDS-R)."""


class LazyHistory(Sequence[HistoryEntry]):
    """Received causal history that decodes an entry only when the entry is read.

    A message has 200 entries by default, and a receiver needs only their ids unless some are
    missing. The first `known` entries are or were in the receiver's log.
    """

    __slots__ = ("_entry", "known", "message_ids")

    def __init__(
        self, message_ids: list[str], entry: Callable[[int], HistoryEntry], *, known: int = 0
    ) -> None:
        self.message_ids = message_ids
        self.known = known
        self._entry = entry

    def __len__(self) -> int:
        return len(self.message_ids)

    @overload
    def __getitem__(self, index: int) -> HistoryEntry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[HistoryEntry]: ...
    def __getitem__(self, index: int | slice) -> HistoryEntry | Sequence[HistoryEntry]:
        if isinstance(index, slice):
            return [self._entry(i) for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self._entry(index % len(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class LogRoot:
    """Count and fingerprint of the messages from second `start` to before second `end` of Lamport
    time."""

    start: int
    end: int
    count: int
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class ListedIds:
    """Messages of a range, listed by the first bytes of their hashes."""

    start: int
    end: int
    hashes: bytes

    def split(self) -> set[bytes]:
        size = SHORT_BYTES
        return {self.hashes[i : i + size] for i in range(0, len(self.hashes), size)}


@dataclass(frozen=True, slots=True)
class Reconciling:
    """Content of a sync message that reconciles logs."""

    roots: tuple[LogRoot, ...] = ()
    lists: tuple[ListedIds, ...] = ()
    bundle: tuple[bytes, ...] = ()
    """Whole messages, encoded as they were first broadcast."""
    packed: bytes = b""
    """Whole messages in one compressed byte string."""


class MessageKind(Enum):
    """Kind of a message, which its fields determine (LIP 109, Periodic sync, Ephemeral
    messages)."""

    CONTENT = "content"
    SYNC = "sync"
    EPHEMERAL = "ephemeral"


_CONTENT, _SYNC, _EPHEMERAL = MessageKind.CONTENT, MessageKind.SYNC, MessageKind.EPHEMERAL


@value
class Message:
    """Message of SDS, with the fields of all dialects. `None` means an absent field, which differs
    from an empty one except in the `nim` dialect."""

    sender_id: str
    message_id: str
    channel_id: str
    lamport_timestamp: int | None = None
    """Lamport timestamp (ms since the epoch, in every dialect), or more if a clock ran ahead."""
    causal_history: Sequence[HistoryEntry] = ()
    """Last entries of the sender's log, oldest first."""
    bloom_filter: bytes | None = None
    repair_request: Sequence[HistoryEntry] = ()
    content: bytes | None = None
    signature: bytes | None = None
    """Proof of `sender_id` in a signed channel (`signing.py`). The signature is the last field on
    the wire."""

    log_root: LogRoot | None = None
    """Root of the sender's log for comparison, used only in sync messages of this SDK."""
    reconciling: Reconciling | None = None
    """Data to reconcile logs, used only in sync messages of this SDK."""

    @property
    def kind(self) -> MessageKind | None:
        """Kind of the message, or None if it has neither Lamport timestamp nor content."""
        if self.content:
            return _EPHEMERAL if self.lamport_timestamp is None else _CONTENT
        return None if self.lamport_timestamp is None else _SYNC

    @property
    def causal_ids(self) -> Sequence[str]:
        """Message ids in the causal history, oldest first."""
        history = self.causal_history
        if isinstance(history, LazyHistory):
            return history.message_ids
        return [entry.message_id for entry in history]


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
