"""Buffer of messages with unmet causal dependencies (LIP 109, Periodic Incoming Buffer Sweep).

The buffer has tables of parked messages, of awaited ids, and of ids known only by reference. An id
known only by reference is searched ("missing") or waits for its turn ("queued"). A message whose
dependency is parked waits for the delivery of the dependency, not for its arrival.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ..changes import NO_RECORDER, LogKey, Recorder, Row, typed_table
from ..message import HistoryEntry, Message
from ..shares import Shares
from ..states import OnTransition, Trigger, unchecked
from .queued import Batch, QueuedReferences

REFERENCE_BYTES: Final = 400
"""Memory (bytes) that is counted for each unmet dependency of a message. A reference needs two
bytes on the wire, but a string and two table places in memory."""

MAX_NAMED: Final = 200
"""Maximum number of dropped references that are listed by id. If there are more, only their number
is given."""


class _ParkedRow(NamedTuple):
    message_id: str
    arrived_ms: int
    retrieval_hint: bytes | None
    data: bytes


class _LostRow(NamedTuple):
    message_id: str
    sender_id: str | None
    retrieval_hint: bytes | None


class MissingRow(NamedTuple):
    """Missing message, and the sender that first referred to it."""

    message_id: str
    sender_id: str | None
    retrieval_hint: bytes | None
    since_ms: int
    referrer_id: str


PARKED: Final = typed_table("parked_messages", _ParkedRow)
"""Table of parked messages. The dependencies of a parked message follow from its causal history and
other tables."""
MISSING: Final = typed_table("missing_messages", MissingRow)
LOST: Final = typed_table("lost_messages", _LostRow)


@dataclass(slots=True)
class ArrivedMessage:
    """Received message that is not in the log yet."""

    message: Message
    data: bytes
    """Bytes of the message as received, for SDS-R."""
    retrieval_hint: bytes | None
    lost: list[HistoryEntry] = field(default_factory=list)
    """Dependencies for which the message no longer waits."""


@dataclass(slots=True, kw_only=True)
class ParkedMessage(ArrivedMessage):
    """Message that waits for other messages."""

    arrived_ms: int
    unmet: set[str]
    size_bytes: int = 0
    """Memory (bytes) that is counted while the message waits."""


@dataclass(frozen=True, slots=True)
class MissingEntry:
    """Message that is known only by reference."""

    entry: HistoryEntry
    since_ms: int
    referrer_id: str = ""
    """Sender of the first message that referred to the missing message."""

    @property
    def row(self) -> Row:
        """Return the values that are saved for a restart."""
        return (*reference_row(self.entry), self.since_ms, self.referrer_id)


def reference_row(entry: HistoryEntry) -> tuple[str, str | None, bytes | None]:
    """Return the columns of a table row for a reference to a message."""
    return entry.message_id, entry.sender_id, entry.retrieval_hint


def missing_entry(row: MissingRow) -> MissingEntry:
    """Return the missing message that a table row describes."""
    entry = HistoryEntry(row.message_id, row.retrieval_hint, row.sender_id)
    return MissingEntry(entry, row.since_ms, row.referrer_id)


class IncomingBuffer:
    """Messages that wait for their dependencies, and the missing dependencies."""

    def __init__(
        self,
        *,
        lost_limit: int,
        recorder: Recorder = NO_RECORDER,
        on_transition: OnTransition = unchecked,
    ) -> None:
        self._on_transition = on_transition
        self._recorder = recorder
        self.parked: OrderedDict[str, ParkedMessage] = OrderedDict()
        """By message id, in order of arrival."""
        self.missing: OrderedDict[str, MissingEntry] = OrderedDict()
        """By message id, longest missing first."""
        self.lost: OrderedDict[str, HistoryEntry] = OrderedDict()
        """Ids of lost messages; nothing waits for them any more. The oldest are evicted beyond
        the limit."""
        self.size_bytes = 0
        """Memory charged for the messages that wait."""
        self.parked_counts = Shares()
        self.parked_sizes = Shares()
        self.references = Shares()
        """Of those that are missing, by their referrers."""
        self.queued = QueuedReferences(recorder)
        """References that are not looked for yet."""
        self._dependants: dict[str, dict[str, None]] = {}
        """Waiting messages by what they wait for, but for what stands in their own batch of queued
        references."""
        self._lost_limit = lost_limit

    def park(self, parked: ParkedMessage) -> None:
        """Keep a message until the dependencies in `unmet` are delivered."""
        self._recorder.put(
            PARKED,
            parked.message.message_id,
            parked.arrived_ms,
            parked.retrieval_hint,
            parked.data,
        )
        self._wait(parked)

    def waiting(self) -> list[tuple[LogKey, bool]]:
        """Return the places of the waiting messages in log order. Each place comes with True if the
        message waits for a message that has not arrived."""
        return sorted(
            (
                (parked.message.lamport_timestamp or 0, message_id),
                any(dependency not in self.parked for dependency in parked.unmet),
            )
            for message_id, parked in self.parked.items()
        )

    def _wait(self, parked: ParkedMessage) -> None:
        message, message_id = parked.message, parked.message.message_id
        parked.size_bytes = charge_bytes(parked)
        self.parked[message_id] = parked
        self.size_bytes += parked.size_bytes
        self.parked_counts.add(message_id, message.sender_id)
        self.parked_sizes.add(message_id, message.sender_id, parked.size_bytes)
        for dependency in self._listed(parked):
            self._dependants.setdefault(dependency, {})[message_id] = None

    def _listed(self, parked: ParkedMessage) -> set[str]:
        """What a message waits for by the table of dependants."""
        batch = self.queued.carried_by(parked.message.message_id)
        return parked.unmet if batch is None else parked.unmet.difference(batch.ids)

    @property
    def reference_count(self) -> int:
        """Number of missing and queued messages, which must stay below the limit of missing
        messages."""
        return len(self.missing) + self.queued.size

    def note_missing(self, entry: HistoryEntry, now_ms: int, referrer_id: str = "") -> None:
        """Remember that a message is missing. If several senders refer to the message, the sender
        with the fewest references pays for it."""
        message_id = entry.message_id
        if message_id in self.missing:
            self.references.claim(message_id, referrer_id)
            return
        if message_id in self.parked:
            return
        self._seen(message_id)
        self.missing[message_id] = missing = MissingEntry(entry, now_ms, referrer_id)
        self.references.add(message_id, referrer_id)
        self._recorder.put(MISSING, *missing.row)

    def waits_for(self, message_id: str) -> bool:
        """Return True if a parked message waits for this message."""
        return message_id in self._dependants

    def missing_for_ms(self, message_id: str, now_ms: int) -> int | None:
        """Return how long a message has been missing (ms), or None if it is not missing."""
        missing = self.missing.get(message_id) or self.queued.get(message_id)
        return None if missing is None else now_ms - missing.since_ms

    def arrived(self, message_id: str) -> None:
        """Note that a message arrived, so that it is no longer missing or lost."""
        self._found(message_id)
        if self.lost.pop(message_id, None):
            self._recorder.delete(LOST, message_id)

    def mark_delivered(self, message_id: str) -> list[ParkedMessage]:
        """Note that a message was delivered. Return the messages that waited only for this
        message."""
        return self._unpark(message_id, None)

    def give_up(self, entry: HistoryEntry) -> list[ParkedMessage]:
        """Declare a missing message lost. Return the messages that waited only for the lost
        message."""
        message_id = entry.message_id
        self._found(message_id)
        if message_id not in self.parked:  # it waits for one that waits for it, and comes next
            self.lost[message_id] = entry
            self._recorder.put(LOST, *reference_row(entry))
        if len(self.lost) > self._lost_limit:
            self._recorder.delete(LOST, self.lost.popitem(last=False)[0])
        return self._unpark(message_id, entry)

    def forget_missing(self, message_id: str) -> list[ParkedMessage]:
        """Stop waiting for a missing message to make room, until another message refers to it.
        Return the messages that waited only for this missing message."""
        entry = self.missing[message_id].entry
        self._found(message_id)
        return self._unpark(message_id, entry)

    def forget_queued(self, batch: Batch) -> tuple[list[ParkedMessage], int]:
        """Drop a batch of queued references. Return the messages that waited only for these
        references, and the number of dropped references.

        A reference that other messages also wait for stays, and counts for the sender of such a
        message. A flooder that is the first to refer to a message can thus not cause its removal.
        """
        kept = self._drop_batch(batch)
        if batch.is_parked:
            for message_id in kept:
                self._dependants[message_id][batch.carrier_id] = None
        if batch.is_handed_on:
            ready = [p for i in batch.ids for p in self._unpark(i, HistoryEntry(i))]
            return ready, len(batch.ids)
        parked = self.parked.get(batch.carrier_id) if batch.is_parked else None
        if parked is None:
            return [], len(batch.ids)
        parked.unmet.difference_update(batch.ids)
        if len(batch.ids) <= MAX_NAMED:
            parked.lost.extend(map(HistoryEntry, batch.ids))
        return ([] if parked.unmet else [parked]), len(batch.ids)

    def _drop_batch(self, batch: Batch) -> list[str]:
        """Drop a batch of references, but for those that other messages wait for; return these."""
        of_others = {} if batch.is_handed_on else self._of_others(batch)
        self.queued.drop(batch)
        for referrer_id, ids in of_others.items():
            self.queued.hand_on(batch, referrer_id, ids)
            for message_id in ids:
                del batch.ids[message_id]
        return [message_id for ids in of_others.values() for message_id in ids]

    def _of_others(self, batch: Batch) -> dict[str, dict[str, int]]:
        """The references of a batch that other messages wait for, by a sender of these."""
        found: dict[str, dict[str, int]] = {}
        if not (shared := batch.ids.keys() & self._dependants.keys()):
            return found
        for message_id in filter(shared.__contains__, batch.ids):
            waiting = self.parked[next(iter(self._dependants[message_id]))]
            owned = found.setdefault(waiting.message.sender_id, {})
            owned[message_id] = batch.ids[message_id]
        return found

    def take(self, message_id: str) -> ParkedMessage:
        """Remove a parked message that is about to be delivered."""
        parked = self.parked.pop(message_id)
        self._recorder.delete(PARKED, message_id)
        self.size_bytes -= parked.size_bytes
        self.parked_counts.remove(message_id)
        self.parked_sizes.remove(message_id)
        return parked

    def evict(self, message_id: str) -> ParkedMessage:
        """Remove a parked message, to make room or because it was forged."""
        parked = self.parked[message_id]
        listed = self._listed(parked)
        self.take(message_id)
        if batch := self.queued.carried_by(message_id):
            self._drop_batch(batch)
            for reference_id in batch.ids if self._on_transition is not unchecked else ():
                self._on_transition(reference_id, Trigger.LIMIT)
        for dependency in listed:
            waiting = self._dependants[dependency]
            del waiting[message_id]
            if not waiting:
                del self._dependants[dependency]
        return parked

    def restore_references(self, missing: Iterable[Row], lost: Iterable[Row]) -> None:
        """Restore the missing and lost messages that were saved before a restart."""
        known = sorted(map(missing_entry, MISSING.read(missing)), key=lambda entry: entry.since_ms)
        for entry in known:
            self.missing[entry.entry.message_id] = entry
            self.references.add(entry.entry.message_id, entry.referrer_id)
        for message_id, sender_id, retrieval_hint in LOST.read(lost):
            self.lost[message_id] = HistoryEntry(message_id, retrieval_hint, sender_id)

    def restore_parked(
        self,
        messages: Iterable[ParkedMessage],
        queued: Iterable[Row],
        is_known: Callable[[str], bool],
    ) -> None:
        """Restore the parked messages that were saved before a restart, with their whole causal
        histories.

        If some references of a message were queued, all its unknown references become queued. A
        later search finds the references that are in the log.
        """
        waiting = sorted(messages, key=lambda parked: parked.arrived_ms)
        known = {parked.message.message_id for parked in waiting} | self.missing.keys()
        since_ms = {row[0]: row[1] for row in queued}
        for parked in waiting:
            message, message_id = parked.message, parked.message.message_id
            history = {entry.message_id: entry for entry in message.causal_history}
            parked.unmet = (history.keys() & known) - {message_id}
            parked.lost = [entry for i, entry in history.items() if i in self.lost]
            if isinstance(noted_ms := since_ms.get(message_id), int):
                self._restore_unseen(parked, noted_ms, is_known)
            self._wait(parked)

    def _restore_unseen(
        self, parked: ParkedMessage, since_ms: int, is_known: Callable[[str], bool]
    ) -> None:
        message, history = parked.message, parked.message.causal_history
        ids = {}
        for index, message_id in enumerate(message.causal_ids):
            if message_id and message_id not in parked.unmet and message_id != message.message_id:
                if message_id in self.queued:
                    parked.unmet.add(message_id)
                elif message_id not in self.lost and not is_known(message_id):
                    ids[message_id] = index
        if ids:
            parked.unmet.update(ids)
            size = len(parked.data) // REFERENCE_BYTES
            about = (message.message_id, True, message.sender_id, "", since_ms)
            self.queued.add(Batch(*about, ids, lambda: history, size))

    def overdue(self, now_ms: int, timeout_ms: int) -> list[HistoryEntry]:
        """Return the entries that have been missing for longer than `timeout_ms`."""
        found = []
        for missing in self.missing.values():
            if now_ms - missing.since_ms <= timeout_ms:
                break
            found.append(missing.entry)
        return found

    def deadlocked(self, now_ms: int, timeout_ms: int) -> list[ParkedMessage]:
        """Return overdue parked messages that wait for no missing message, in log order. The
        messages wait for each other in a cycle.

        No honest participant makes a cycle, because a message cannot refer to a later one.
        """
        overdue = [p for p in self.parked.values() if now_ms - p.arrived_ms > timeout_ms]
        if not overdue:
            return []
        # Once over all references, from what is missing to what waits for it: a search for each
        # message would cost the square of a chain's length.
        waits_for_missing = set[str]()
        stack = [dependency for dependency in self._dependants if dependency not in self.parked]
        stack += (carriers := self.queued.carriers())
        waits_for_missing.update(carriers)
        while stack:
            for dependant in self._dependants.get(stack.pop(), ()):
                if dependant not in waits_for_missing:
                    waits_for_missing.add(dependant)
                    stack.append(dependant)
        return in_log_order(p for p in overdue if p.message.message_id not in waits_for_missing)

    def _seen(self, message_id: str) -> None:
        """A reference does not wait for its turn any more: its message is listed as any other."""
        batch = self.queued.remove(message_id) if self.queued.size else None
        if batch is not None and batch.is_parked:
            self._dependants.setdefault(message_id, {})[batch.carrier_id] = None

    def _found(self, message_id: str) -> None:
        self._seen(message_id)
        if self.missing.pop(message_id, None) is not None:
            self.references.remove(message_id)
            self._recorder.delete(MISSING, message_id)

    def _unpark(self, message_id: str, lost: HistoryEntry | None) -> list[ParkedMessage]:
        self._seen(message_id)
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
    """Count the memory of a message while it waits, and return it (bytes)."""
    return len(parked.data) + REFERENCE_BYTES * len(parked.unmet)


def in_log_order(parked: Iterable[ParkedMessage]) -> list[ParkedMessage]:
    """Sort messages by Lamport timestamp, then by message id."""
    return sorted(parked, key=_log_order)


def _log_order(parked: ParkedMessage) -> tuple[int, str]:
    return parked.message.lamport_timestamp or 0, parked.message.message_id
