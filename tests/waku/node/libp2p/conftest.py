"""Every test runs on both event loops, in virtual time."""

import pytest

from tests import virtual_time


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> virtual_time.Backend:
    return virtual_time.backend(request.param)
