"""What stands between a container and the others: Docker's network, `pause`, and `tc`."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from ipaddress import ip_address
from types import TracebackType
from typing import Final, Self

import anyio
import httpx

from waku.node.app import App, Receive, Scope, Send

from .addresses import ADDRESSES
from .egress import Egress, GaveUp

__all__ = ["ContainerNetwork"]

HEAD_BYTES: Final = 64
"""Of the line that begins a request or an answer, about; the path comes to it."""
IDLE_S: Final = 5.0
"""After which the server closes a connection: uvicorn's `timeout_keep_alive`."""


class ContainerNetwork(httpx.AsyncBaseTransport):
    """Leads one container's calls to where others really answer. Use it in `async with`.

    While it is frozen nothing passes in either direction: no call leaves, no answer arrives, and
    what others ask waits, as it waits for a process that does not run.

    Args:
        egress: the interface by which calls and answers leave.
    """

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._connections = Connections()
        self._http = httpx.AsyncHTTPTransport(trust_env=False)
        self._running = anyio.Event()
        self._running.set()

    def freeze(self) -> None:
        """Let nothing pass."""
        if self._running.is_set():
            self._running = anyio.Event()

    def thaw(self) -> None:
        """Let pass what waits, and what comes."""
        self._running.set()

    def in_front_of(self, app: App) -> App:
        """Return an application that others can call while nothing is frozen."""

        async def gate(scope: Scope, receive: Receive, send: Send) -> None:
            start: list[Scope] = []

            async def answer(event: Scope) -> None:
                if event["type"] == "http.response.start":
                    start.append(event)  # the head leaves in one packet with what follows
                    return
                size_bytes = len(event.get("body", b"")) + sum(map(_head_bytes, start))
                await self._until_left(self._egress.message(size_bytes))
                while start:
                    await send(start.pop())
                await send(event)

            if self._connections.take(scope["client"], anyio.current_time()):
                await self._until_left(self._egress.accept_connection())
            await self._running.wait()
            try:
                await app(scope, receive, answer)
            finally:
                self._connections.give_back(scope["client"], anyio.current_time())

        return gate

    async def _until_left(self, leaving: Awaitable[None]) -> None:
        """Return once a packet or a message has left; never where TCP gives up, for the other end
        hears nothing of that."""
        try:
            await leaving
        except GaveUp:
            await anyio.sleep_forever()
        await self._running.wait()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to the port that its address stands for."""
        await self._running.wait()
        port = ADDRESSES.port_of(request.url.host, request.url.port or 80)
        if port is None and not ip_address(request.url.host).is_loopback:
            raise httpx.ConnectError(f"no container at {request.url.host}", request=request)
        if port is not None:
            request.url = request.url.copy_with(host="127.0.0.1", port=port)
            request.headers["Host"] = f"127.0.0.1:{port}"
        request.extensions = {**request.extensions, "trace": self._trace}
        try:
            # Before a connection is chosen: one that is idle may be closed meanwhile.
            await self._egress.message(_request_bytes(request))
            response = await self._http.handle_async_request(request)
        except GaveUp as error:
            raise httpx.WriteTimeout(str(error), request=request) from error
        await self._running.wait()
        return response

    async def _trace(self, step: str, info: Mapping[str, object]) -> None:
        """Wait for a handshake; httpcore calls this at each step of a request."""
        if step == "connection.connect_tcp.started":
            await self._egress.open_connection()

    async def aclose(self) -> None:
        """Do nothing: the node's links share this network, and each closes its transport."""

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self._http.__aexit__(kind, error, traceback)


class Connections:
    """Which callers have a connection that is open still; what is idle too long is closed."""

    def __init__(self) -> None:
        self._idle_since_s: dict[object, float] = {}

    def take(self, client: object, now_s: float) -> bool:
        """Begin a call; return whether it has to open its connection."""
        while self._idle_since_s:
            oldest = next(iter(self._idle_since_s))
            if now_s - self._idle_since_s[oldest] <= IDLE_S:
                break
            del self._idle_since_s[oldest]
        return self._idle_since_s.pop(client, None) is None

    def give_back(self, client: object, now_s: float) -> None:
        """End a call; the connection stays open for a while."""
        self._idle_since_s[client] = now_s


def _request_bytes(request: httpx.Request) -> int:
    body_bytes = int(request.headers.get("Content-Length", 0))
    head_bytes = HEAD_BYTES + len(request.url.raw_path) + _header_bytes(request.headers.raw)
    return head_bytes + body_bytes


def _head_bytes(start: Scope) -> int:
    return HEAD_BYTES + _header_bytes(start.get("headers", ()))


def _header_bytes(headers: Iterable[tuple[bytes, bytes]]) -> int:
    return sum(len(name) + len(value) + len(": \r\n") for name, value in headers)
