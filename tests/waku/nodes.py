"""Stand-ins for nodes: answers from memory, and sockets that misbehave."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
import httpx
from anyio.abc import SocketAttribute, SocketStream

from tests.asgi import app_of
from waku import RetryPolicy, WakuClient
from waku.models import Rejected

BASE_URL = "http://node.invalid:8645"


@dataclass
class FakeNode:
    """Answers requests in order, the last answer again and again, and remembers what was asked."""

    answers: list[httpx.Response | Exception]
    requests: list[httpx.Request] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    def client(self, *, attempts: int = 1) -> WakuClient:
        return WakuClient(
            BASE_URL,
            app=app_of(self.answer),
            retries=RetryPolicy(attempts=attempts, sleep=self.wait),
            client_id="tester",
            on_rejected=self.rejected.append,
        )

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, content=answer.content)

    async def wait(self, seconds: float) -> None:
        self.waits.append(seconds)


def answering(*bodies: object, status: int = 200) -> FakeNode:
    """Make a node that answers with these bodies: JSON values, or bytes as they are."""
    return FakeNode([said(body, status) for body in bodies])


def said(body: object, status: int = 200) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.Response(status, content=content)


@asynccontextmanager
async def socket_node(behave: Callable[[SocketStream], object]) -> AsyncIterator[str]:
    """Serve connections with `behave` (awaited) on a port of its own; yield the base URL."""

    async def serve(stream: SocketStream) -> None:
        async with stream:
            # The client may have had enough.
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                await stream.receive()
                await behave(stream)  # type: ignore[misc]

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(SocketAttribute.local_port)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, serve)
            yield f"http://127.0.0.1:{port}"
            tasks.cancel_scope.cancel()
