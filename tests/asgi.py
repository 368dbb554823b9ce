"""Applications out of what answers requests, for a `WakuClient` that has one in place of a node.

An exception of the answer is what the client meets: `httpx.ConnectError` is a node that is away.
"""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeAlias

import httpx

from waku._asgi import App, Receive, Scope, Send

Answer: TypeAlias = Callable[[httpx.Request], httpx.Response | Awaitable[httpx.Response]]


class Answering:
    """An application that answers by `answer`."""

    async def answer(self, request: httpx.Request) -> httpx.Response:
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await serve(await self.answer(await request_of(scope, receive)), send)


def app_of(answer: Answer) -> App:
    """Make an application of a function."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        given = answer(await request_of(scope, receive))
        await serve(await given if isawaitable(given) else given, send)

    return app


def head_of(scope: Scope, body: bytes = b"") -> httpx.Request:
    host, port = scope["server"]
    url = httpx.URL(scheme=scope["scheme"], host=host, port=port)
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    return httpx.Request(
        scope["method"],
        url.copy_with(raw_path=scope["raw_path"] + query),
        headers=scope["headers"],
        content=body or None,
    )


async def request_of(scope: Scope, receive: Receive) -> httpx.Request:
    body, more = b"", True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    return head_of(scope, body)


async def serve(response: httpx.Response, send: Send) -> None:
    start = {"status": response.status_code, "headers": response.headers.raw}
    await send({"type": "http.response.start", **start})
    assert isinstance(response.stream, httpx.AsyncByteStream)
    async for chunk in response.stream:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body"})
