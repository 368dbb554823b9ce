"""A sample of all defects: `make mutation` is the whole."""

import os
import subprocess
import sys

import pytest

SAMPLE = 40
SEED = os.environ.get("MUTATION_SEED", "1")
MIN_PERCENT = 50
"""Of fresh samples of 100 defects 93 % in sds (seed 241127) and 91 % in engine (seed 241126) are
killed; the goal is 90. A sample of 40 may be off by 15."""


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_the_core_s_tests_notice_planted_defects() -> None:
    command = [sys.executable, "-m", "tests.mutation", "--sample", str(SAMPLE), "--seed", SEED]
    done = subprocess.run(
        [*command, "--at-least", str(MIN_PERCENT)], capture_output=True, text=True, check=False
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
