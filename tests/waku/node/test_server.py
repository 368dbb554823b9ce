"""A node on a real port."""

from __future__ import annotations

import gc
import signal
import socket
import sys

import anyio
import httpx
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.waku.node.wires import HERE, OPTIONS, SHARD, Inbox, message, publish, until
from waku import WakuClient
from waku.node import CannotListen, EmbeddedNode, serve, serve_node

pytestmark = pytest.mark.anyio

PROGRAM = """
import anyio
from waku.node import serve
anyio.run(lambda: serve(port=0, started=lambda url: print(url, flush=True)))
print("ended")
"""


INSIDE_ANOTHER_SERVER = """
import asyncio
from contextlib import asynccontextmanager
import uvicorn
from waku.node import serve

async def app(scope, receive, send):
    assert (await receive())["type"] == "lifespan.startup"
    up = asyncio.Event()
    node = asyncio.create_task(serve(port=0, started=lambda url: up.set()))
    await up.wait()
    print("up", flush=True)
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await node
    print("node ended", flush=True)
    await send({"type": "lifespan.shutdown.complete"})

uvicorn.run(app, port=0, log_level="warning")
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # uvicorn knows no other


async def test_two_nodes_on_ports() -> None:
    urls: list[str] = []
    async with EmbeddedNode(OPTIONS, listen=HERE) as a, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: serve_node(a, port=0, started=urls.append))
        await until(lambda: bool(urls))
        async with EmbeddedNode(OPTIONS, relay_peers=a.libp2p_addresses) as b:
            inboxes = Inbox(a), Inbox(b)
            await until(lambda: a.mesh.followers(SHARD) == 1 == b.mesh.followers(SHARD))
            publish(b, message(1))
            async with WakuClient(urls[0]) as client:
                await client.lightpush(message(2))
                assert (await client.info()).listen_addresses == a.libp2p_addresses
            await until(lambda: all(len(inbox.payloads) == 2 for inbox in inboxes))
        tasks.cancel_scope.cancel()
    async with httpx.AsyncClient() as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(urls[0])


async def test_who_connects_while_it_stops_is_closed() -> None:
    """asyncio leaves a socket open that it accepted just before its listener was closed."""
    urls: list[str] = []
    async with EmbeddedNode() as node, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: serve_node(node, port=0, started=urls.append))
        await until(lambda: bool(urls))
        address = ("127.0.0.1", int(urls[0].rpartition(":")[2]))
        callers = [socket.create_connection(address) for _ in range(3)]
        # In the turn that follows they are accepted, after the cancellation was asked for.
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    gc.collect()  # a socket that was left open is an error of this test
    for caller in callers:
        with caller:
            assert caller.recv(1) == b""


async def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=f"127.0.0.1:{port}: .*choose another with --port"):
            await serve(port=port)
    with pytest.raises(CannotListen, match="no such host"):
        await serve(host="no such host")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_it_gracefully(number: signal.Signals) -> None:
    async with (
        await anyio.open_process([sys.executable, "-c", PROGRAM], stderr=None) as run,
        httpx.AsyncClient() as client,
    ):
        assert run.stdout is not None
        output = BufferedByteReceiveStream(run.stdout)
        url = (await output.receive_until(b"\n", 100)).decode()
        assert (await client.get(f"{url}/health")).status_code == 200
        run.send_signal(number)
        assert await output.receive_until(b"\n", 100) == b"ended"
        assert await run.wait() == 0


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM)]
)
async def test_a_signal_ends_a_server_around_it_as_well(
    number: signal.Signals, status: int
) -> None:
    async with await anyio.open_process(
        [sys.executable, "-c", INSIDE_ANOTHER_SERVER], stderr=None
    ) as run:
        assert run.stdout is not None
        output = BufferedByteReceiveStream(run.stdout)
        assert await output.receive_until(b"\n", 100) == b"up"
        run.send_signal(number)
        assert await output.receive_until(b"\n", 100) == b"node ended"
        assert await run.wait() == status  # that of uvicorn
