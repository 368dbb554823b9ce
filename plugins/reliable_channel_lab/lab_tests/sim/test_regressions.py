import pytest

from reliable_channel_lab.sim import Scenario, Simulation
from tests.slow import long, slow

from .regressions import FOUND

LONG = "a restart does not shorten what is compared, auto 57"


@pytest.mark.parametrize("name", [*slow(*sorted(FOUND.keys() - {LONG})), *long(LONG)])
def test_what_was_found_once_stays_mended(name: str) -> None:
    assert Simulation(Scenario.from_json(FOUND[name])).run().violation is None
