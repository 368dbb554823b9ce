"""Fixtures of this pytest plugin. The plugin imports the needed modules when a test uses a
fixture."""

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest

from . import VirtualTime

if TYPE_CHECKING:
    from .channels import Channels


@pytest.fixture
async def channels(anyio_backend: object) -> "AsyncIterator[Channels]":
    """Participants of one channel, on a network in memory that belongs to the test."""
    from .channels import Channels

    async with Channels() as found:
        yield found


@pytest.fixture
def virtual_time() -> VirtualTime:
    """Return a backend for `anyio_backend` whose clock jumps, so that waits take no time.

    The backend is only for tests without sockets and threads, such as those with `channels`.
    """
    from trio.testing import MockClock

    return "trio", {"clock": MockClock(autojump_threshold=0)}


@pytest.fixture
def waku_node() -> Iterator[str]:
    """Return the address of a Waku node of the test, with the REST API on a free port."""
    from .nodes import served_node

    with served_node() as address:
        yield address
