"""The endpoint for probes, with clients as unkind as a port scanner."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import httpx
import pytest

from reliable_channel import ChannelHub
from reliable_channel.events import NodeHealth
from reliable_channel.health import ChannelHealth
from reliable_channel.health_server import AT_A_TIME, REQUEST_BYTES, HasHealth, serve_health

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
