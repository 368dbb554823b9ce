"""Group in which messages are rare, to measure sync traffic and the time to notice missing
messages.

The simulation has no cores, filters or histories, so 10,000 participants take seconds. The members
of the group have real timers, and send only the number of their newest message.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from reliable_channel.sds.sync import SyncTimer, SyncTrigger, make_schedule

from .network import draw_ms
from .scenario import Conditions
from .timeline import START_MS, Timeline


@dataclass(frozen=True, slots=True)
class Said:
    data: bytes
    is_sync: bool
    """True for a sync message, False for a message with content."""


class QuietMember(Protocol):
    """Participant of a quiet group, reduced to its sync timer."""

    known: int
    """Number of the newest message that the participant knows, counted from 1."""

    def write(self, now_ms: int) -> Said: ...

    def hear(self, said: Said, now_ms: int) -> None: ...

    def recover(self, message: Said, now_ms: int) -> None:
        """Receive a missing message, from Store or from another participant."""
        ...

    def next_deadline_ms(self) -> int | None:
        """Return the time of the next call of `on_deadline`."""
        ...

    def on_deadline(self, now_ms: int) -> Iterable[Said]:
        """Yield all syncs and repeated messages that are due."""
        ...


MakeMember = Callable[[int, int, Random], QuietMember]
"""Function that makes a member from its number, the time and a random generator."""


class TimedMember:
    """SDS member with the core's sync timer, which the same events restart as in
    `sds/receiving.py`."""

    def __init__(
        self, schedule: str, interval_ms: int, number: int, now_ms: int, random: Random
    ) -> None:
        self.number = number
        self.known = self._has = 0
        self._timer = SyncTimer(make_schedule(schedule, interval_ms, random.random))
        self._timer.restart(SyncTrigger.START, now_ms)

    def write(self, now_ms: int) -> Said:
        self._has = self.known = self._has + 1
        self._timer.restart(SyncTrigger.OWN_CONTENT, now_ms)
        return Said(self._has.to_bytes(8), is_sync=False)

    def hear(self, said: Said, now_ms: int) -> None:
        """Receive a message or a sync message of another member."""
        newest = int.from_bytes(said.data)
        self.known = max(self.known, newest)
        if not said.is_sync and newest > self._has:
            self._has = newest
            self._timer.restart(SyncTrigger.CONTENT, now_ms)
        elif (
            said.is_sync and newest >= self._has
        ):  # one that does not know our newest message spares nobody
            self._timer.restart(SyncTrigger.SYNC, now_ms)

    def recover(self, message: Said, now_ms: int) -> None:
        """Receive a missing message, which counts as content."""
        self.hear(message, now_ms)

    def next_deadline_ms(self) -> int | None:
        """Return the time of the next sync message."""
        return self._timer.due_ms

    def on_deadline(self, now_ms: int) -> Iterator[Said]:
        self._timer.restart(SyncTrigger.OWN_SYNC, now_ms)
        yield Said(self._has.to_bytes(8), is_sync=True)


@dataclass(frozen=True, slots=True)
class QuietGroup:
    """Group that is silent first, and then has rounds of one message and silence each."""

    seed: int
    participants: int
    conditions: Conditions = field(default_factory=Conditions)
    warm_up_ms: int = 60_000
    """Silence before the rounds (ms). All members arrive in the first half of the silence before
    the rounds."""
    rounds: int = 5
    round_ms: int = 120_000
    recovery_ms: int = 10_000
    """Time from noticing a missing message until its arrival, for example from Store (ms)."""


@dataclass(frozen=True, slots=True)
class QuietResult:
    syncs: int
    """Number of sync messages that were broadcast during `span_ms`."""
    span_ms: int
    missed: int
    """Number of times that a participant did not receive a message."""
    noticed_after_ms: Sequence[int]
    """Times from sending a message until a participant noticed its absence in the same round (ms),
    sorted."""


class QuietSimulation:
    def __init__(self, group: QuietGroup, make_member: MakeMember) -> None:
        self._group = group
        self._timeline = timeline = Timeline(START_MS)
        self._random = random = Random(f"{group.seed} quiet")
        self._make_member = make_member
        self._seats: list[_Seat] = []
        for number in range(group.participants):
            # Nobody starts at the same time as all others.
            timeline.at(START_MS + int(random.random() * group.warm_up_ms / 2), self._join, number)
        self._written = self._written_at_ms = self._syncs = 0
        self._unaware: set[int] = set()
        """Participants that have not heard of the newest message."""
        self._noticed_after_ms: list[int] = []

    def run(self) -> QuietResult:
        group, timeline = self._group, self._timeline
        timeline.run_until(START_MS + group.warm_up_ms)
        self._syncs, missed = 0, 0
        for _ in range(group.rounds):
            missed += self._play_round()
        noticed = tuple(sorted(self._noticed_after_ms))
        return QuietResult(self._syncs, group.rounds * group.round_ms, missed, noticed)

    def _play_round(self) -> int:
        timeline = self._timeline
        writer = self._seats[int(self._random.random() * len(self._seats))]
        self._written += 1
        self._written_at_ms = timeline.now_ms
        self._message = message = writer.member.write(timeline.now_ms)
        missed_by = self._broadcast(writer, message)
        self._unaware = {seat.number for seat in missed_by}
        timeline.run_until(timeline.now_ms + self._group.round_ms)
        self._unaware.clear()
        for seat in missed_by:  # until the next round everybody has it
            self._recover(seat, message)
        return len(missed_by)

    def _join(self, number: int) -> None:
        random = Random(f"{self._group.seed} quiet {number}")
        seat = _Seat(number, self._make_member(number, self._timeline.now_ms, random))
        self._seats.append(seat)
        self._set_timer(seat)

    def _broadcast(self, speaker: "_Seat", said: Said) -> "list[_Seat]":
        """Deliver it to all but those whose copy is lost, and return these."""
        at, random, conditions = self._timeline.at, self._random, self._group.conditions
        loss, latency, now_ms = conditions.loss, conditions.latency, self._timeline.now_ms
        missed_by = []
        for seat in self._seats:
            if seat is speaker:
                continue
            if loss and random.random() < loss:
                missed_by.append(seat)
            else:
                at(now_ms + draw_ms(latency, random), self._hear, seat, said)
        self._set_timer(speaker)
        return missed_by

    def _hear(self, seat: "_Seat", said: Said) -> None:
        member, now_ms = seat.member, self._timeline.now_ms
        member.hear(said, now_ms)
        if seat.number in self._unaware and member.known >= self._written:
            self._unaware.discard(seat.number)
            self._noticed_after_ms.append(now_ms - self._written_at_ms)
            self._timeline.at(now_ms + self._group.recovery_ms, self._recover, seat, self._message)
        self._set_timer(seat)

    def _recover(self, seat: "_Seat", message: Said) -> None:
        seat.member.recover(message, self._timeline.now_ms)
        self._set_timer(seat)

    def _set_timer(self, seat: "_Seat") -> None:
        """See that the deadline is not missed; one that moves back is noticed when the earlier one
        rings."""
        due_ms = seat.member.next_deadline_ms()
        if due_ms is not None and (seat.rings_at_ms is None or due_ms < seat.rings_at_ms):
            seat.rings_at_ms = due_ms
            self._timeline.at(due_ms, self._ring, seat, due_ms)

    def _ring(self, seat: "_Seat", at_ms: int) -> None:
        if at_ms != seat.rings_at_ms:
            return
        seat.rings_at_ms = None
        now_ms, due_ms = self._timeline.now_ms, seat.member.next_deadline_ms()
        if due_ms is not None and due_ms <= now_ms:
            for said in seat.member.on_deadline(now_ms):
                self._syncs += said.is_sync
                self._broadcast(seat, said)
        self._set_timer(seat)


@dataclass(slots=True, eq=False)
class _Seat:
    """A member and when the simulation looks after its timer."""

    number: int
    member: QuietMember
    rings_at_ms: int | None = None
