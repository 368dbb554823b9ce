"""Every transport passes the suite that authors of plugins import."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from reliable_channel.testing.transport_suite import MakeTransport, TransportSuite
from reliable_channel.transport import (
    BaseTransport,
    LossyTransport,
    MemoryNetwork,
    MulticastTransport,
    PoolTransport,
    Transport,
    WakuSettings,
)
from reliable_channel.transport.node import NodeTransport
from tests.multicast_groups import group_url

from .nodes import line


class TestMemory(TransportSuite):
    @asynccontextmanager
    async def network(self) -> AsyncIterator[MakeTransport]:
        networks: dict[str, MemoryNetwork] = {}

        def make(settings: WakuSettings) -> Transport:
            return networks.setdefault(settings.content_topic, MemoryNetwork()).transport()

        yield make


# httpx leaves a generator behind where a request is cancelled.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("mode")
class TestWaku(TransportSuite):
    @asynccontextmanager
    async def network(self) -> AsyncIterator[MakeTransport]:
        async with line() as it:
            yield lambda settings: NodeTransport("http://node", settings, app=it)


class TestMulticast(TransportSuite):
    has_store = False

    @asynccontextmanager
    async def network(self) -> AsyncIterator[MakeTransport]:
        url = group_url()
        yield lambda settings: MulticastTransport(url, settings)


class TestPool(TestMemory):
    """A pool of one, as every channel has it."""

    @asynccontextmanager
    async def network(self) -> AsyncIterator[MakeTransport]:
        async with super().network() as make:
            yield lambda settings: PoolTransport([make(settings)])


class TestLossless(TestMulticast):
    """The transport that loses on purpose, asked not to."""

    @asynccontextmanager
    async def network(self) -> AsyncIterator[MakeTransport]:
        async with super().network() as make:
            yield lambda settings: LossyTransport(make(settings), drop_incoming=0, seed=1)


@pytest.mark.anyio
async def test_a_network_without_capabilities_needs_no_method_for_them() -> None:
    transport = MemoryNetwork().transport()
    transport.renew()
    await transport.handed_over()
    with anyio.move_on_after(0):
        await transport.nodes_changed()
        pytest.fail("no node can change")
    assert (transport.has_store, transport.nodes()) == (True, ())


def test_what_is_not_derived_from_the_base_is_refused() -> None:
    methods = ("open", "aclose", "envelope", "publish", "receive", "by_hash", "by_time")
    bare = type("Bare", (), dict.fromkeys(methods, print))
    assert not isinstance(bare(), Transport)
    assert isinstance(type("Derived", (bare, BaseTransport), {})(), Transport)
