"""The embedded node behind a line that can be disturbed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, TypeAlias

import anyio
import httpx
from anyio.abc import TaskStatus

from reliable_channel.transport import WakuTransport
from reliable_channel.transport.settings import WakuSettings
from tests.asgi import Answering, head_of
from waku._asgi import App, Receive, Scope, Send
from waku.node import EmbeddedNode, NodeOptions, serve_node
from waku.node.options import Behaviour

CONTENT_TOPIC: Final = "/reliable-channel/1/general/proto"
STATIC_SHARD: Final = "/waku/2/rs/1/3"
Disturbance: TypeAlias = Callable[[httpx.Request], httpx.Response | Exception | None]


class Line(Answering):
    """Carries requests to a node that can be exchanged, and answers itself where told."""

    def __init__(self) -> None:
        self.node: EmbeddedNode | None = None
        self.disturbance: Disturbance | None = None
        self.swallows: str | None = None
        """A path whose requests reach the node, and whose answers are lost."""
        self._asked: list[Scope] = []

    def connect(self, node: EmbeddedNode | None) -> None:
        self.node = node

    @property
    def requests(self) -> list[httpx.Request]:
        """What was asked, without the bodies."""
        return [head_of(scope) for scope in self._asked]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._asked.append(scope)
        if self.node is None or self.disturbance is not None or self.swallows is not None:
            await super().__call__(scope, receive, send)
        else:  # as it came: taking a request apart costs as much as its way to the node
            await self.node.app(scope, receive, send)

    async def answer(self, request: httpx.Request) -> httpx.Response:
        disturbed = self.disturbance(request) if self.disturbance is not None else None
        if isinstance(disturbed, Exception):
            raise disturbed
        if disturbed is not None:
            return disturbed
        if self.node is None:
            raise httpx.ConnectError("nobody listens")
        response = await httpx.ASGITransport(self.node.app).handle_async_request(request)
        if self.swallows is not None and self.swallows in request.url.path:
            return httpx.Response(200, content=b"<html>")
        return response

    def asked(self, method: str, path: str) -> int:
        return sum(it["method"] == method and path in it["path"] for it in self._asked)

    def forget(self) -> None:
        self._asked.clear()


class Mode:
    """How the nodes of a test behave; the fixture `mode` sets it."""

    behave_as: Behaviour | None = None


@asynccontextmanager
async def line(**options: Any) -> AsyncIterator[Line]:
    """A line to a new node, which behaves as the test's mode says."""
    it = Line()
    options.setdefault("behave_as", Mode.behave_as)
    async with EmbeddedNode(NodeOptions(**options)) as node:
        it.connect(node)
        yield it


@asynccontextmanager
async def joined(count: int) -> AsyncIterator[list[Line]]:
    """Lines to so many nodes, each joined with each."""
    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(line()) for _ in range(count)]
        for one, other in combinations([it.node for it in lines], 2):
            assert one is not None and other is not None
            one.join(other)
        yield lines


@dataclass
class Served:
    """A node on a port of its own."""

    url: str
    kill: Callable[[], None]


@asynccontextmanager
async def served(node: EmbeddedNode) -> AsyncIterator[Served]:
    """Serve a node on a port of its own until it is killed."""
    scope = anyio.CancelScope()

    async def serve(*, task_status: TaskStatus[str]) -> None:
        with scope:
            await serve_node(node, port=0, started=task_status.started)

    async with anyio.create_task_group() as tasks:
        url = await tasks.start(serve)
        yield Served(url, scope.cancel)
        scope.cancel()


def over(it: App, *, url: str = "http://node", **settings: Any) -> WakuTransport:
    return WakuTransport(url, WakuSettings(CONTENT_TOPIC, **settings), app=it)


def answering(status: int, body: bytes, *, path: str = "") -> Disturbance:
    """Answer every request below a path."""

    def disturb(request: httpx.Request) -> httpx.Response | None:
        return httpx.Response(status, content=body) if path in request.url.path else None

    return disturb


def failing(error: Exception, *, path: str = "", times: int | None = None) -> Disturbance:
    """Fail requests below a path, all or so many."""
    left = times

    def disturb(request: httpx.Request) -> Exception | None:
        nonlocal left
        if path not in request.url.path or left == 0:
            return None
        if left is not None:
            left -= 1
        return error

    return disturb
