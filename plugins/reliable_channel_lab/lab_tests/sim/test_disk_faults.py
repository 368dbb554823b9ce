"""Groups whose disks fail: what a state may lose is found and made up for, the rest is kept."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from reliable_channel_lab.sim import Scenario, Simulation
from reliable_channel_lab.sim.disk_faults import draw_disk_faults
from reliable_channel_lab.sim.scenario import Damage, DiskDamage, DiskFull, Write

ALICE, BOB = 0, 1
SECOND = 1_000


def played(scenario: Scenario) -> list[str]:
    """The trace of a run in which every promise was kept."""
    lines: list[str] = []
    result = Simulation(scenario, show=lines.append).run()
    assert result.violation is None, result.violation
    return lines


def count(pattern: str, lines: list[str]) -> int:
    return sum(bool(re.search(pattern, line)) for line in lines)


PAIR = Scenario(
    1, 2, tuple(Write(n * 5 * SECOND, n % 2) for n in range(20)), durable=(ALICE,), store=None
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(9_100_000, 9_100_030))
def test_a_group_whose_disks_fail_ends_with_equal_logs(seed: int) -> None:
    result = Simulation(draw_disk_faults(seed)).run()
    assert result.violation is None, f"{result.violation}\n{result.scenario.to_json()}"


@pytest.mark.parametrize("writes", [1, 5, 10_000])
def test_a_state_that_lost_writes_is_said_to_be_older(writes: int) -> None:
    damage = DiskDamage(52 * SECOND, 61 * SECOND, ALICE, Damage.LOST_WRITES, writes)
    lines = played(replace(PAIR, faults=(damage,)))
    assert count("finds an older state", lines) == 1


def test_a_state_that_cannot_be_read_is_left_behind() -> None:
    damage = DiskDamage(52 * SECOND, 61 * SECOND, ALICE, Damage.UNREADABLE)
    lines = played(replace(PAIR, faults=(damage,)))
    assert count("starts without its state", lines) == 1


@pytest.mark.parametrize("commit_ms", [0, 50, 2_000])
def test_while_a_disk_is_full_sending_is_refused_and_receiving_goes_on(commit_ms: int) -> None:
    full = DiskFull(43 * SECOND, 72 * SECOND, ALICE)
    lines = played(replace(PAIR, faults=(full,), commit_ms=commit_ms))
    assert count("p0 is refused", lines) == 3
    first, last = (next(n for n, line in enumerate(lines) if w in line) for w in ("full", "usable"))
    assert count("p0 delivers", lines[first:last]) > 1


def test_what_is_at_risk_when_a_process_dies_comes_from_others() -> None:
    full = DiskFull(41 * SECOND, 90 * SECOND, ALICE)
    died = DiskDamage(72 * SECOND, 80 * SECOND, ALICE, Damage.LOST_WRITES, 0)
    lines = played(replace(PAIR, faults=(full, died)))
    assert count("finds an older state", lines) == 1


def test_faults_of_disks_are_in_the_json() -> None:
    for seed in range(9_100_000, 9_100_010):
        scenario = draw_disk_faults(seed)
        assert Scenario.from_json(scenario.to_json()) == scenario
