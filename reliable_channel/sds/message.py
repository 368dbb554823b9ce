"""The two messages of SDS as values (LIP 109, Wire protocol; SDS-R adds `repair_request`)."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import overload

from .fast_dataclass import value
from .log.root import LogRoot, Reconciling


@value
class HistoryEntry:
    """A reference to a message: in a causal history, or in a repair request."""

    message_id: str
    retrieval_hint: bytes | None = None
    """What helps to fetch the message elsewhere: the 32-byte Waku message hash."""
    sender_id: str | None = None
    """The first sender; without it no participant can answer a repair request (SDS-R)."""


class LazyHistory(Sequence[HistoryEntry]):
    """A received causal history that makes its entries only when asked for them.

    A message brings 200 entries by default and a receiver needs their ids alone, unless some are
    missing. The first `known` of them are in its log, or were.
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


class MessageKind(Enum):
    """What a message is, by the fields that are set (LIP 109, Periodic sync, Ephemeral
    messages)."""

    CONTENT = "content"
    SYNC = "sync"
    EPHEMERAL = "ephemeral"


def kind_of(lamport_timestamp: int | None, content: bytes | None) -> MessageKind | None:
    """The kind of a message with these fields, or None where neither is there."""
    if content:
        return MessageKind.EPHEMERAL if lamport_timestamp is None else MessageKind.CONTENT
    return None if lamport_timestamp is None else MessageKind.SYNC


_CONTENT, _SYNC, _EPHEMERAL = MessageKind.CONTENT, MessageKind.SYNC, MessageKind.EPHEMERAL


@value
class Message:
    """An SDS message. `None` is an absent field, which is not the same as an empty one but in the
    `nim` dialect."""

    sender_id: str
    message_id: str
    channel_id: str
    lamport_timestamp: int | None = None
    """Milliseconds since the epoch, or more where a clock ran ahead; in milliseconds whichever unit
    the dialect has on the wire."""
    causal_history: Sequence[HistoryEntry] = ()
    """The last entries of the sender's log, oldest first."""
    bloom_filter: bytes | None = None
    repair_request: Sequence[HistoryEntry] = ()
    content: bytes | None = None
    signature: bytes | None = None
    """A proof of `sender_id`, where one is given (`signing.py`); the last field on the wire."""

    log_root: LogRoot | None = None
    """What the sender's log is compared by, in sync messages of this SDK alone."""
    reconciling: Reconciling | None = None
    """What reconciles logs, in sync messages of this SDK alone."""
    is_tuned: bool = False
    """True if its sender tunes itself, and puts a filter in for the sake of others alone."""

    @property
    def kind(self) -> MessageKind | None:
        """The kind, or None where neither a Lamport timestamp nor content is there."""
        if self.content:
            return _EPHEMERAL if self.lamport_timestamp is None else _CONTENT
        return None if self.lamport_timestamp is None else _SYNC

    @property
    def causal_ids(self) -> Sequence[str]:
        """The message ids of the causal history, oldest first."""
        history = self.causal_history
        if isinstance(history, LazyHistory):
            return history.message_ids
        return [entry.message_id for entry in history]
