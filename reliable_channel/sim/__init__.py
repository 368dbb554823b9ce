"""Seeded simulation of whole groups in virtual time: the real core over a network that breaks.

One seed decides everything, so that what went wrong once can be seen again.
"""

from .drawing import big_group, draw_scenario
from .running import run_all
from .scenario import Scenario
from .shrinking import shrink
from .simulation import Result, Simulation, Violation

__all__ = [
    "Result",
    "Scenario",
    "Simulation",
    "Violation",
    "big_group",
    "draw_scenario",
    "run_all",
    "shrink",
]
