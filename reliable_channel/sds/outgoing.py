"""Buffer of unacknowledged own messages (LIP 109, Review ACK Status and Periodic Outgoing Buffer
Sweep)."""

import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, SupportsBytes

from .agenda import Agenda, Slot
from .bloom import BloomForm, BloomLayout, BloomParameters, HashPair, Probes, contains
from .changes import NO_RECORDER, Recorder, Row, typed_table
from .fast_dataclass import value

MAX_MS: Final = 60 * 60 * 1000
"""Maximum wait (ms) of the retry policy `doubling`."""


@value
class Unacknowledged:
    """Dispatched message, as the input of a retry policy."""

    attempts: int
    """Number of dispatches of the message, at least 1."""
    possibly_acknowledged: bool
    """True if the bloom filter of a participant contains the message."""
    interval_ms: int
    """Option `retry_interval_ms` or `possibly_acknowledged_retry_interval_ms` (ms)."""


RetryPolicy = Callable[[Unacknowledged], int]
"""Function that returns the time (ms, at least 1) from a message's last dispatch to the next
dispatch. The buffer calls the policy at each dispatch, and again when a participant may have the
message. A retry policy must be pure, which means that equal arguments give equal results.
"""


def fixed(message: Unacknowledged) -> int:
    """Return the interval of the options each time, as js-waku does (the default policy)."""
    return message.interval_ms


def doubling(message: Unacknowledged) -> int:
    """Return twice the wait at each retry, up to an hour, for participants that are away for
    long."""
    doublings = min(message.attempts - 1, MAX_MS.bit_length())
    return max(message.interval_ms, min(message.interval_ms << doublings, MAX_MS))


class _OutgoingRow(NamedTuple):
    message_id: str
    data: bytes | None


class _RetryRow(NamedTuple):
    message_id: str
    attempts: int
    due_ms: int | None
    possible_acks: str


OUTGOING: Final = typed_table("outgoing_messages", _OutgoingRow)
OUTGOING_PROGRESS: Final = typed_table("outgoing_progress", _RetryRow)
"""Table of the retries of own messages, separate from the bytes, which are written once. A row is
written from the first dispatch of the message on."""


@dataclass(slots=True)
class OutgoingEntry:
    """Own message that no other participant is known to have."""

    message_id: str
    data: SupportsBytes
    """Sent bytes of the message, or a draft before it is sent."""
    attempts: int = 0
    """Number of dispatches of the message."""
    possible_acks: frozenset[str] = frozenset()
    """Ids of the participants whose bloom filter contains the message."""
    due_ms: int | None = None
    """Time of the next retry (ms). The time is None while the message waits for the transport."""


class _Places:
    """Where messages lie in the bloom filters of one form, so that a review hashes nothing and
    costs one look a message: a short one where the filter has this channel's size."""

    def __init__(self, layout: BloomLayout, message_ids: Iterable[str]) -> None:
        self._layout = layout
        self._pairs: dict[str, HashPair] = {}
        self._probes: dict[str, Probes] = {}
        for message_id in message_ids:
            self.add(message_id)

    def add(self, message_id: str) -> None:
        pair = self._pairs[message_id] = self._layout.form.hash_pair(message_id)
        self._probes[message_id] = self._layout.probes_of(pair)

    def remove(self, message_id: str) -> None:
        del self._pairs[message_id], self._probes[message_id]

    def held(self, layout: BloomLayout, words: bytes) -> Iterator[str]:
        """The messages that a filter holds."""
        if layout == self._layout:
            return (i for i, probes in self._probes.items() if contains(words, probes))
        return (i for i, pair in self._pairs.items() if layout.holds(words, pair))


class OutgoingBuffer:
    """Own messages by message id, with the times of their retries."""

    def __init__(
        self,
        parameters: BloomParameters,
        *,
        retry_interval_ms: int,
        possibly_acknowledged_interval_ms: int,
        retry_policy: RetryPolicy = fixed,
        recorder: Recorder = NO_RECORDER,
        agenda: Agenda | None = None,
    ) -> None:
        self.agenda = agenda or Agenda()
        """Where `Slot.RETRY` is planned."""
        self._recorder = recorder
        self._retry_policy = retry_policy
        self.entries: dict[str, OutgoingEntry] = {}
        self._parameters = parameters
        self._places: dict[BloomForm, _Places] = {}
        """For the forms of the filters that were received."""
        self._retry_interval_ms = retry_interval_ms
        self._possibly_interval_ms = possibly_acknowledged_interval_ms
        self._timetable: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self.entries)

    def add(self, message_id: str, data: SupportsBytes, *, is_cached: bool = False) -> None:
        """Add a message that is about to be dispatched for the first time.

        If it `is_cached`, the bytes are already in the repair cache, and are not written again.
        """
        self.entries[message_id] = OutgoingEntry(message_id, data)
        if self._recorder.records:
            self._recorder.put(OUTGOING, message_id, b"" if is_cached else bytes(data))
        for places in self._places.values():
            places.add(message_id)

    def no_longer_cached(self, message_id: str) -> None:
        """Write the bytes of a message that left the repair cache, if the message is in this
        buffer."""
        if entry := self.entries.get(message_id):
            self._recorder.put(OUTGOING, message_id, bytes(entry.data))

    def dispatched(self, message_id: str, now_ms: int) -> None:
        """Start the retry timer of a sent message. A message that waits for a transport uses no
        attempt."""
        if entry := self.entries.get(message_id):
            entry.attempts += 1
            interval_ms = self._interval_ms(entry, possibly_acknowledged=bool(entry.possible_acks))
            self._schedule(entry, now_ms + interval_ms)
            self._plan()
            if self._recorder.records:
                self._record(entry)

    def remove(self, message_ids: Iterable[str]) -> list[OutgoingEntry]:
        """Remove the given messages from the buffer, and return the removed entries."""
        entries = self.entries
        removed = list(map(entries.pop, filter(entries.__contains__, message_ids)))
        for entry in removed if self._recorder.records else ():
            self._recorder.delete(OUTGOING, entry.message_id)
            self._recorder.delete(OUTGOING_PROGRESS, entry.message_id)
        for places in self._places.values():
            for entry in removed:
                places.remove(entry.message_id)
        if removed:
            self._plan()
        return removed

    def any_in(self, layout: BloomLayout, words: bytes) -> bool:
        """Return True if a bloom filter contains any message of the buffer."""
        return next(self._held(layout, words), None) is not None

    def review(self, layout: BloomLayout, words: bytes, sender_id: str) -> list[OutgoingEntry]:
        """Return the messages in a bloom filter of `sender_id` that were not in an earlier filter
        of it."""
        found = []
        for message_id in self._held(layout, words):
            entry = self.entries[message_id]
            if sender_id not in entry.possible_acks:
                if not entry.possible_acks and entry.due_ms is not None:
                    dispatched_ms = entry.due_ms - self._interval_ms(
                        entry, possibly_acknowledged=False
                    )
                    longer_ms = self._interval_ms(entry, possibly_acknowledged=True)
                    self._schedule(entry, dispatched_ms + longer_ms)
                entry.possible_acks |= {sender_id}
                self._record(entry)
                found.append(entry)
        self._plan()
        return found

    def due(self, now_ms: int) -> list[OutgoingEntry]:
        """Return the messages whose retry is due, unacknowledged messages first."""
        found = []
        while self._timetable and self._timetable[0][0] <= now_ms:
            due_ms, message_id = heapq.heappop(self._timetable)
            entry = self.entries.get(message_id)
            if entry is not None and entry.due_ms == due_ms:
                entry.due_ms = None
                found.append(entry)
        self._plan()
        return sorted(found, key=lambda entry: bool(entry.possible_acks))

    def partition(self) -> tuple[list[str], list[str]]:
        """Return the ids of unacknowledged messages, and the ids of possibly acknowledged
        messages."""
        sides: tuple[list[str], list[str]] = [], []
        for entry in self.entries.values():
            sides[bool(entry.possible_acks)].append(entry.message_id)
        return sides

    def __iter__(self) -> Iterator[OutgoingEntry]:
        return iter(self.entries.values())

    def restore(
        self,
        messages: Iterable[Row],
        progress: Iterable[Row],
        now_ms: int,
        cached: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        """Restore the messages that were saved before a restart. `cached` has the bytes of messages
        in the repair cache, by message id.

        A dispatched message keeps its retry time, or is due now if its next dispatch had begun. A
        message that was never dispatched waits for the transport.
        """
        steps = {row.message_id: row[1:] for row in OUTGOING_PROGRESS.read(progress)}
        for message_id, data in OUTGOING.read(messages):
            attempts, due_ms, acks = steps.get(message_id, (0, None, "[]"))
            data = data or cached[message_id]
            entry = OutgoingEntry(message_id, data, attempts, frozenset(json.loads(acks)))
            self.entries[message_id] = entry
            if attempts:
                self._schedule(entry, now_ms if due_ms is None else due_ms)
        self._plan()

    def _interval_ms(self, entry: OutgoingEntry, *, possibly_acknowledged: bool) -> int:
        usual_ms = self._possibly_interval_ms if possibly_acknowledged else self._retry_interval_ms
        return self._retry_policy(Unacknowledged(entry.attempts, possibly_acknowledged, usual_ms))

    def _record(self, entry: OutgoingEntry) -> None:
        acks = json.dumps(sorted(entry.possible_acks)) if entry.possible_acks else "[]"
        self._recorder.put(OUTGOING_PROGRESS, entry.message_id, entry.attempts, entry.due_ms, acks)

    def _held(self, layout: BloomLayout, words: bytes) -> Iterator[str]:
        form = layout.form
        if form not in self._places:
            self._places[form] = _Places(self._parameters.layout_in(form), self.entries)
        return self._places[form].held(layout, words)

    def _schedule(self, entry: OutgoingEntry, due_ms: int) -> None:
        entry.due_ms = due_ms
        heapq.heappush(self._timetable, (due_ms, entry.message_id))

    def _plan(self) -> None:
        """Plan the next retry."""
        timetable, first_ms = self._timetable, None
        while timetable:
            due_ms, message_id = timetable[0]
            entry = self.entries.get(message_id)
            if entry is not None and entry.due_ms == due_ms:
                first_ms = due_ms
                break
            heapq.heappop(timetable)
        self.agenda.plan(Slot.RETRY, first_ms)
