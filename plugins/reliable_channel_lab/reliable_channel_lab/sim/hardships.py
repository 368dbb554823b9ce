"""Hardships of a whole group in a comparison, which are added to the scenario of a cell.

Hardships change neither the messages nor the losses of their copies.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Final

from .scenario import ClockJump, Partition, Scenario

WRONG_BY_MS: Final = 600_000
DEAF_EVERY_MS: Final = 15_000
DEAF_MS: Final = 3_000


def wrong_clocks(scenario: Scenario) -> Scenario:
    """Set the clocks of a third of the participants ten minutes fast, and of a third ten minutes
    slow."""
    by_ms = (WRONG_BY_MS, -WRONG_BY_MS, 0)
    jumps = (ClockJump(0, n, by_ms[n % 3]) for n in range(scenario.participants) if by_ms[n % 3])
    return replace(scenario, faults=(*scenario.faults, *jumps))


def bursts(scenario: Scenario) -> Scenario:
    """Let each participant receive nothing for 3 s of every 15 s, until some time after the last
    message.

    A message sent just before a participant is cut off is still received, because its latency is
    short.
    """
    ends_ms = scenario.writes[-1].at_ms + DEAF_EVERY_MS
    random = Random(f"{scenario.seed} bursts")

    def deaf() -> Iterator[Partition]:
        for number in range(scenario.participants):
            first_ms = int(random.random() * DEAF_EVERY_MS)
            for at_ms in range(first_ms, ends_ms, DEAF_EVERY_MS):
                yield Partition(at_ms, at_ms + DEAF_MS, (number,), "in")

    faults = sorted(deaf(), key=lambda fault: fault.at_ms)
    return replace(scenario, faults=(*scenario.faults, *faults))


HARDSHIPS: Final[Mapping[str, Callable[[Scenario], Scenario]]] = {
    "": lambda scenario: scenario,
    "wrong clocks": wrong_clocks,
    "bursts": bursts,
}
"""Hardships by name, which follows the comma in a scenario's name. The empty name stands for no
hardship."""
