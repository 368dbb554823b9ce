"""Whole groups of which all or some participants tune themselves."""

import json

import pytest

from reliable_channel_lab.commands import compare
from reliable_channel_lab.sim import Simulation, draw_scenario
from reliable_channel_lab.sim.comparison import run_cell, self_tuning
from reliable_channel_lab.sim.figures import to_json_line
from reliable_channel_lab.sim.scenario import Attack, Hostile, Scenario
from reliable_channel_lab.sim.self_tuning import draw_self_tuning
from tests.slow import long, slow


@pytest.mark.parametrize("seed", [2, *range(5, 9), *slow(1, 4), *long(3)])
def test_a_seed_keeps_every_promise(seed: int) -> None:
    result = Simulation(draw_self_tuning(seed)).run()
    assert result.violation is None, f"seed {seed}: {result.violation}"


# 58 and 100: a participant with fixed times lacks what nobody refers to any more, unless those
# who tune themselves keep the documented history for it. 105: messages of a bundle that refer to
# each other came in one step, in which an archive does not know the ones before. 24910012: a
# message of a bundle that was evicted while parked enters the filter again. 24920002: a message
# that a sync alone had named before a restart was no head. 24920142: with state the judge hears
# of a bundle's message after those that the core took later. 24920526: a judge did not read
# compressed bundles. 24920559: a message of a bundle was parked and evicted in one step.
# 24921025: a participant that asked on and on kept all others from sending syncs. 31002156: a
# payload that was dropped, with a segment that came late, is whole after a restart. 33003064: a
# message that was evicted while parked, and never came again, counted as referring to others.
# 33005784: syncs through a slow node kept all repetitions and repairs waiting. 33006910: the
# only one to have a message never had its turn to speak, among participants that wait less.
# 34002396: two rested for more than an hour in a network that was good again. 34004811: a forged
# sync from far ahead made all true ones count as overtaken. 34006003: after its clock was set
# one forgot that others wait longer. 35001063: those who had not heard one that waits longer
# never let it speak. 37000543: the judge did not know that a message can be lost twice.
# 37005891: a message made before a restart went out after it, with the filter of before.
# 37007119: one that was counted in an epoch went out in the next one, and then came a restart.
# 37009748: a clock was set back, and a message went out twice in one and the same envelope.
@pytest.mark.parametrize(
    "seed",
    [
        *slow(58, 100, 24910012, 24920142, 24920526, 24920559, 24921025, 31002156),
        *slow(33003064, 33005784, 33006910, 34002396, 34004811, 35001063),
        *slow(37005891, 37007119, 37009748),
        *long(105, 24920002, 34006003, 37000543),
    ],
)
def test_what_was_found_stays_mended(seed: int) -> None:
    result = Simulation(draw_self_tuning(seed)).run()
    assert result.violation is None, f"seed {seed}: {result.violation}"


def test_all_or_some_tune_themselves_and_the_rest_of_a_seed_stays_as_it_is() -> None:
    shares = set()
    for seed in range(1, 40):
        scenario, plain = draw_self_tuning(seed), draw_scenario(seed)
        shares.add(len(scenario.self_tuning) == scenario.participants)
        assert scenario.self_tuning
        assert scenario.writes == plain.writes
        assert set(plain.faults) <= set(scenario.faults)
        assert Scenario.from_json(scenario.to_json()) == scenario
    assert shares == {True, False}


def test_false_differences_are_among_the_attacks() -> None:
    attacks = {
        fault.attack
        for seed in range(1, 60)
        for fault in draw_self_tuning(seed).faults
        if isinstance(fault, Hostile)
    }
    assert Attack.FALSE_DIFFERENCE in attacks


def test_a_run_of_auto_is_an_object_with_what_the_goals_are_written_in() -> None:
    cell = next(self_tuning(range(1, 2)))
    assert {each.variant for each in self_tuning(range(1, 2))} == {"auto", "auto, Store"}
    found = json.loads(to_json_line(run_cell(cell, compare._make)))
    assert found["delivered"] == found["due"]
    assert found["variant"] == "auto"
    assert found["latency_p95_ms"] < found["latency_p99_ms"] < 5_000
    assert found["acknowledged_p95_ms"] < 10_000
    assert found["bytes_per_message"] < 5_000
    assert found["broadcasts_per_message"] < 10
    assert found["idle_bytes_per_hour"] < 200_000
    assert (found["scenario"], found["participants"]) == ("1:1", 2)
