"""Liveness mode, in which only a majority is reconnected and must make progress.

In the ordinary mode all faults end, so no group ever waits for something that is lost. In this mode
a minority stays cut off, in one direction or both, and Store may stay away.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from reliable_channel.sds import RepairOptions

from .drawing import draw_scenario
from .invariants import Watched
from .ledger import InvariantViolated, Ledger
from .scenario import (
    FOREVER_MS,
    Fault,
    Leave,
    Outage,
    Parameters,
    Partition,
    Scenario,
    StoreAway,
)
from .timeline import Timeline

PROGRESS: Final = "a majority that is healed makes progress"
LEAST_PARTICIPANTS: Final = 3
ROUNDS: Final = 3
"""Number of messages that each participant writes after the majority is reconnected."""
PAUSE_MS: Final = 5_000
"""Pause between two messages of a participant after the majority is reconnected."""
LOOK_EVERY_MS: Final = 5_000


def draw_liveness(seed: int) -> Scenario:
    """Return the scenario of a seed in which only a majority is reconnected.

    The mode has random numbers of its own, so the ordinary scenario of the seed stays the same.
    Messages refer to all earlier messages, because fewer references do not promise equal logs.
    """
    scenario, random = draw_scenario(seed), Random(f"{seed} liveness")
    count = max(LEAST_PARTICIPANTS, scenario.participants)
    gone = {fault.who for fault in scenario.faults if isinstance(fault, Leave)}
    present = [who for who in range(count) if who not in gone]
    outside = random.sample(present, random.randint(0, (len(present) - 1) // 2))
    at_ms = random.randrange(max(1, scenario.faults_end_ms))
    lasting = list(_lasting(at_ms, tuple(sorted(outside)), random))
    if scenario.store is not None and (not outside or random.random() < 0.5):
        lasting.append(StoreAway(at_ms, FOREVER_MS))
    parameters = replace(scenario.parameters, causal_history_size=Parameters().causal_history_size)
    return replace(
        scenario,
        participants=count,
        faults=tuple(sorted((*scenario.faults, *lasting), key=lambda fault: fault.at_ms)),
        parameters=parameters,
        majority=tuple(who for who in present if who not in outside),
    )


def _lasting(at_ms: int, outside: tuple[int, ...], random: Random) -> Iterator[Fault]:
    """What keeps participants out of the majority: it does not hear them, or they do not hear it,
    or neither; or their own nodes are away."""
    kind = random.choice(("both", "in", "out", "outage"))
    if kind == "outage":
        yield from (Outage(at_ms, FOREVER_MS, who) for who in outside)
    elif outside:
        yield Partition(at_ms, FOREVER_MS, outside, kind)  # type: ignore[arg-type]


class Majority:
    """Participants that are reconnected, and the checks of their progress."""

    def __init__(
        self,
        scenario: Scenario,
        participants: Sequence[Watched],
        timeline: Timeline,
        ledger: Ledger,
    ) -> None:
        self._scenario, self._timeline, self._ledger = scenario, timeline, ledger
        self._everybody = participants
        self._members = [participants[number] for number in scenario.majority]

    def demand_progress(self, check: Callable[[], None]) -> int:
        """Let all participants write messages, and wait until the majority has each other's
        messages.

        `check` compares whole message logs. `demand_progress` returns the duration (ms).

        Raises:
            InvariantViolated: it took longer than it may.
        """
        self._write()
        check()
        due = {message_id for member in self._members for message_id in member.watch.window}
        began_ms = self._timeline.now_ms
        while behind := self._behind(due):
            if self._timeline.now_ms - began_ms > self._within_ms:
                minutes = self._within_ms // 60_000
                detail = f"not within {minutes} minutes: {'; '.join(behind[:20])}"
                raise InvariantViolated(PROGRESS, "all", self._ledger.now_ms(), "", detail)
            self._run(LOOK_EVERY_MS)
        check()
        return self._timeline.now_ms - began_ms

    def _write(self) -> None:
        for _ in range(ROUNDS):
            for participant in self._everybody:
                if participant.process is not None:
                    participant.write()
                self._run(PAUSE_MS)

    def _behind(self, due: set[str]) -> list[str]:
        """Members that lack a message that is due, or wait for an acknowledgement; and why."""
        behind = []
        for member in self._members:
            core = member.core
            assert core is not None, f"{member.name} is healed, and not there"
            lacks, waits = due.difference(member.watch.window), core.outgoing_buffer.entries
            if lacks or waits:
                behind.append(
                    f"{member.name} lacks {len(lacks)} of {len(due)} messages"
                    + (f", such as {min(lacks)}" if lacks else "")
                    + f", unacknowledged {len(waits)}"
                )
        return behind

    @property
    def _within_ms(self) -> int:
        """More where few can be asked for at once: a round of repairs is T_max to ask and T_max to
        be answered. A rate limit doubles it."""
        scenario = self._scenario
        rounds = len(self._ledger) // scenario.parameters.repair_buffer_size
        within_ms = scenario.settle_within_ms + rounds * 2 * RepairOptions().t_max_ms
        return 2 * within_ms if scenario.habits.budget else within_ms

    def _run(self, duration_ms: int) -> None:
        self._timeline.run_until(self._timeline.now_ms + duration_ms)
