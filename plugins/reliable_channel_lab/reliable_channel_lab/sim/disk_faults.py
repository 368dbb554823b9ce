"""Disk faults, which are added to the scenario of a seed.

Disk faults have random numbers of their own, so that the scenario of a seed stays the same.
"""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Final

from .drawing import MINUTE_MS, SECOND_MS, draw_scenario
from .scenario import Crash, Damage, DiskDamage, DiskFull, Join, Leave, Scenario

_LOST_WRITES: Final = (1, 3, 30, 10_000)
"""From the last transaction to all of them."""


def draw_disk_faults(seed: int) -> Scenario:
    """Return the scenario of a seed with disk faults added."""
    scenario, random = draw_scenario(seed), Random(f"{seed} disks")
    busy = {f.who for f in scenario.faults if isinstance(f, Crash | Join | Leave)}
    free = [who for who in range(scenario.participants) if who not in busy]
    victims = random.sample(free, min(len(free), random.choice((1, 1, 2, 3))))
    faults = [fault for who in victims for fault in _of(who, scenario.faults_end_ms, random)]
    return replace(
        scenario,
        faults=tuple(sorted((*scenario.faults, *faults), key=lambda fault: fault.at_ms)),
        durable=tuple(sorted({*scenario.durable, *victims})),
    )


def _of(who: int, end_ms: int, random: Random) -> Iterator[DiskDamage | DiskFull]:
    """One kind of fault, or a disk that is damaged while it is full."""
    kinds = random.choice((("damage",), ("damage", "damage"), ("full",), ("full", "damage")))
    at_ms = 0
    for kind in kinds:
        at_ms += random.randrange(max(1, end_ms // len(kinds)))
        until_ms = at_ms + random.choice((SECOND_MS, 30 * SECOND_MS, 5 * MINUTE_MS))
        if kind == "full":
            yield DiskFull(at_ms, until_ms, who)
            continue
        damage = random.choice((Damage.LOST_WRITES, Damage.LOST_WRITES, Damage.UNREADABLE))
        yield DiskDamage(at_ms, until_ms, who, damage, random.choice(_LOST_WRITES))
        at_ms = until_ms + 1
