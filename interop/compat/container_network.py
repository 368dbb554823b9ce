"""What stands between a container and the others: Docker's network, `pause`, and `tc`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from typing import Final

import anyio
from anyio.abc import SocketAttribute, SocketStream, TaskGroup, TaskStatus

from waku.node.app import App, Receive, Scope, Send

from .addresses import ADDRESSES, HERE, at_port, host_and_port
from .egress import Egress, GaveUp

__all__ = ["ContainerNetwork"]

BROKEN: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError)
HEAD_BYTES: Final = 64
"""Of the line that begins an answer, about."""
IDLE_S: Final = 5.0
"""After which the server closes a connection: uvicorn's `timeout_keep_alive`."""


class ContainerNetwork:
    """Carries one container's connections: libp2p in both directions, and REST to it.

    While it is frozen nothing passes in either direction, as with a process that does not run.

    Args:
        egress: the interface by which calls and answers leave.
    """

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._connections = Connections()
        self._running = anyio.Event()
        self._running.set()

    def freeze(self) -> None:
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

    async def expose(self, tasks: TaskGroup, port: int) -> int:
        """Let others reach a port of the node; return the port that they are to dial."""

        async def serve(caller: SocketStream) -> None:
            async with caller:
                await self._egress.accept_connection()
                await self._carry(await anyio.connect_tcp(HERE, port), caller)

        return await self._listen(tasks, serve)

    async def lead(self, tasks: TaskGroup, multiaddr: str) -> str:
        """Return the address at which the node is to dial a peer: its bytes leave by `egress`."""
        host, port = host_and_port(multiaddr)

        async def serve(node: SocketStream) -> None:
            async with node:
                to = ADDRESSES.port_of(host, port)
                if to is None and not ip_address(host).is_loopback:
                    return  # no container is there
                await self._egress.open_connection()
                await self._carry(node, await anyio.connect_tcp(HERE, to or port))

        return at_port(multiaddr, await self._listen(tasks, serve))

    async def _listen(
        self, tasks: TaskGroup, serve: Callable[[SocketStream], Awaitable[None]]
    ) -> int:
        async def serve_safely(stream: SocketStream) -> None:
            with suppress(GaveUp, OSError, *BROKEN):  # the connection ends, as any does
                await serve(stream)

        async def listen(*, task_status: TaskStatus[int]) -> None:
            async with await anyio.create_tcp_listener(local_host=HERE) as listener:
                task_status.started(listener.extra(SocketAttribute.local_port))
                await listener.serve(serve_safely)

        port: int = await tasks.start(listen)
        return port

    async def _carry(self, node: SocketStream, other: SocketStream) -> None:
        """Carry bytes both ways until one side ends; those of the node leave by `egress`."""

        async def pump(source: SocketStream, sink: SocketStream, *, leaves: bool) -> None:
            with suppress(GaveUp, OSError, *BROKEN):
                async for data in source:
                    if leaves:
                        await self._egress.message(len(data))
                    await self._running.wait()
                    await sink.send(data)
            pumps.cancel_scope.cancel()

        async with node, other, anyio.create_task_group() as pumps:
            pumps.start_soon(partial(pump, node, other, leaves=True))
            pumps.start_soon(partial(pump, other, node, leaves=False))


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


def _head_bytes(start: Scope) -> int:
    return HEAD_BYTES + _header_bytes(start.get("headers", ()))


def _header_bytes(headers: Iterable[tuple[bytes, bytes]]) -> int:
    return sum(len(name) + len(value) + len(": \r\n") for name, value in headers)
