"""The web server: what it answers, and what it refuses."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import anyio
import httpx
import pytest

from reliable_channel_watch.model import View
from reliable_channel_watch.web.server import FILES, PAGES, WatchServer

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def served(view: View) -> AsyncIterator[str]:
    async with anyio.create_task_group() as tasks:
        yield await tasks.start(WatchServer(view).run)
        tasks.cancel_scope.cancel()


def channel() -> View:
    view = View()
    view.opened("alice", 1_000, "ops")
    view.entered_log("alice", "<script>alert(1)</script>", "alice", 1_500)
    return view


async def pieces(response: httpx.Response) -> AsyncIterator[dict[str, object]]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


async def test_the_page_is_whole_and_loads_nothing_from_elsewhere() -> None:
    async with served(channel()) as url, httpx.AsyncClient(base_url=url) as client:
        for name, (_, kind) in FILES.items():
            answer = await client.get(name)
            assert answer.status_code == 200 and answer.headers["content-type"] == kind
            assert "http://" not in answer.text and "https://" not in answer.text
            assert "innerHTML" not in answer.text and "document.write" not in answer.text
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'") and "unsafe" not in policy
            assert "access-control-allow-origin" not in answer.headers
        assert (await client.head("")).content == b""


async def test_a_page_gets_all_and_then_what_changes() -> None:
    view = channel()
    async with (
        served(view) as url,
        httpx.AsyncClient() as client,
        client.stream("GET", f"{url}events") as response,
    ):
        assert response.headers["content-type"] == "text/event-stream"
        found = pieces(response)
        first = await anext(found)
        assert first["base"] == 1_000 and first["lanes"] == [["alice", 0]]
        assert first["heard"] == [500]
        assert first["messages"] == [[0, 500, 0, None, None, 0, [], []]]
        view.entered_log("bob", "<script>alert(1)</script>", "alice", 3_000)
        second = await anext(found)
        assert second["lanes"] == [["bob", 2_000]]
        assert second["heard"] == [500, 2_000]
        assert second["messages"] == [[0, 500, 0, None, None, 1, [], [2_000, 1]]]


async def test_a_message_is_explained() -> None:
    async with served(channel()) as url, httpx.AsyncClient(base_url=url) as client:
        answer = await client.get("message", params={"number": 0})
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.json()["sender"] == "alice"
        for bad in ("1", "-1", "x", "", "9" * 400):
            missing = await client.get("message", params={"number": bad})
            assert missing.status_code == 404, bad


async def test_other_hosts_and_paths_without_the_secret_are_refused() -> None:
    async with served(channel()) as url, httpx.AsyncClient() as client:
        parts = urlsplit(url)
        host = f"http://{parts.netloc}"
        rebound = {"host": f"evil.example:{parts.port}"}
        assert (await client.get(url, headers=rebound)).status_code == 403
        assert (await client.get(f"{url}events", headers=rebound)).status_code == 403
        assert (await client.get(url, headers={"host": f"localhost:{parts.port}"})).is_success
        for path in ("/", "/events", "/message?number=0", "/x" * 40 + "/"):
            assert (await client.get(host + path)).status_code == 404, path
        for path in ("../server.py", "page/index.html", "%2e%2e/server.py"):
            assert (await client.get(url + path)).status_code == 404, path
        assert (await client.post(url)).status_code == 405


async def test_requests_that_are_none_cost_nothing() -> None:
    async with served(channel()) as url:
        parts = urlsplit(url)
        for text in (b"x" * 20_000, b"\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\xff\r\n\r\n"):
            async with await anyio.connect_tcp("127.0.0.1", parts.port or 0) as stream:
                try:
                    await stream.send(text)
                    answer = await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    continue
                assert answer.startswith(b"HTTP/1.1 403 "), text[:20]
        async with httpx.AsyncClient() as client:
            assert (await client.get(url)).is_success


async def test_the_number_of_open_pages_is_bounded() -> None:
    async with served(channel()) as url, httpx.AsyncClient(timeout=60) as client:
        streams = [client.stream("GET", f"{url}events") for _ in range(PAGES + 1)]
        answers = [await each.__aenter__() for each in streams]
        assert [each.status_code for each in answers] == [200] * PAGES + [503]
        for each in streams:
            await each.__aexit__(None, None, None)


async def test_what_is_no_request_is_refused_and_the_page_stays() -> None:
    async with served(channel()) as url:
        parts = urlsplit(url)
        for target in (b"//[", b"http://[::1", b"\xff"):
            async with await anyio.connect_tcp("127.0.0.1", parts.port or 0) as stream:
                await stream.send(b"GET " + target + b" HTTP/1.1\r\n\r\n")
                assert (await stream.receive()).startswith((b"HTTP/1.1 400", b"HTTP/1.1 403"))
        async with httpx.AsyncClient() as client:
            assert (await client.get(url)).status_code == 200
