"""The buffer of messages with unmet causal dependencies (LIP 109, Periodic Incoming Buffer Sweep).

Three tables: messages that wait ("parked"), ids that somebody waits for, and ids known by reference
alone ("missing"). A message whose dependency is parked waits for that message's delivery, not for
its arrival.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from .changes import NO_RECORDER, Recorder, Row, Table
from .message import HistoryEntry, Message
from .shares import Shares

REFERENCE_BYTES: Final = 400
"""Charged for each dependency that a message waits for, on top of its own bytes: two bytes on the
wire are enough for a reference, and here it takes a string and its places in two tables."""

PARKED: Final = Table(
    "parked_messages",
    (
        ("message_id", "TEXT"),
        ("arrived_ms", "INTEGER"),
        ("retrieval_hint", "BLOB"),
        ("data", "BLOB"),
    ),
)
"""What each waits for follows from its causal history and the two tables below."""
_REFERENCE: Final = (
    ("message_id", "TEXT"),
    ("sender_id", "TEXT"),
    ("retrieval_hint", "BLOB"),
    ("since_ms", "INTEGER"),
    ("referrer_id", "TEXT"),
)
MISSING: Final = Table("missing_messages", _REFERENCE)
LOST: Final = Table("lost_messages", _REFERENCE[:3])


@dataclass(slots=True)
class ParkedMessage:
    """A message that waits for others."""

    message: Message
    data: bytes
    """The message as received, for SDS-R."""
    retrieval_hint: bytes | None
    arrived_ms: int
    unmet: set[str]
    lost: list[HistoryEntry] = field(default_factory=list)
    """Dependencies that it stopped waiting for."""
    size_bytes: int = 0
    """Memory charged while it waits."""


@dataclass(frozen=True, slots=True)
class MissingEntry:
    """A message that is known by reference alone."""

    entry: HistoryEntry
    since_ms: int
    referrer_id: str = ""
    """Who referred to it first."""

    @property
    def row(self) -> Row:
        """What a restart needs of it."""
        return (*reference_row(self.entry), self.since_ms, self.referrer_id)


def reference_row(entry: HistoryEntry) -> tuple[str, str | None, bytes | None]:
    """The columns of a reference to a message."""
    return entry.message_id, entry.sender_id, entry.retrieval_hint


def reference(row: Row) -> HistoryEntry:
    """The reference that a row begins with."""
    message_id, sender_id, retrieval_hint = row[:3]
    assert isinstance(message_id, str)
    assert sender_id is None or isinstance(sender_id, str)
    assert retrieval_hint is None or isinstance(retrieval_hint, bytes)
    return HistoryEntry(message_id, retrieval_hint, sender_id)


def missing_entry(row: Row) -> MissingEntry:
    """The missing message of a row."""
    since_ms, referrer_id = row[3:]
    assert isinstance(since_ms, int) and isinstance(referrer_id, str)
    return MissingEntry(reference(row), since_ms, referrer_id)


class IncomingBuffer:
    """What waits, for what, since when."""

    def __init__(self, *, lost_limit: int, recorder: Recorder = NO_RECORDER) -> None:
        self._recorder = recorder
        self.parked: OrderedDict[str, ParkedMessage] = OrderedDict()
        """By message id, in order of arrival."""
        self.missing: OrderedDict[str, MissingEntry] = OrderedDict()
        """By message id, longest missing first."""
        self.lost: OrderedDict[str, HistoryEntry] = OrderedDict()
        """Ids that were given up; nobody waits for them any more. The oldest are forgotten beyond
        the limit."""
        self.size_bytes = 0
        """Memory charged for the messages that wait."""
        self.parked_counts = Shares()
        self.parked_sizes = Shares()
        self.references = Shares()
        """Of those that are missing, by who referred to them."""
        self._dependants: dict[str, dict[str, None]] = {}
        self._lost_limit = lost_limit

    def park(self, parked: ParkedMessage) -> None:
        """Keep a message until its `unmet` dependencies are delivered."""
        self._recorder.put(
            PARKED,
            parked.message.message_id,
            parked.arrived_ms,
            parked.retrieval_hint,
            parked.data,
        )
        self._wait(parked)

    def _wait(self, parked: ParkedMessage) -> None:
        message, message_id = parked.message, parked.message.message_id
        parked.size_bytes = charge_bytes(parked)
        self.parked[message_id] = parked
        self.size_bytes += parked.size_bytes
        self.parked_counts.add(message_id, message.sender_id)
        self.parked_sizes.add(message_id, message.sender_id, parked.size_bytes)
        for dependency in parked.unmet:
            self._dependants.setdefault(dependency, {})[message_id] = None

    def note_missing(self, entry: HistoryEntry, now_ms: int, referrer_id: str = "") -> bool:
        """Remember that a message is missing; return whether that is news.

        The reference counts as that of whoever of its referrers has the fewest.
        """
        message_id = entry.message_id
        if message_id in self.missing:
            self.references.claim(message_id, referrer_id)
            return False
        if message_id in self.parked:
            return False
        self.missing[message_id] = missing = MissingEntry(entry, now_ms, referrer_id)
        self.references.add(message_id, referrer_id)
        self._recorder.put(MISSING, *missing.row)
        return True

    def missing_for_ms(self, message_id: str, now_ms: int) -> int | None:
        """How long a message has been missing; None where nobody misses it."""
        missing = self.missing.get(message_id)
        return None if missing is None else now_ms - missing.since_ms

    def arrived(self, message_id: str) -> None:
        """A message is no longer missing, or lost, whether or not it can be delivered yet."""
        self._found(message_id)
        if self.lost.pop(message_id, None):
            self._recorder.delete(LOST, message_id)

    def settle(self, message_id: str) -> list[ParkedMessage]:
        """A message was delivered: return those that waited for it alone."""
        return self._release(message_id, None)

    def give_up(self, entry: HistoryEntry) -> list[ParkedMessage]:
        """Stop waiting for a message: return those that waited for it alone."""
        message_id = entry.message_id
        self._found(message_id)
        self.lost[message_id] = entry
        self._recorder.put(LOST, *reference_row(entry))
        if len(self.lost) > self._lost_limit:
            self._recorder.delete(LOST, self.lost.popitem(last=False)[0])
        return self._release(message_id, entry)

    def take(self, message_id: str) -> ParkedMessage:
        """Remove a message that is about to be delivered."""
        parked = self.parked.pop(message_id)
        self._recorder.delete(PARKED, message_id)
        self.size_bytes -= parked.size_bytes
        self.parked_counts.remove(message_id)
        self.parked_sizes.remove(message_id)
        return parked

    def evict(self, message_id: str) -> ParkedMessage:
        """Remove a message that waits: to make room, or as it was forged."""
        parked = self.take(message_id)
        for dependency in parked.unmet:
            waiting = self._dependants[dependency]
            del waiting[message_id]
            if not waiting:
                del self._dependants[dependency]
        return parked

    def restore_references(self, missing: Iterable[Row], lost: Iterable[Row]) -> None:
        """Begin with what was missing and lost before a restart."""
        known = sorted(map(missing_entry, missing), key=lambda entry: entry.since_ms)
        for entry in known:
            self.missing[entry.entry.message_id] = entry
            self.references.add(entry.entry.message_id, entry.referrer_id)
        self.lost = OrderedDict((entry.message_id, entry) for entry in map(reference, lost))

    def restore_parked(self, messages: Iterable[ParkedMessage]) -> None:
        """Begin with the messages that waited before a restart, their causal histories whole."""
        waiting = sorted(messages, key=lambda parked: parked.arrived_ms)
        known = {parked.message.message_id for parked in waiting} | self.missing.keys()
        for parked in waiting:
            history = {entry.message_id: entry for entry in parked.message.causal_history}
            parked.unmet = (history.keys() & known) - {parked.message.message_id}
            parked.lost = [entry for i, entry in history.items() if i in self.lost]
            self._wait(parked)

    def overdue(self, now_ms: int, timeout_ms: int) -> list[HistoryEntry]:
        """The entries that have been missing for longer than `timeout_ms`."""
        found = []
        for missing in self.missing.values():
            if now_ms - missing.since_ms <= timeout_ms:
                break
            found.append(missing.entry)
        return found

    def deadlocked(self, now_ms: int, timeout_ms: int) -> list[ParkedMessage]:
        """The overdue messages that wait for nothing that is missing, in log order: cycles.

        No honest participant makes one, as a message cannot refer to a later one.
        """
        overdue = [p for p in self.parked.values() if now_ms - p.arrived_ms > timeout_ms]
        if not overdue:
            return []
        # Once over all references, from what is missing to what waits for it: a search for each
        # message would cost the square of a chain's length.
        waits_for_missing = set[str]()
        stack = [dependency for dependency in self._dependants if dependency not in self.parked]
        while stack:
            for dependant in self._dependants.get(stack.pop(), ()):
                if dependant not in waits_for_missing:
                    waits_for_missing.add(dependant)
                    stack.append(dependant)
        return in_log_order(p for p in overdue if p.message.message_id not in waits_for_missing)

    def _found(self, message_id: str) -> None:
        if self.missing.pop(message_id, None) is not None:
            self.references.remove(message_id)
            self._recorder.delete(MISSING, message_id)

    def _release(self, message_id: str, lost: HistoryEntry | None) -> list[ParkedMessage]:
        ready = []
        for dependant in self._dependants.pop(message_id, ()):
            parked = self.parked[dependant]
            parked.unmet.discard(message_id)
            if lost is not None:
                parked.lost.append(lost)
            if not parked.unmet:
                ready.append(parked)
        return ready


def charge_bytes(parked: ParkedMessage) -> int:
    """The memory that a message takes while it waits."""
    return len(parked.data) + REFERENCE_BYTES * len(parked.unmet)


def in_log_order(parked: Iterable[ParkedMessage]) -> list[ParkedMessage]:
    """Sort by Lamport timestamp, then message id."""
    return sorted(parked, key=_log_order)


def _log_order(parked: ParkedMessage) -> tuple[int, str]:
    return parked.message.lamport_timestamp or 0, parked.message.message_id
