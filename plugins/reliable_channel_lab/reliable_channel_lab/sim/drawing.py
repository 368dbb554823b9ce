"""Scenarios that are drawn from seeds.

Each seed leaves out most kinds of faults. Many runs with few kinds of faults find more than a run
with all (Groce and others, 2012).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Final, TypeVar

from .scenario import (
    PUBLISH_MS,
    Attack,
    ClockJump,
    Conditions,
    Crash,
    Fault,
    Habits,
    Hostile,
    Join,
    Latency,
    Leave,
    Outage,
    Parameters,
    Partition,
    Scenario,
    StoreAway,
    StoreConditions,
    Write,
)

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
MAX_SEGMENTS: Final = 180

ATTACKS: Final = tuple(each for each in Attack if each is not Attack.FALSE_DIFFERENCE)
"""Attacks that seeds choose from, without `FALSE_DIFFERENCE`, so that old seeds do not change."""

_T = TypeVar("_T")


class Draw:
    """Random choices from one seed for one purpose."""

    def __init__(self, seed: int, purpose: str = "scenario") -> None:
        self._random = Random(f"{seed} {purpose}").random

    def below(self, bound: int) -> int:
        """Return a random whole number from 0 to below `bound`."""
        return int(self._random() * bound)

    def between(self, least: int, most: int) -> int:
        """Return a random whole number from `least` to `most`, both included."""
        return least + self.below(most - least + 1)

    def chance(self, share: float) -> bool:
        return self._random() < share

    def one_of(self, choices: Sequence[_T]) -> _T:
        return choices[self.below(len(choices))]

    def some_of(self, choices: Sequence[_T], least: int, most: int) -> tuple[_T, ...]:
        wanted = self.between(least, most)
        picked: set[int] = set()
        while len(picked) < min(wanted, len(choices)):
            picked.add(self.below(len(choices)))
        return tuple(choices[index] for index in sorted(picked))


def draw_scenario(seed: int) -> Scenario:
    """Return the scenario of a seed."""
    draw = Draw(seed)
    participants = draw.one_of((2, 2, 3, 3, 3, 4, 5, 6, 8, 12))
    writes = _writes(draw, participants)
    span_ms = max(writes[-1].at_ms + MINUTE_MS, 2 * MINUTE_MS)
    store = _store(draw) if draw.chance(0.6) else None
    kinds = _Faults(draw, participants, span_ms, has_store=store is not None)
    faults = tuple(sorted(kinds.some(), key=lambda fault: fault.at_ms))
    parameters = _parameters(draw)
    if draw.chance(0.25) and (latecomer := kinds.latecomer()):
        # Much is missing at once, and little of it fits (lab_tests/sim/regressions.py).
        faults = tuple(sorted((*faults, latecomer), key=lambda fault: fault.at_ms))
        parameters = replace(parameters, repair_buffer_size=draw.one_of((20, 4, 4)))
    if draw.chance(0.1):
        # What is lost for long is referred to no more: logs may differ, but not in silence. Of an
        # archived log a restart compares the window alone.
        parameters = replace(
            parameters,
            causal_history_size=draw.one_of((1, 3, 10)),
            log_window_entries=Parameters().log_window_entries,
        )
    if any(isinstance(fault, Hostile) for fault in faults):
        # Cycles that do not fit the buffer come, make room and come again for as long as Store has
        # them (seed 30093 before this line).
        parameters = replace(parameters, incoming_messages=Parameters().incoming_messages)
    scenario = Scenario(
        seed,
        participants,
        writes,
        faults,
        _conditions(draw),
        store,
        parameters,
        commit_ms=draw.one_of((0, 3, 50, 2_000)),
        durable=draw.some_of(range(participants), 0, participants),
        publish_ms=draw.one_of((PUBLISH_MS, PUBLISH_MS, PUBLISH_MS, SECOND_MS)),
    )
    # Drawn apart, so that what else a seed draws stays what it is.
    apart = Draw(seed, "applications")
    kills = _kills(apart, scenario, span_ms) if apart.chance(0.4) else ()
    faults = tuple(sorted((*faults, *kills), key=lambda fault: fault.at_ms))
    habits = _habits(apart, scenario)
    if not habits.payload_bytes:
        # Messages of 2 kB and more are kept as differences: few words would never be.
        longest = Draw(seed, "payloads").one_of((0, 0, 0, 0, 4_000, 20_000))
        habits = replace(habits, payload_bytes=longest)
    return replace(scenario, faults=faults, habits=habits)


def big_group(seed: int, participants: int, messages: int) -> Scenario:
    """Return the scenario of a large group with mild loss, to measure the cost of its size."""
    draw = Draw(seed)
    writes = tuple(
        Write(number * 2 * SECOND_MS + draw.below(SECOND_MS), draw.below(participants))
        for number in range(messages)
    )
    return Scenario(
        seed,
        participants,
        writes,
        conditions=Conditions(Latency(20, 800, 3), loss=0.01),
        parameters=Parameters(bloom_capacity=10_000),
    )


def _writes(draw: Draw, participants: int) -> tuple[Write, ...]:
    """The talk of a run: in bursts, in turns, or now and then."""
    pauses = draw.one_of(
        (
            (0, 5, 150, 2 * SECOND_MS),
            (200, 2 * SECOND_MS, 40 * SECOND_MS),
            (0, 150, 2 * SECOND_MS, 40 * SECOND_MS, 7 * MINUTE_MS),
        )
    )
    talkers = draw.some_of(range(participants), 1, participants)
    at_ms, writes = draw.below(SECOND_MS), []
    for _ in range(draw.one_of((3, 8, 20, 40, 80))):
        writes.append(Write(at_ms, draw.one_of(talkers)))
        at_ms += draw.one_of(pauses)
    return tuple(writes)


def _conditions(draw: Draw) -> Conditions:
    latency = draw.one_of(
        (Latency(20, 300), Latency(1, 1_000), Latency(50, 20_000, 4), Latency(1, 60_000, 2))
    )
    loss = draw.one_of((0.0, 0.0, 0.02, 0.1, 0.3, 0.6, 0.9))
    return Conditions(latency, loss, draw.one_of((0.0, 0.0, 0.2, 0.8)))


def _store(draw: Draw) -> StoreConditions:
    answer = draw.one_of((Latency(20, 200), Latency(20, 200), Latency(500, 30_000, 2)))
    return StoreConditions(
        answer, loss=draw.one_of((0.0, 0.0, 0.1, 0.5)), lies=draw.one_of((0.0, 0.0, 0.0, 0.3, 0.9))
    )


def _parameters(draw: Draw) -> Parameters:
    return Parameters(
        bloom_capacity=draw.one_of((1_000, 1_000, 200, 20)),
        retry_interval_ms=draw.one_of((30_000, 30_000, 5_000)),
        max_retry_attempts=draw.one_of((10, 10, 2, 0)),
        sync_min_interval_ms=draw.one_of((30_000, 30_000, 10_000)),
        timeout_for_lost_messages_ms=draw.one_of((300_000, 300_000, 60_000)),
        incoming_messages=draw.one_of((10_000, 10_000, 20, 4)),
        log_window_entries=draw.one_of((20_000, 20_000, 8)),
        repair_buffer_size=draw.one_of((1_000, 1_000, 20, 4)),
    )


def _kills(draw: Draw, scenario: Scenario, span_ms: int) -> Iterator[Fault]:
    """Processes with a state that die several times, and are back soon."""
    busy = {fault.who for fault in scenario.faults if isinstance(fault, Crash | Join | Leave)}
    free = [who for who in scenario.durable if who not in busy]
    for who in draw.some_of(free, 1, 2):
        for _ in range(draw.between(1, 4)):
            at_ms = draw.below(span_ms)
            yield Crash(at_ms, at_ms + draw.one_of((100, SECOND_MS, 5 * SECOND_MS)), who)


def _habits(draw: Draw, scenario: Scenario) -> Habits:
    """What applications do, and have their channels do."""
    writes = len(scenario.writes)
    has_jumps = any(isinstance(fault, ClockJump) and fault.at_ms for fault in scenario.faults)
    habits = Habits(
        repeats=draw.one_of((0.0, 0.2, 1.0)),
        reading_ms=draw.one_of((0, 50, 2 * SECOND_MS, 30 * SECOND_MS)),
        confirms=draw.one_of((1.0, 0.9, 0.5, 0.0)),
        confirm_interval_ms=draw.one_of((0, 0, 10 * SECOND_MS, MINUTE_MS)),
    )
    # Messages refer to the newest 200: what a group writes at once should not be more.
    if draw.chance(0.3) and (most := min(12, MAX_SEGMENTS // writes)) > 1:
        size = draw.one_of((200, 1_000))
        habits = replace(
            habits,
            payload_bytes=most * size // 3,
            segmentation=draw.one_of(("nim-segmentation", "lip-243-v0.1")),
            segment_bytes=size,
        )
    # The epochs of a clock that jumps are not those of the network.
    if draw.chance(0.15) and not has_jumps:
        budget, epoch_s = draw.one_of(((10, 10), (20, 60), (100, 600)))
        habits = replace(habits, budget=budget, epoch_s=epoch_s)
    return habits


class _Faults:
    """Faults of a few kinds, all over before the scenario's end."""

    def __init__(self, draw: Draw, participants: int, span_ms: int, *, has_store: bool) -> None:
        self._draw = draw
        self._everybody = range(participants)
        self._span_ms = span_ms
        self._free = list(self._everybody)
        """Participants that may still come late, go or die: each does one of these."""
        self._kinds: list[Callable[[], Iterator[Fault]]] = [
            self._partitions,
            self._outages,
            self._clocks,
            self._crashes,
            self._comings_and_goings,
            self._attacks,
        ]
        if has_store:
            self._kinds.append(self._store_away)

    def some(self) -> Iterator[Fault]:
        for kind in self._draw.some_of(self._kinds, 0, 3):
            yield from kind()

    def _period(self) -> tuple[int, int]:
        at_ms = self._draw.below(self._span_ms)
        lasts_ms = self._draw.one_of((SECOND_MS, 30 * SECOND_MS, 4 * MINUTE_MS, 20 * MINUTE_MS))
        return at_ms, at_ms + lasts_ms

    def _partitions(self) -> Iterator[Fault]:
        for _ in range(self._draw.between(1, 3)):
            island = self._draw.some_of(self._everybody, 1, len(self._everybody) - 1)
            direction = self._draw.one_of(("both", "both", "in", "out"))
            yield Partition(*self._period(), island, direction)  # type: ignore[arg-type]

    def _outages(self) -> Iterator[Fault]:
        for who in self._draw.some_of(self._everybody, 1, 3):
            yield Outage(*self._period(), who)

    def _store_away(self) -> Iterator[Fault]:
        yield StoreAway(*self._period())

    def _clocks(self) -> Iterator[Fault]:
        for who in self._draw.some_of(self._everybody, 1, 4):
            by_ms = self._draw.one_of((SECOND_MS, 25 * SECOND_MS, 10 * MINUTE_MS, 3 * HOUR_MS))
            sign = self._draw.one_of((1, -1))
            at_ms = 0 if self._draw.chance(0.5) else self._draw.below(self._span_ms)
            yield ClockJump(at_ms, who, sign * by_ms)

    def _crashes(self) -> Iterator[Fault]:
        for who in self._take(3):
            for at_ms in sorted(self._draw.below(self._span_ms) for _ in range(2)):
                down_ms = self._draw.one_of((100, 5 * SECOND_MS, 10 * MINUTE_MS))
                yield Crash(at_ms, at_ms + down_ms, who)

    def _comings_and_goings(self) -> Iterator[Fault]:
        for who in self._take(3):
            at_ms = self._draw.below(self._span_ms)
            yield Join(at_ms, who) if self._draw.chance(0.5) else Leave(at_ms, who)

    def latecomer(self) -> Join | None:
        """One participant that joins when nearly all is written, if one is free."""
        taken = self._take(1)
        at_ms = self._span_ms - self._draw.below(self._span_ms // 4)
        return Join(at_ms, taken[0]) if taken else None

    def _attacks(self) -> Iterator[Fault]:
        for attack in self._draw.some_of(ATTACKS, 1, 3):
            at_ms = self._draw.below(self._span_ms)
            yield Hostile(at_ms, attack, self._draw.one_of((1, 3, 20)))

    def _take(self, most: int) -> tuple[int, ...]:
        """Some participants that are free; one always stays."""
        taken = self._draw.some_of(self._free, 1, min(most, len(self._everybody) - 1))
        taken = taken[: max(0, len(self._free) - 1)]
        self._free = [who for who in self._free if who not in taken]
        return taken
