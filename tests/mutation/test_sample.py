"""A sample of all defects: `make mutation` is the whole."""

import os
import subprocess
import sys

import pytest

SAMPLE = 40
SEED = os.environ.get("MUTATION_SEED", "1")
MIN_PERCENT = 50
"""Of fresh samples 87 % of 100 defects in engine (seed 241103) and 84 % of 120 in sds (seed 241102)
are killed; the goal is 90. A sample may be off by 15."""


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_the_core_s_tests_notice_planted_defects() -> None:
    command = [sys.executable, "-m", "tests.mutation", "--sample", str(SAMPLE), "--seed", SEED]
    done = subprocess.run(
        [*command, "--at-least", str(MIN_PERCENT)], capture_output=True, text=True, check=False
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
