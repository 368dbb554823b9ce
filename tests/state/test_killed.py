"""The process dies at every statement of a scripted run; what was written is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills a forked process")
def test_killed_at_every_write(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "tests.state.scripted", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    kills = re.search(r"(\d+) kills", told.stdout)
    assert kills is not None
    assert int(kills[1]) > 100
