"""A way to the forwarder that can be cut: what stands between two sides of a partition."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import ByteStream


class Gate:
    """Hands bytes on while it is open; closing it cuts every connection and refuses new ones."""

    def __init__(self, path: Path, target: Path) -> None:
        self.path, self.target = path, target
        self._scopes: set[anyio.CancelScope] = set()
        self.is_open = True

    def close(self) -> None:
        self.is_open = False
        for scope in self._scopes:
            scope.cancel()

    def open(self) -> None:
        self.is_open = True

    async def serve(self, client: ByteStream) -> None:
        async with client:
            if not self.is_open:
                return
            async with await anyio.connect_unix(self.target) as server:
                async with anyio.create_task_group() as tasks:
                    self._scopes.add(tasks.cancel_scope)
                    tasks.start_soon(self._pump, client, server, tasks.cancel_scope)
                    tasks.start_soon(self._pump, server, client, tasks.cancel_scope)
                self._scopes.discard(tasks.cancel_scope)

    async def _pump(self, source: ByteStream, sink: ByteStream, scope: anyio.CancelScope) -> None:
        try:
            async for chunk in source:
                await sink.send(chunk)
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        scope.cancel()


@asynccontextmanager
async def gate(path: Path, target: Path) -> AsyncIterator[Gate]:
    """A gate at one unix socket, to another."""
    made = Gate(path, target)
    listener = await anyio.create_unix_listener(path)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, made.serve)
        yield made
        tasks.cancel_scope.cancel()
