"""Both event loops; on trio time is virtual: waits of hours take no time."""

from typing import Any

import pytest
from trio.testing import MockClock


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    if request.param == "asyncio":
        return "asyncio", {}
    return "trio", {"clock": MockClock(autojump_threshold=0)}


@pytest.fixture
def virtual_time() -> None:
    """Marks a test that waits for minutes: it runs on trio alone, whose clock jumps."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if not _waits_for_real(item)]


def _waits_for_real(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    virtual = "virtual_time" in getattr(item, "fixturenames", ())
    return virtual and callspec is not None and callspec.params.get("anyio_backend") == "asyncio"
