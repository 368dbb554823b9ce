"""A run names the situations that it came to."""

from reliable_channel_lab.sim import Simulation, draw_scenario
from reliable_channel_lab.sim.sometimes import SITUATIONS, never


def test_a_run_names_the_situations_that_it_came_to() -> None:
    reached = Simulation(draw_scenario(5)).run().reached
    assert "outcome: parked" in reached
    assert reached <= SITUATIONS


def test_what_no_run_came_to_is_named() -> None:
    every = sorted(SITUATIONS)
    assert never([every[:10], every[9:]]) == []
    assert never([every[1:], every[2:]]) == [every[0]]
