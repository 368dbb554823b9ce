"""Both event loops in virtual time, and participants that can be killed."""

from collections.abc import AsyncIterator

import pytest

from pytest_reliable_channel.channels import Channels
from tests.channel.conftest import anyio_backend, pytest_collection_modifyitems, virtual_time

__all__ = ["anyio_backend", "pytest_collection_modifyitems", "virtual_time"]


@pytest.fixture
async def channels() -> AsyncIterator[Channels]:
    async with Channels() as found:
        yield found
