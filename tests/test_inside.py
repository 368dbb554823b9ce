"""How often tests look at private parts of the code: no more often than now."""

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
MOST: Final = 50
"""Lower it with each look that goes. `tests/inside.py` is counted, too."""


def test_private_parts_are_looked_at_no_more_often() -> None:
    ruff = [sys.executable, "-m", "ruff", "check", "--select", "SLF001", "--ignore-noqa"]
    counted = subprocess.run(
        [*ruff, "--output-format", "concise", "."], cwd=ROOT, capture_output=True, text=True
    )
    found = [line for line in counted.stdout.splitlines() if "private-member-access" in line]
    print(f"{len(found)} looks at private parts")
    assert 0 < len(found) <= MOST, "\n".join(found)
