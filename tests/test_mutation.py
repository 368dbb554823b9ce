"""A sample of small defects is noticed (`make hunt WHAT=mutation`: all of them)."""

import os

import pytest

from tests.mutation import noticed


@pytest.mark.long
@pytest.mark.timeout(3_600)  # a guard against hangs; no result depends on it
def test_the_tests_of_the_core_notice_planted_defects() -> None:
    assert noticed(sample=8, seed=int(os.environ.get("MUTATION_SEED", "1")), alone=True) >= 50
