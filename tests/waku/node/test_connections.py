"""Half requests, unread answers and too many connections, with a clock of the test's own."""

from __future__ import annotations

import socket
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import suppress
from typing import Any

import anyio
import httpx
import pytest
import uvicorn
from uvicorn.server import ServerState

from tests.waku.node.wires import until
from waku.node import EmbeddedNode, NodeOptions, serve_node
from waku.node.connections import HttpConnection, HttpConnections

pytestmark = pytest.mark.anyio

HEAD = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
WAIT = b"GET /wait HTTP/1.1\r\nhost: localhost\r\n\r\n"
POST = b"POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n"


class Loop:
    """The calls of an event loop that a protocol makes, with time by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.unfinished: list[Coroutine[Any, Any, None]] = []
        self._timers: list[Timer] = []

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        self._timers.append(Timer(self.now_s + delay_s, call))
        return self._timers[-1]

    def create_task(self, coroutine: Coroutine[Any, Any, None], **_: Any) -> Task:
        with suppress(StopIteration):
            coroutine.send(None)
            self.unfinished.append(coroutine)
        return Task()

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
        for timer in [one for one in self._timers if one.at_s <= self.now_s]:
            self._timers.remove(timer)
            if not timer.cancelled:
                timer.call()


class Timer:
    def __init__(self, at_s: float, call: Callable[[], None]) -> None:
        self.at_s, self.call, self.cancelled = at_s, call, False

    def cancel(self) -> None:
        self.cancelled = True


class Task:
    """One that has run to its end or to where it waits."""

    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        pass


class Transport:
    """What a connection writes to, and whether it was ended."""

    def __init__(self) -> None:
        self.ended = False
        self.unread_bytes = 0

    def get_extra_info(self, name: str) -> None:
        return None

    def get_write_buffer_size(self) -> int:
        return self.unread_bytes

    def is_closing(self) -> bool:
        return self.ended

    def write(self, data: bytes) -> None:
        pass

    def close(self) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def abort(self) -> None:
        self.ended = True


class World:
    """Connections to a server that answers `/health`, and nothing else."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.connections = HttpConnections(NodeOptions(request_timeout_s=10, max_connections=3))
        self._config = uvicorn.Config(answer_health, log_config=None, lifespan="off")
        self._state = ServerState()

    def connect(self) -> tuple[HttpConnection, Transport]:
        connection = self.connections.protocol(
            config=self._config, server_state=self._state, app_state={}, _loop=self.loop
        )
        transport = Transport()
        connection.connection_made(transport)  # type: ignore[arg-type]
        return connection, transport


async def answer_health(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/wait":
        await Waiting()
    else:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Waiting:
    def __await__(self) -> Generator[None, None, None]:
        yield


@pytest.fixture
def world() -> Iterator[World]:
    one = World()
    yield one
    for coroutine in one.loop.unfinished:
        coroutine.close()


def test_the_head_of_a_request_has_a_time(world: World) -> None:
    (_, silent), (slow, slowly), (quick, quickly) = (world.connect() for _ in range(3))
    quick.data_received(WAIT)
    for byte in HEAD[:9]:
        slow.data_received(bytes([byte]))
        world.loop.advance(1)
    assert [silent.ended, slowly.ended] == [False, False]
    world.loop.advance(1)
    assert [silent.ended, slowly.ended] == [True, True]
    world.loop.advance(1_000)  # an answer may take its time, as a long poll does
    assert [quickly.ended] == [False]


def test_a_body_that_nobody_waits_for_has_the_same(world: World) -> None:
    connection, transport = world.connect()
    connection.data_received(POST)
    for _ in range(9):
        connection.data_received(b" ")
        world.loop.advance(1)
    assert not transport.ended
    world.loop.advance(1)
    assert transport.ended


def test_an_answer_is_waited_for_while_it_is_taken(world: World) -> None:
    (taken, taking), (left, leaving) = world.connect(), world.connect()
    for connection, transport in ((taken, taking), (left, leaving)):
        transport.unread_bytes = 1_000_000
        connection.data_received(HEAD)
    for _ in range(5):
        taking.unread_bytes -= 1
        world.loop.advance(10)
    assert leaving.ended and not taking.ended


def test_a_connection_without_any_request_gives_way_first(world: World) -> None:
    idle, working, half = (world.connect() for _ in range(3))
    idle[0].data_received(HEAD)
    working[0].data_received(WAIT)
    half[0].data_received(HEAD[:9])
    fourth = world.connect()
    assert ended(idle, working, half, fourth) == [False, False, True, False]
    half[0].connection_lost(None)
    fourth[0].data_received(WAIT)
    fifth = world.connect()
    assert ended(idle, working, fourth, fifth) == [True, False, False, False]
    idle[0].connection_lost(None)
    fifth[0].data_received(WAIT)
    sixth = world.connect()
    assert ended(working, fourth, fifth, sixth) == [False, False, False, True]


def ended(*connections: tuple[HttpConnection, Transport]) -> list[bool]:
    return [transport.ended for _, transport in connections]


def test_the_log_gets_a_line_a_minute(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """It got one for each, at the callers' pleasure."""
    caplog.clear()
    for _ in range(1_000):
        connection, _ = world.connect()
        connection.data_received(b"nonsense\r\n\r\n")
        world.loop.advance(0.1)
    assert [record.name for record in caplog.records] == ["waku.node.server"] * 2
    assert "not HTTP" in caplog.text and "too many connections" in caplog.text


def test_the_process_may_not_open_as_many_files(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    for allowed, limit in ((256, 64), (1024, 500), (64, 16), (resource.RLIM_INFINITY, 500)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, allowed=allowed: (allowed, allowed))
        assert HttpConnections(NodeOptions()).limit == limit


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_served_node_answers_beside_a_crowd_of_half_requests() -> None:
    """1,500 of them made it unreachable."""
    urls: list[str] = []
    options = NodeOptions(max_connections=20)
    async with EmbeddedNode(options) as node, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: serve_node(node, port=0, started=urls.append))
        await until(lambda: bool(urls))
        port = int(urls[0].rpartition(":")[2])
        crowd = []
        async with httpx.AsyncClient(base_url=urls[0]) as http:
            for _ in range(10):
                for _ in range(20):
                    crowd.append(socket.create_connection(("127.0.0.1", port)))
                    crowd[-1].sendall(HEAD[:-2])
                assert (await http.get("/health")).status_code == 200
        for one in crowd:
            one.close()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_head_that_is_too_long_is_named_so(caplog: pytest.LogCaptureFixture) -> None:
    urls: list[str] = []
    async with EmbeddedNode() as node, anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: serve_node(node, port=0, started=urls.append))
        await until(lambda: bool(urls))
        port = int(urls[0].rpartition(":")[2])
        for head, status in ((b"GET /" + b"x" * 100_000, b"431"), (b"nonsense\r\n\r\n", b"400")):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(head)
                assert (await stream.receive()).startswith(b"HTTP/1.1 " + status)
        tasks.cancel_scope.cancel()
