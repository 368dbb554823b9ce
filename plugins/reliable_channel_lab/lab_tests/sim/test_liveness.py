"""Groups of which only a majority heals."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reliable_channel_lab.sim import Scenario, Simulation, draw_scenario
from reliable_channel_lab.sim.liveness import PROGRESS, draw_liveness
from reliable_channel_lab.sim.scenario import (
    FOREVER_MS,
    Fault,
    Leave,
    Outage,
    Partition,
    StoreAway,
    Write,
)

from .planted import OF_LIVENESS, PLANTS

ALICE, BOB, CAROL = range(3)
SECOND = 1_000


def lasting(scenario: Scenario) -> Sequence[Fault]:
    return [f for f in scenario.faults if getattr(f, "until_ms", 0) == FOREVER_MS]


@pytest.mark.parametrize("seed", [1, 2, 5])  # `make sim` has these and 27 more
def test_a_majority_makes_progress(seed: int) -> None:
    result = Simulation(draw_liveness(seed)).run()
    assert result.violation is None, f"seed {seed}: {result.violation}"


def test_most_of_those_that_are_there_heal_and_something_does_not() -> None:
    kinds = set[str]()
    for seed in range(1, 80):
        scenario, plain = draw_liveness(seed), draw_scenario(seed)
        gone = {fault.who for fault in scenario.faults if isinstance(fault, Leave)}
        present = set(range(scenario.participants)) - gone
        assert set(scenario.majority) <= present
        assert 2 * len(scenario.majority) > len(present)
        outside = present - set(scenario.majority)
        for fault in lasting(scenario):
            match fault:
                case Partition():
                    assert set(fault.island) == outside
                    kinds.add(fault.direction)
                case Outage():
                    assert fault.who in outside
                    kinds.add("outage")
                case StoreAway():
                    assert scenario.store is not None
                    kinds.add("store")
        assert scenario.writes == plain.writes
        assert set(plain.faults) <= set(scenario.faults)
        assert scenario.faults_end_ms >= plain.faults_end_ms
        assert scenario.faults_end_ms < FOREVER_MS
        assert Scenario.from_json(scenario.to_json()) == scenario
    assert kinds == {"both", "in", "out", "outage", "store"}


DEAF = Scenario(
    1,
    3,
    tuple(Write(n * 5 * SECOND, n % 3) for n in range(9)),
    (Partition(10 * SECOND, FOREVER_MS, (CAROL,), "in"), StoreAway(0, FOREVER_MS)),
    majority=(ALICE, BOB),
)


def test_a_participant_that_hears_nothing_does_not_hold_up_the_others() -> None:
    lines: list[str] = []
    result = Simulation(DEAF, show=lines.append).run()
    assert result.violation is None, result.violation
    assert result.settled_after_ms < 60 * SECOND
    assert sum("p2 delivers" in line for line in lines) < sum(
        "p0 delivers" in line for line in lines
    )


def test_a_group_of_which_all_must_agree_would_not_end() -> None:
    demanding = replace(DEAF, majority=(ALICE, BOB, CAROL), settle_within_ms=600 * SECOND)
    violation = Simulation(demanding).run().violation
    assert violation is not None
    assert violation.invariant == PROGRESS
    assert "p2 lacks" in violation.detail


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(OF_LIVENESS))
def test_a_planted_defect_is_seen_in_this_mode_alone(name: str) -> None:
    with PLANTS[name]():
        ordinary = [Simulation(draw_scenario(seed)).run().violation for seed in range(1, 31)]
        assert ordinary == [None] * 30
        runs = (Simulation(draw_liveness(seed)).run().violation for seed in range(1, 31))
        assert any(violation.invariant == PROGRESS for violation in runs if violation)
