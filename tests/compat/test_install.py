"""The packages that the official suite pins, and how `docs/compat.md` says to install."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PINNED: Final = {"filelock": (3, 13, 1), "pluggy": (1, 3, 0), "tenacity": (8, 2, 3)}
"""Of `tests-e2e/requirements.txt` of logos-delivery (August 2026)."""


def test_what_cannot_be_solved_together_is_installed_one_after_the_other() -> None:
    """The line that was there ended with ResolutionImpossible."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    least = {
        name: tuple(map(int, version.split(".")))
        for name, version in (line.split(">=") for line in project["dependencies"])
        if name in PINNED
    }
    assert {name for name in PINNED if least[name] > PINNED[name]} == set(PINNED)
    commands = re.findall(r"^pip install (.*)$", (ROOT / "docs/compat.md").read_text(), re.M)
    assert commands == ["-r requirements.txt", '-e "$SDK[node,libp2p]" "filelock<4"']
