"""A sample of all defects: `make mutation` is the whole."""

import os
import subprocess
import sys

import pytest

SAMPLE = 40
SEED = os.environ.get("MUTATION_SEED", "1")
AT_LEAST_PERCENT = 80
"""All in all it is 90; a sample of this size may differ by as much."""


@pytest.mark.slow
def test_the_core_s_tests_notice_planted_defects() -> None:
    command = [sys.executable, "-m", "tests.mutation", "--sample", str(SAMPLE), "--seed", SEED]
    done = subprocess.run(
        [*command, "--at-least", str(AT_LEAST_PERCENT)], capture_output=True, text=True, check=False
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
