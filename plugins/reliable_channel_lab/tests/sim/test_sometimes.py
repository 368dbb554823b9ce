"""The list of situations is that of the docs, and a run names those that it came to."""

import re
from pathlib import Path

from reliable_channel_lab.sim import Simulation, draw_scenario
from reliable_channel_lab.sim.sometimes import SITUATIONS, never

PAGE = Path(__file__).parents[4] / "docs" / "simulation.md"


def _documented() -> set[str]:
    section = PAGE.read_text().split("## Situations")[1].split("## ")[0]
    found = set()
    for line in section.splitlines():
        if line.startswith("| ") and not line.startswith("| kind"):
            kind, names = line.strip("| ").split(" | ")
            prefix = "" if kind == "other" else kind.strip("`") + " "
            found |= {prefix + name for name in re.findall(r"`([^`]+)`", names)}
    return found


def test_the_docs_list_every_situation() -> None:
    assert _documented() == SITUATIONS


def test_a_run_names_the_situations_that_it_came_to() -> None:
    reached = Simulation(draw_scenario(5)).run().reached
    assert "outcome: parked" in reached
    assert reached <= SITUATIONS


def test_what_no_run_came_to_is_named() -> None:
    every = sorted(SITUATIONS)
    assert never([every[:10], every[9:]]) == []
    assert never([every[1:], every[2:]]) == [every[0]]
