"""No test loads what happens to be installed, and no time limit decides a result; the same holds
for the processes that tests start."""

import gc
import os
import sys
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from reliable_channel.sds import states

os.environ["RELIABLE_CHANNEL_PLUGINS"] = "none"
os.environ["RELIABLE_CHANNEL_TEST_PATIENCE_S"] = "600"

settings.register_profile(
    "any machine", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

states.check_transitions = True


gc.set_threshold(20_000)  # tests make much, and little of it in cycles


def pytest_collection_finish() -> None:
    """Before the first test, keep the garbage collector from all tests and modules."""
    _freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """After each file, keep the garbage collector from what pytest leaves of its tests, reports and
    timers: some forty objects a test. Where coverage is measured, it notes the file."""
    if "coverage" in sys.modules and (coverage := sys.modules["coverage"].Coverage.current()):
        coverage.switch_context(item.path.relative_to(item.config.rootpath).as_posix())
    done = yield
    if nextitem is None or nextitem.path != item.path:
        _freeze()
    return done


def pytest_sessionfinish() -> None:
    """Let the interpreter clear all at its end: DuckDB prints what is left of its objects then."""
    gc.unfreeze()


def _freeze() -> None:
    """Keep the garbage collector from all there is now: each of its full passes would walk through
    it, for a third of a second, and tests cause hundreds of passes."""
    gc.collect()
    gc.freeze()
