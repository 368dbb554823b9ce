"""`ndn://`: channels whose messages are publications of a group on NDN."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import anyio
from small_forwarder import SmallForwarder, small_forwarder

from reliable_channel.testing.transport_suite import MakeTransport, TransportSuite
from reliable_channel.transport import PoolTransport
from reliable_channel_svs.ndn import NdnTransport


@asynccontextmanager
async def forwarding() -> AsyncIterator[tuple[SmallForwarder, str]]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with small_forwarder(listener) as forwarder:
        yield forwarder, f"ndn://127.0.0.1:{port}/room/one"


class TestNdn(TransportSuite):
    has_store = False
    naming = "spec"

    @asynccontextmanager
    async def network(self) -> AsyncIterator[MakeTransport]:
        numbers = count()
        async with forwarding() as (_, url):
            url += f"?naming={self.naming}"
            yield lambda settings: NdnTransport(url, settings, f"sender {next(numbers)}")


class TestNdnAlo(TestNdn):
    naming = "svs-alo"


class TestNdnInPool(TestNdn):
    """As every channel has it that is given a URL."""

    @asynccontextmanager
    async def network(self) -> AsyncIterator[MakeTransport]:
        async with super().network() as make:
            yield lambda settings: PoolTransport([make(settings)])
