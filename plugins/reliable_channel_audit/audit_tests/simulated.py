"""Runs of the simulator with journals, in which the network is unkind and no promise is broken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from reliable_channel_lab.journals import journals_in
from reliable_channel_lab.sim import Scenario, Simulation, draw_scenario
from reliable_channel_lab.sim.scenario import ClockJump, Crash, Hostile, Latency, Leave, Parameters

from .oracle import Ledger

SETTLE_MS: Final = 60_000
"""A retry takes half a minute, and a group stays two minutes after it is quiet."""
MAX_LOSS: Final = 0.3
MAX_LATENCY_MS: Final = 2_000


def kind_scenario(seed: int) -> Scenario:
    """The scenario of a seed without what breaks a promise in truth.

    These are attacks, clocks that are wrong, Stores that lie, buffers for four messages,
    participants that lose their state, networks that lose all but a tenth, and participants that
    leave for ever where there is no Store: what no other had by then is lost (seed 303).
    """
    drawn = draw_scenario(seed)
    unkind = Hostile | ClockJump if drawn.store else Hostile | ClockJump | Leave
    faults = tuple(each for each in drawn.faults if not isinstance(each, unkind))
    killed = {each.who for each in faults if isinstance(each, Crash)}
    latency, loss = drawn.conditions.latency, drawn.conditions.loss
    slowest_ms = min(latency.max_ms, MAX_LATENCY_MS)
    return replace(
        drawn,
        faults=faults,
        durable=tuple(sorted({*drawn.durable, *killed})),
        conditions=replace(
            drawn.conditions,
            latency=Latency(min(latency.min_ms, slowest_ms), slowest_ms, latency.skew),
            loss=min(loss, MAX_LOSS),
        ),
        store=drawn.store and replace(drawn.store, lies=0.0),
        parameters=Parameters(bloom_capacity=drawn.parameters.bloom_capacity),
        habits=replace(drawn.habits, segmentation="none", payload_bytes=0, budget=0),
    )


def run(seed: int, directory: Path) -> Ledger:
    """Run the scenario of a seed with journals, and return what is true of it."""
    scenario = kind_scenario(seed)
    simulation = Simulation(scenario, journals=journals_in(directory, scenario))
    result = simulation.run()
    assert result.violation is None, result.violation
    return Ledger.of_run(simulation, SETTLE_MS)
