"""What stands between a container and the others: Docker's network, and Docker's `pause`."""

from __future__ import annotations

from ipaddress import ip_address
from types import TracebackType
from typing import Self

import anyio
import httpx

from waku.node.app import App, Receive, Scope, Send

from .addresses import ADDRESSES

__all__ = ["ContainerNetwork"]


class ContainerNetwork(httpx.AsyncBaseTransport):
    """Leads one container's calls to where others really answer. Use it in `async with`.

    While it is frozen nothing passes in either direction: no call leaves, no answer arrives, and
    what others ask waits, as it waits for a process that does not run.
    """

    def __init__(self) -> None:
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
            async def answer(event: Scope) -> None:
                await self._running.wait()
                await send(event)

            await self._running.wait()
            await app(scope, receive, answer)

        return gate

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to the port that its address stands for."""
        await self._running.wait()
        port = ADDRESSES.port_of(request.url.host, request.url.port or 80)
        if port is None and not ip_address(request.url.host).is_loopback:
            raise httpx.ConnectError(f"no container at {request.url.host}", request=request)
        if port is not None:
            request.url = request.url.copy_with(host="127.0.0.1", port=port)
            request.headers["Host"] = f"127.0.0.1:{port}"
        response = await self._http.handle_async_request(request)
        await self._running.wait()
        return response

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
