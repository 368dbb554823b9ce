"""Both event loops, in virtual time: waits of hours take no time."""

from collections.abc import Iterator

import pytest

from tests.virtual_time import Backend, backend, threads


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    with threads.counted():
        yield backend(request.param)


@pytest.fixture
def virtual_time() -> None:
    """Marks a test that waits for hours: it runs on trio alone, which jumps faster."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if not _waits_long(item)]


def _waits_long(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    virtual = "virtual_time" in getattr(item, "fixturenames", ())
    return virtual and callspec is not None and callspec.params.get("anyio_backend") == "asyncio"
