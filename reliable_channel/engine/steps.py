"""Steps of an engine, each with the consequences of one input. A channel with saved state writes
each step before it emits or broadcasts a part of the step.

Steps that end during a write are written together in the next write. Events and messages stay in
the order of the steps. A step that accepted an own message may be refused. If a step with an own
message cannot be written, the message is withdrawn without any event.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import Final, SupportsBytes

from ..errors import StateError
from ..events import AnyEvent, MessageSent, SendProgress, StateDegraded, StateRecovered
from ..sds.changes import Changes
from ..sds.events import Outgoing, OutgoingKind, SyncSent
from .archive_overlay import ArchiveOverlay
from .backoff import Backoff
from .logged import Logged
from .requests import Accepted

STEPS_WAITING: Final = 2_000
"""Maximum number of steps that wait for the disk before receiving waits, too."""
WRITE_DELAY_MS: Final = 20
"""Time (ms) for which an unimportant step, such as a confirmation, waits to be written with others.
After a crash in this time, an event is emitted again, or a message is published again."""
PROGRESS: Final = (MessageSent, SendProgress)
"""Events that may be emitted up to `WRITE_DELAY_MS` later."""
ENTRIES_AT_RISK: Final = 200_000
"""Maximum number of log entries that are kept while the disk fails. The oldest entries are
dropped."""


class Wake(Enum):
    """Task of the channel to which a step gives work."""

    SEND = "send"
    """Task that sends the waiting messages."""
    WRITE = "write"
    """Task that writes the waiting steps to the disk."""
    WRITE_LATER = "write_later"
    """The same task, after `WRITE_DELAY_MS`."""
    DECRYPT = "decrypt"
    """Task that decrypts the delivered contents."""
    FETCH = "fetch"
    """Task that sends the waiting queries to Store."""

    __hash__ = object.__hash__  # the one of Enum hashes the name, in Python


@dataclass(slots=True)
class Step:
    """Consequences of one input. The consequences are written first, then emitted and broadcast."""

    changes: Changes | None
    """Rows to save, or None if the step changes none."""
    events: list[AnyEvent | Logged]
    outgoing: Sequence[Outgoing]
    accepted: Accepted | None = None
    """Own message that is withdrawn if the step cannot be written, or None."""
    is_due: bool = True
    """True if the step is written, or has nothing to write."""
    wakes: list[Wake] = field(default_factory=list)
    """Tasks to wake now, except the sending task, which waits until the step is due."""
    due_ms: int | None = None
    """Time (ms) for the next call of `Engine.on_deadline`, or None if nothing is planned."""

    @property
    def is_urgent(self) -> bool:
        """True if another task waits until the step is written. The note that a message was sent is
        not urgent."""
        if self.outgoing or self.accepted:
            return True
        for event in self.events:  # no generator expression, because each step comes here
            if not isinstance(event, PROGRESS):
                return True
        return False


class UnwrittenSteps:
    """Steps of a channel with saved state, which wait until they are written.

    If the store fails, the channel continues in memory, and the next write tries the data again.
    """

    def __init__(
        self,
        archive: ArchiveOverlay,
        backoff: Backoff,
        bloom_filter: SupportsBytes = b"",
        *,
        is_strict: bool = False,
    ) -> None:
        self._archive = archive
        self._is_strict = is_strict
        self._bloom_filter = bloom_filter
        self._writing_filter = self._ended_filter = bytes(bloom_filter)
        """Bloom filter of the messages that may be acknowledged, which is the filter after the last
        step that ended. With `is_strict`, it is the filter after the last step that was written."""
        self._backoff = backoff
        self._waiting: deque[Step] = deque()
        self.is_urgent = False
        """True if anything waits for a write; else the steps have time (`WRITE_DELAY_MS`)."""
        self._batch = 0
        """Steps, of those that wait, that the present write ends."""
        self._writing = Changes()
        self._unwritten: Changes | None = None
        self._degraded_since_ms: int | None = None
        self._has_reported_reading = False
        self.submitted = 0
        self.ended = 0
        """Steps that are written, or known to be at risk, or refused."""
        self.retry_at_ms: int | None = None
        """When to write again although no step waits."""
        self.failure: StateError | None = None
        """Why the store cannot be written at the moment."""
        self.given_up = 0
        """Log entries that were never written, and no longer will be."""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def older_filter(self) -> bytes | None:
        """Bloom filter that a message must carry now, because later messages are not saved. None if
        a message may carry the current filter."""
        return self._ended_filter if self._waiting or self.failure else None

    @property
    def is_full(self) -> bool:
        """True if so many steps wait for the disk that receiving must pause."""
        return len(self._waiting) > STEPS_WAITING

    @property
    def at_risk(self) -> int:
        """Number of messages and rows that are not on the disk yet."""
        unwritten = self._unwritten
        return 0 if unwritten is None else len(unwritten.entries) + len(unwritten.rows)

    def add(self, step: Step) -> None:
        """Add a step to the steps that wait to be written. A step that changes nothing is due at
        once if no step waits."""
        self.submitted += 1
        if changes := step.changes:
            self._archive.add(changes)
        else:
            step.changes = None
            if not self._waiting:
                self.ended += 1
                return
        step.is_due = False
        self._waiting.append(step)
        if self.is_urgent:
            return  # the task is awake
        if step.is_urgent:
            self.is_urgent = True
            step.wakes.append(Wake.WRITE)
        elif len(self._waiting) == 1:
            step.wakes.append(Wake.WRITE_LATER)

    def begin(self, now_ms: int, *, at_once: bool) -> Changes | None:
        """Return all waiting data, to be written now in one transaction. Return None if there are
        no data, or if the pause after a failed write is not over. After this call, call `written`
        or `failed`, and then `finish`."""
        self._gather()
        if self._unwritten is None or self._is_resting(now_ms, at_once):
            return None
        self._writing, self._unwritten = self._unwritten, None
        return self._writing

    def written(self, now_ms: int) -> StateRecovered | None:
        self._archive.remove(self._writing)
        if (since_ms := self._degraded_since_ms) is None:
            return None
        self._degraded_since_ms = self.retry_at_ms = self.failure = None
        self._backoff.reset()
        return StateRecovered(now_ms - since_ms, self.given_up)

    def failed(self, error: StateError, now_ms: int) -> StateDegraded | None:
        """Note that the write failed. The data are kept for the next write."""
        unwritten = self._unwritten = self._writing  # nothing was added since `begin`
        # The steps that were added since `begin` end now, because they may refer to a refused
        # message. The next write thus contains each refused message together with its deletion.
        self._gather()
        self.failure = error
        entries = unwritten.entries
        while len(entries) > ENTRIES_AT_RISK:
            oldest = next(iter(entries))
            del entries[oldest]
            self._archive.give_up(oldest)
            self.given_up += 1
        is_first, event = self._degraded_since_ms is None, None
        if is_first:
            self._degraded_since_ms = now_ms
            event = StateDegraded(str(error), self.at_risk, error.retryable)
        # A damaged file does not mend itself: nothing more is written to it.
        self.retry_at_ms = now_ms + int(self._backoff.next_s() * 1000) if error.retryable else None
        return event

    def finish(self) -> tuple[Sequence[Step], Sequence[Accepted]]:
        """Return the steps that this write ended, and the own messages that `failure` refuses."""
        if self.failure is None or not self._is_strict:
            self._ended_filter = self._writing_filter
        ended = [self._waiting.popleft() for _ in range(self._batch)]
        self.ended += self._batch
        self._batch = 0
        if not self._waiting:
            self.is_urgent = False  # somebody may have waited for this very write
        if self.failure is None:
            return ended, ()
        due, refused = list[Step](), list[Accepted]()
        for step in ended:
            if step.accepted is not None:
                refused.append(step.accepted)
            else:
                due.append(_without_syncs(step) if refused else step)
        return due, refused

    def reading_failed(self) -> StateDegraded | None:
        """Report failed look-ups once, because a message that was not found may be delivered
        again."""
        if (error := self._archive.failure) is None or self._has_reported_reading:
            return None
        self._has_reported_reading = True
        return StateDegraded(str(error), self.at_risk, error.retryable)

    def _gather(self) -> None:
        """Add the changes of all waiting steps to the data of the write that ends the steps."""
        for step in islice(self._waiting, self._batch, None):
            if (changes := step.changes) is None:
                continue
            if self._unwritten is None:
                self._unwritten = changes
            else:
                self._unwritten.add(changes)
        self._batch, self.is_urgent = len(self._waiting), False
        self._writing_filter = bytes(self._bloom_filter)

    def _is_resting(self, now_ms: int, at_once: bool) -> bool:
        if self._degraded_since_ms is None:
            return False
        if self.retry_at_ms is None:
            return True
        return not at_once and now_ms < self.retry_at_ms


def _without_syncs(step: Step) -> Step:
    """Remove the sync messages, which may refer to a message that was withdrawn."""
    step.events = [event for event in step.events if not isinstance(event, SyncSent)]
    step.outgoing = [each for each in step.outgoing if each.kind is not OutgoingKind.SYNC]
    return step
