"""Seeded simulation of whole groups in virtual time: the real core over a faulty network.

One seed decides everything, so that every failure can be repeated.
"""

from .drawing import big_group, draw_scenario
from .running import cores, run_all, spread
from .scenario import Scenario
from .shrinking import shrink
from .simulation import Result, Simulation, Violation

__all__ = [
    "Result",
    "Scenario",
    "Simulation",
    "Violation",
    "big_group",
    "cores",
    "draw_scenario",
    "run_all",
    "shrink",
    "spread",
]
