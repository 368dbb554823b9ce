"""No test loads what happens to be installed, and no time limit decides a result; the same holds
for the processes that tests start."""

import gc
import os

from hypothesis import HealthCheck, settings

from reliable_channel.sds import states

os.environ["RELIABLE_CHANNEL_PLUGINS"] = "none"
os.environ["RELIABLE_CHANNEL_TEST_PATIENCE_S"] = "600"

settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

states.check_transitions = True


def pytest_collection_finish() -> None:
    """Keep the garbage collector from what was collected: each of its full passes would walk
    through all tests and modules, for a third of a second, and tests cause hundreds of passes."""
    gc.collect()
    gc.freeze()
