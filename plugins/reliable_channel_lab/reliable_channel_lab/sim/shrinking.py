"""Smaller scenarios that break the same promise (delta debugging, Zeller and Hildebrandt 2002)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from .scenario import (
    PUBLISH_MS,
    Conditions,
    Fault,
    Habits,
    Hostile,
    Latency,
    Parameters,
    Partition,
    Scenario,
    StoreAway,
    StoreConditions,
)
from .simulation import Simulation

MAX_RUNS: Final = 400
"""Maximum number of runs in a search for a smaller scenario. After that many runs, the smallest
scenario found is small enough."""

_HABITS: Final = (
    ("payload_bytes", "segmentation", "segment_bytes"),
    ("repeats",),
    ("reading_ms",),
    ("confirms",),
    ("budget", "epoch_s"),
    ("confirm_interval_ms",),
)
"""Each leaves one thing out that applications do."""

_T = TypeVar("_T")


def shrink(
    scenario: Scenario,
    invariant: str,
    *,
    breaks: Callable[[Scenario], str | None] | None = None,
    max_runs: int = MAX_RUNS,
) -> Scenario:
    """Return the smallest scenario found that breaks `invariant` as `scenario` does. `breaks`
    returns the name of the invariant that a scenario breaks."""
    broken_by = breaks or _broken_by
    found, improved = scenario, True
    while improved:
        improved = False
        for smaller in _smaller(found):
            if max_runs <= 0:
                return found
            max_runs -= 1
            if broken_by(smaller) == invariant:
                found, improved = smaller, True
                break
    return found


def _broken_by(scenario: Scenario) -> str | None:
    violation = Simulation(scenario).run().violation
    return None if violation is None else violation.invariant


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios with less in them, the greatest steps first."""
    for faults in _without_chunks(scenario.faults):
        yield replace(scenario, faults=faults)
    for writes in _without_chunks(scenario.writes):
        yield replace(scenario, writes=writes)
    for who in reversed(range(scenario.participants)):
        if scenario.participants > 1:
            yield _without_participant(scenario, who)
    yield from _plainer(scenario)


def _without_chunks(items: Sequence[_T]) -> Iterator[tuple[_T, ...]]:
    size = len(items)
    while size:
        for start in range(0, len(items), size):
            yield (*items[:start], *items[start + size :])
        size //= 2


def _without_participant(scenario: Scenario, who: int) -> Scenario:
    def renumbered(number: int) -> int:
        return number - (number > who)

    faults: list[Fault] = []
    for fault in scenario.faults:
        if isinstance(fault, Partition):
            island = tuple(renumbered(n) for n in fault.island if n != who)
            faults.append(replace(fault, island=island))
        elif isinstance(fault, StoreAway | Hostile):
            faults.append(fault)
        elif fault.who != who:
            faults.append(replace(fault, who=renumbered(fault.who)))
    return replace(
        scenario,
        participants=scenario.participants - 1,
        writes=tuple(
            replace(write, who=renumbered(write.who))
            for write in scenario.writes
            if write.who != who
        ),
        faults=tuple(faults),
        durable=tuple(renumbered(n) for n in scenario.durable if n != who),
        majority=tuple(renumbered(n) for n in scenario.majority if n != who),
    )


def _plainer(scenario: Scenario) -> Iterator[Scenario]:
    conditions, store = scenario.conditions, scenario.store
    if conditions != Conditions():
        yield replace(scenario, conditions=Conditions())
        for simple in (
            replace(conditions, loss=0.0),
            replace(conditions, duplication=0.0),
            replace(conditions, latency=Latency(20, 300)),
        ):
            if simple != conditions:
                yield replace(scenario, conditions=simple)
    if store is not None:
        yield replace(scenario, store=None)
        if store != StoreConditions():
            yield replace(scenario, store=StoreConditions())
    if scenario.publish_ms != PUBLISH_MS:
        yield replace(scenario, publish_ms=PUBLISH_MS)
    if scenario.habits != Habits():
        yield replace(scenario, habits=Habits())
        plain = Habits()
        for names in _HABITS:
            kept = {name: getattr(plain, name) for name in names}
            if (plainer := replace(scenario.habits, **kept)) != scenario.habits:
                yield replace(scenario, habits=plainer)
    if scenario.parameters != Parameters():
        yield replace(scenario, parameters=Parameters())
