"""Whole groups, and that a seed decides all of it."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from reliable_channel.sds import SdsOptions
from reliable_channel_lab.sim import Scenario, Simulation, big_group, draw_scenario
from reliable_channel_lab.sim.scenario import Conditions, Parameters, StoreConditions
from reliable_channel_lab.sim.simulation import core_options


@pytest.mark.parametrize("seed", [1, 2])
def test_a_seed_keeps_every_promise(seed: int) -> None:
    result = Simulation(draw_scenario(seed)).run()
    assert result.violation is None, f"seed {seed}: {result.violation}"


@pytest.mark.slow
def test_equal_seeds_are_equal_in_other_processes_with_other_hashes() -> None:
    command = [
        *(sys.executable, "-m", "reliable_channel", "simulate"),
        *("--seeds", "6", "--first-seed", "20", "--jobs", "1", "--digests"),
    ]
    printed = [
        subprocess.run(
            command,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for hash_seed in ("0", "4242")
    ]
    digests = [[line for line in lines if line.startswith("seed ")] for lines in printed]
    assert len(digests[0]) == 6
    assert digests[0] == digests[1]
    assert len(set(digests[0])) == 6


@pytest.mark.parametrize("seed", range(1, 11))
def test_a_scenario_is_read_back_as_it_was_printed(seed: int) -> None:
    scenario = draw_scenario(seed)
    assert Scenario.from_json(scenario.to_json()) == scenario


def test_what_is_no_scenario_is_refused() -> None:
    with pytest.raises(ValueError, match="not a scenario"):
        Scenario.from_json('{"seed": 1, "participants": 2, "weather": "fair"}')


@pytest.mark.parametrize(
    ("wrong", "must_be"),
    [
        ('"parameters":{"bloom_capacity":0}', "`bloom_capacity` must be between 1 and 50000"),
        ('"parameters":{"log_window_entries":0}', "`log_window_entries` must be at least 1"),
        ('"parameters":{"retry_interval_ms":"soon"}', "`retry_interval_ms` must be a whole number"),
        ('"habits":{"segmentation":"thin"}', "`segmentation` must be 'profile', 'none'"),
        ('"habits":{"epoch_s":0}', "`epoch_s` must be at least 1"),
    ],
)
def test_a_scenario_keeps_to_the_bounds_of_the_options(wrong: str, must_be: str) -> None:
    with pytest.raises(ValueError, match=must_be):
        Scenario.from_json(f'{{"seed":1,"participants":2,{wrong}}}')


def test_what_is_not_drawn_is_as_the_core_has_it() -> None:
    assert core_options(Parameters(bloom_capacity=10_000)).limits == SdsOptions().limits
    ours = replace(core_options(Parameters(bloom_capacity=10_000)), repair=SdsOptions().repair)
    assert ours == SdsOptions()


@pytest.mark.parametrize("strategy", ["both", "adaptive", "prompt"])
def test_a_group_needs_no_queries_by_hash(strategy: str) -> None:
    scenario = replace(
        draw_scenario(8),
        store=StoreConditions(refuses_hashes=True),
        conditions=Conditions(loss=0.3),
        faults=(),
        parameters=replace(Parameters(), retrieval_strategy=strategy),
    )
    result = Simulation(scenario).run()
    assert result.violation is None, result.violation


def test_the_seed_of_a_scenario_decides_what_is_drawn_while_it_runs() -> None:
    scenario = big_group(3, 20, 20)
    first, again = Simulation(scenario).run(), Simulation(scenario).run()
    other = Simulation(replace(scenario, seed=4)).run()
    assert first == again
    assert first.violation is other.violation is None
    assert first.digest != other.digest
    assert first.delivered == 19 * 20
