import pytest

from reliable_channel_lab.sim import Scenario, Simulation

from .regressions import FOUND


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_once_stays_mended(name: str) -> None:
    assert Simulation(Scenario.from_json(FOUND[name])).run().violation is None
