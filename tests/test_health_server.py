"""The endpoint for probes, with clients as unkind as a port scanner."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from errno import EMFILE
from functools import partial

import anyio
import httpx
import pytest
from anyio.abc import SocketStream
from anyio.streams.stapled import MultiListener
from sniffio import current_async_library

from reliable_channel import ChannelHub, health_server
from reliable_channel.diagnostics import NodeHealth
from reliable_channel.health import ChannelHealth
from reliable_channel.health_server import (
    AT_A_TIME,
    REQUEST_BYTES,
    HasHealth,
    serve_health,
    serve_requests,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Fixed:
    def __init__(self, live: bool = True, ready: bool = True) -> None:
        node = NodeHealth("http://:hunter2@node:8645", "healthy", "", 5)
        self.value = ChannelHealth("c", "alice", live, ready, nodes=(node,))

    def health(self) -> ChannelHealth:
        return self.value


@asynccontextmanager
async def served(*sources: HasHealth | ChannelHub) -> AsyncIterator[int]:
    async with anyio.create_task_group() as tasks:
        yield await tasks.start(partial(serve_health, *sources, port=0))
        tasks.cancel_scope.cancel()


async def get(port: int, path: str, method: str = "GET") -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.request(method, f"http://127.0.0.1:{port}{path}")


@pytest.mark.parametrize(
    ("live", "ready", "statuses"),
    [(True, True, (200, 200)), (True, False, (200, 503)), (False, False, (503, 503))],
)
async def test_liveness_and_readiness(live: bool, ready: bool, statuses: tuple[int, int]) -> None:
    async with served(Fixed(), Fixed(live, ready)) as port:
        found = [await get(port, path) for path in ("/livez", "/readyz", "/health?verbose")]
        assert tuple(answer.status_code for answer in found[:2]) == statuses
        assert found[2].status_code == statuses[1]
        assert found[2].json()["ready"] is ready
        assert len(found[2].json()["channels"]) == 2
        assert "hunter2" not in found[2].text


async def test_other_requests_are_refused() -> None:
    async with served(Fixed()) as port:
        assert (await get(port, "/")).status_code == 404
        assert (await get(port, "/livez", "POST")).status_code == 405
        head = await get(port, "/livez", "HEAD")
        assert (head.status_code, head.text) == (200, "")


async def test_junk_long_heads_and_idle_clients_do_not_stop_it() -> None:
    async with served(Fixed()) as port:
        idle = [await anyio.connect_tcp("127.0.0.1", port) for _ in range(AT_A_TIME - 1)]
        for junk in (b"\x00\xff\r\n\r\n", b"x" * (2 * REQUEST_BYTES), b"GET"):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(junk)
                if junk == b"GET":
                    continue  # gone in the middle of it
                try:
                    assert b" 404 " in await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    pass  # closed while we still wrote
        assert (await get(port, "/livez")).status_code == 200
        for stream in idle:
            await stream.aclose()


async def test_a_hub_serves_the_channels_that_are_open() -> None:
    hub = ChannelHub("http://127.0.0.1:9", wait_for_node=True)
    async with hub, served(hub) as port:
        assert (await get(port, "/health")).json()["channels"] == []
        async with hub.channel(channel_id="ops", sender_id="bot"):
            (found,) = (await get(port, "/health")).json()["channels"]
            assert found["channel_id"] == "ops"


def broken_page() -> str:
    raise ZeroDivisionError("a collector's own fault")


async def test_a_page_that_raises_is_500_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with anyio.create_task_group() as tasks:
        serve = partial(serve_health, Fixed(), port=0, pages={"/metrics": broken_page})
        port = await tasks.start(serve)
        answer = await get(port, "/metrics")
        assert (answer.status_code, answer.json()) == (
            500,
            {"error": "/metrics: ZeroDivisionError"},
        )
        assert (await get(port, "/livez")).status_code == 200
        tasks.cancel_scope.cancel()
    assert "a collector's own fault" in caplog.text


class ShortOfDescriptors:
    """A listener in a process that has no descriptor left, twice."""

    def __init__(self, inner: MultiListener[SocketStream]) -> None:
        (self.inner,) = inner.listeners
        self.failures = 2

    async def accept(self) -> SocketStream:
        if self.failures:
            self.failures -= 1
            error = OSError(EMFILE, "Too many open files")
            if current_async_library() == "trio":
                raise anyio.BrokenResourceError from error
            raise error
        return await self.inner.accept()  # type: ignore[attr-defined, no-any-return]


async def test_without_descriptors_it_accepts_again_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(health_server, "ACCEPT_AGAIN_S", 0)

    async def answer(stream: SocketStream) -> None:
        async with stream:
            await stream.send(b"here")
            raise LookupError("a fault of one request")

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        short = ShortOfDescriptors(listener)
        listener.listeners = [short]  # type: ignore[list-item]
        tasks.start_soon(serve_requests, listener, answer)
        for _ in range(2):
            async with await anyio.connect_tcp("127.0.0.1", port) as client:
                assert await client.receive() == b"here"
        tasks.cancel_scope.cancel()
        listener.listeners = [short.inner]
    assert caplog.text.count("Too many open files") == 1
    assert "a fault of one request" in caplog.text


@pytest.mark.parametrize("path", ["/livez", "/nowhere"])
async def test_a_name_that_points_here_is_refused(path: str) -> None:
    here = ["127.0.0.1:8080", "[::1]:8080", "10.1.2.3", "localhost", "bot", "bot.example:9"]
    elsewhere = ["evil.example", "EVIL.example.:8080", "127.0.0.1.evil.example"]
    async with anyio.create_task_group() as tasks:
        serve = partial(serve_health, Fixed(), port=0, allow_hosts=["bot.example"])
        port = await tasks.start(serve)
        async with httpx.AsyncClient(trust_env=False) as client:
            for host in (*here, *elsewhere):
                got = await client.get(f"http://127.0.0.1:{port}{path}", headers={"Host": host})
                expected = 403 if host in elsewhere else 200 if path == "/livez" else 404
                assert got.status_code == expected, host
                assert "alice" not in got.text or host in here
        tasks.cancel_scope.cancel()


async def test_silent_connections_keep_no_probe_waiting() -> None:
    async with served(Fixed()) as port, AsyncExitStack() as stack:
        for _ in range(AT_A_TIME + 5):
            await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
        assert (await get(port, "/livez")).status_code == 200
