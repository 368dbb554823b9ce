"""`ndn://`: channels whose messages are publications of a group on NDN."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from small_forwarder import small_forwarder

from reliable_channel.testing.transport_suite import MakeTransport, TransportSuite
from reliable_channel_svs.ndn.transport import NdnTransport


@asynccontextmanager
async def forwarding() -> AsyncIterator[str]:
    with TemporaryDirectory(prefix="ndn") as directory:  # a socket's path must be short
        path = Path(directory) / "fw"
        async with small_forwarder(path):
            yield f"ndn:///room/one?forwarder=unix://{path}"


class TestNdn(TransportSuite):
    has_store = False
    naming = "spec"

    @asynccontextmanager
    async def network(self) -> AsyncIterator[MakeTransport]:
        numbers = count()
        async with forwarding() as url:
            url += f"&naming={self.naming}"
            yield lambda settings: NdnTransport(url, settings, f"sender {next(numbers)}")


class TestNdnAlo(TestNdn):
    naming = "svs-alo"
