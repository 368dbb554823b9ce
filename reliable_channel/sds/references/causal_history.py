"""Causal histories, of own and of received messages.

An own history is made from the last entries of the log, which stay encoded. A reference of a
received history costs its sender some bytes, and a receiver table entries and searches in Store.
Messages known only by reference therefore enter the tables at a limited rate. References that have
not entered a table yet wait in `queued.py`.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..changes import LogKey
from ..dialects.codec import MAX_ID_BYTES
from ..log.log import BEFORE_ALL, MessageLog
from ..message import HistoryEntry, LazyHistory, LogEntry, Message
from ..options import CoreLimits

SPARE: Final = 100
"""Number of kept entries besides those of an own message, because other logs reach back further."""
CHECKED: Final = 200
"""Number of newest references that are looked up one by one when a message arrives. By default, a
message has 200 references."""
FOLLOWED_AT_ONCE: Final = 5
"""Number of newest references in each message that are followed even without a budget. LIP 173 uses
fewer references."""
FOLLOWED_BURST: Final = 1_000
"""Number of further references that may be followed at once, as many as the longest history has."""
FOLLOWED_PER_S: Final = 50
"""Number of further references that may be followed in each second."""
FOLLOW_INTERVAL_MS: Final = 250
"""Interval (ms) in which queued references are followed, as far as the budget permits."""


class History(NamedTuple):
    """Encoded causal history, as a part of a byte string that several messages share."""

    shared: bytes | bytearray
    start: int
    end: int

    @property
    def view(self) -> memoryview:
        """Bytes of the history without a copy. Keep no view, because the shared string grows."""
        return memoryview(self.shared)[self.start : self.end]

    def __bytes__(self) -> bytes:
        return bytes(self.view)


class CausalTail:
    """Newest entries of the log in their encoded form.

    With this form, sending a message with 200 entries copies nothing: its history is a part of
    these bytes. Participants have the same log, so the history of a received message is nearly
    always part of these bytes, too. The ids of such a history are then known without decoding.
    """

    def __init__(
        self,
        log: MessageLog,
        size: int,
        limit_bytes: int,
        encode: Callable[[HistoryEntry], bytes],
    ) -> None:
        self._log = log
        self._size = size
        self._limit_bytes = limit_bytes
        self._encode = encode
        self._keys: list[LogKey] = []
        self._ids: list[str] = []
        self._starts: list[int] = [0]
        """Where each entry starts in all bytes so far, and where the last one ends."""
        self._bytes = bytearray()
        """From the first of these places on."""
        self._shared_until = 0
        """Up to this place histories share the bytes, which therefore stay as they are."""

    def encoded(self, *, is_sync: bool = False) -> History:
        """Return the causal history of the next message, with its last log entries, oldest first.

        If the bytes exceed `limit_bytes`, the oldest entries are left out. Without this limit, one
        participant with a very long id could make all messages too long.
        """
        self._catch_up()
        starts, end = self._starts, self._starts[-1]
        oldest = starts[max(0, len(self._ids) - self._size)]
        if end - oldest > self._limit_bytes:
            oldest = starts[bisect_left(starts, end - self._limit_bytes)]
        self._shared_until = end
        return History(self._bytes, oldest - starts[0], end - starts[0])

    def common(self, data: bytes, start: int, end_of_first: int) -> tuple[Sequence[str], int]:
        """Return the ids of encoded entries from `start` on that are here in the same order, and
        where they end. `end_of_first` is the end of the first encoded entry."""
        self._catch_up()
        own, starts = self._bytes, self._starts
        base, offset = starts[0], own.find(data[start:end_of_first])
        first = bisect_left(starts, offset + base)
        if offset < 0 or starts[first] != offset + base:
            return (), start

        def is_same(until: int) -> bool:
            return data.startswith(memoryview(own)[offset : starts[until] - base], start)

        last = len(self._ids)
        if not is_same(last):
            # The newest differ: those that only one of both had.
            last = first + bisect_left(range(first + 1, last), True, key=lambda n: not is_same(n))
        return self._ids[first:last], start + starts[last] - starts[first]

    def _catch_up(self) -> None:
        """Follow what changed in the log."""
        log, size = self._log, self._size
        if (touched := log.touched) is None or not size:
            return
        log.touched = None
        keep, base = bisect_left(self._keys, touched), self._starts[0]
        del self._keys[keep:], self._ids[keep:], self._starts[keep + 1 :]
        entries = log.since(touched, size)
        kept = keep + len(entries)
        if len(entries) == size or (kept < size and kept < len(log)):
            gone, entries = keep, log.last(size)
        else:
            gone = keep - size - SPARE if keep > size + 2 * SPARE else 0
        del self._keys[:gone], self._ids[:gone], self._starts[:gone]
        begin, end = self._starts[0], self._starts[-1]
        if gone or end < self._shared_until:
            self._bytes = self._bytes[begin - base : end - base]
            self._shared_until = begin
        else:
            del self._bytes[end - base :]
        for entry in entries:
            self._keys.append(entry.key)
            self._ids.append(entry.message_id)
            self._bytes += self._encode(history_entry(entry))
            self._starts.append(begin + len(self._bytes))
        log.watched_from = self._keys[0] if len(self._keys) >= size else BEFORE_ALL


def history_entry(entry: LogEntry) -> HistoryEntry:
    """Return the reference to a log entry, as other participants need it."""
    return HistoryEntry(entry.message_id, entry.retrieval_hint, entry.sender_id)


@dataclass(slots=True)
class UnknownReferences:
    """References of a message to messages outside the log, as positions in the causal history."""

    checked: Sequence[int] = ()
    """Positions of the newest references, which are not in the archive either."""
    unchecked: Sequence[int] = ()
    """Positions of earlier references, which may be in the archive."""

    def __len__(self) -> int:
        return len(self.checked) + len(self.unchecked)


def unknown_references(
    message: Message, log: MessageLog, room: Callable[[], int] = lambda: CHECKED
) -> UnknownReferences | None:
    """Return the references to messages that were never in the log, or None as usual. The newest
    references, at most `room`, are also looked up in the archive."""
    in_memory, ids, history = log.entries, message.causal_ids, message.causal_history
    known = history.known if isinstance(history, LazyHistory) else 0
    # Nearly always; a loop in Python over 200 ids would be a fifth of what a message costs.
    if all(map(in_memory.__contains__, ids[known:])):
        return None
    checked = room()
    absent = [i for i in range(known, len(ids)) if ids[i] not in in_memory]
    newest = [i for i in absent[-checked:] if not log.is_known(ids[i])]
    return UnknownReferences(newest, absent[:-checked])


def excess(
    message: Message, unknown: UnknownReferences | None, log: MessageLog, limits: CoreLimits
) -> str:
    """Return a text about the limit that a message exceeds, or an empty text.

    References to known messages cost nothing and are not counted.
    """
    ids, requests, most = message.causal_ids, message.repair_request, limits.unknown_references
    unknown = unknown or UnknownReferences()
    if len(unknown) > most:
        unknown.unchecked = [i for i in unknown.unchecked if not log.is_known(ids[i])]
    if len(unknown) > most:
        return f"{len(unknown)} unknown references; at most {most} are taken"
    if len(requests) > limits.repair_requests:
        return f"it asks for {len(requests)} messages; at most {limits.repair_requests} at once"
    # No known id is that long. Hints of the unchecked ones are looked at when it is their turn.
    checked = (message.causal_history[i] for i in unknown.checked)
    if (unknown and max(map(len, ids)) > MAX_ID_BYTES) or any(
        is_too_long(entry) for entry in (*checked, *requests)
    ):
        return f"it refers to ids or hints of more than {MAX_ID_BYTES} characters"
    return ""


def is_too_long(entry: HistoryEntry) -> bool:
    """Return True if an id or the retrieval hint in a reference is too long."""
    return (
        len(entry.message_id) > MAX_ID_BYTES
        or len(entry.sender_id or "") > MAX_ID_BYTES
        or len(entry.retrieval_hint or b"") > MAX_ID_BYTES
    )


class ReferenceBudget:
    """Budgets for followed references, one for each proven sender and one for all other senders."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._spent: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """What is spent, and when that was noted; what is not spent at all is not kept."""

    def room(self, payer: str, now_ms: int) -> int:
        """Return how many references may be followed now on the budget of `payer`. `payer` is a
        proven sender, or "" for all other senders."""
        return FOLLOWED_BURST - int(self._spent_by(payer, now_ms) + 0.999)

    def spend(self, payer: str, count: int, now_ms: int) -> None:
        """Charge a number of followed references to the budget of `payer`. If there are too many
        payers, the payer whose last charge is oldest is removed."""
        self._spent[payer] = self._spent_by(payer, now_ms) + count, now_ms
        self._spent.move_to_end(payer)
        if len(self._spent) > self._limit:
            self._spent.popitem(last=False)

    def _spent_by(self, payer: str, now_ms: int) -> float:
        spent, noted_ms = self._spent.get(payer, (0.0, now_ms))
        return min(
            max(0.0, spent - max(0, now_ms - noted_ms) * FOLLOWED_PER_S / 1000), FOLLOWED_BURST
        )
