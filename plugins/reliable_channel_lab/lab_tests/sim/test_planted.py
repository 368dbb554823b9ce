import pytest

from reliable_channel_lab.sim import Simulation
from tests.slow import long, slow

from .planted import PLANTS, caught_by, drawn, seeds_for

QUICK = ("budget_forgotten", "lost_ack", "retries_do_not_yield")


@pytest.mark.parametrize("name", [*slow(*QUICK), *long(*sorted(PLANTS.keys() - QUICK))])
def test_a_planted_defect_is_caught(name: str) -> None:
    seed = next((seed for seed in seeds_for(name) if caught_by(name, seed)), None)
    assert seed is not None
    assert Simulation(drawn(name, seed)).run().violation is None
