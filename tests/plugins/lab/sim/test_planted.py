import pytest

from .planted import PLANTS, caught_by

SEEDS_ENOUGH = 40


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_defect_is_caught(name: str) -> None:
    assert any(caught_by(name, seed) for seed in range(1, SEEDS_ENOUGH + 1))
