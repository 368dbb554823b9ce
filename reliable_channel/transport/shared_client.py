"""Light clients that channels share: one for all that use the same service peers.

A client has tasks, which the first channel must not take along when it closes before the others.
So each shared client runs in a separate task, from its first user to its last.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import anyio
from anyio.lowlevel import RunVar

from waku.p2p import ClientEvent, LightClient

from .settings import trusting

__all__ = ["ClientKey", "shared_client"]

OnEvent = Callable[[ClientEvent], None]


@dataclass(frozen=True, slots=True)
class ClientKey:
    """What must be equal for two channels to share a client."""

    addresses: tuple[str, ...]
    network: str | None
    cluster_id: int
    shard: int
    redundancy: int
    ca_file: str | None

    def make(self, on_event: OnEvent = lambda _: None) -> LightClient:
        """Return a client that was not entered yet.

        Raises:
            ValueError: an address that is none or cannot be dialled, or no file of certificates.
        """
        return LightClient(
            self.addresses,
            network=self.network,
            cluster_id=self.cluster_id,
            shards=[self.shard],
            redundancy=self.redundancy,
            ssl_context=trusting(self.ca_file),
            on_event=on_event,
        )


@dataclass(slots=True)
class _Shared:
    """A client, and the channels that use it."""

    key: ClientKey
    users: list[OnEvent] = field(default_factory=list)
    client: LightClient | None = None
    failure: Exception | None = None
    ready: anyio.Event = field(default_factory=anyio.Event)
    unused: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)

    async def run(self) -> None:
        """Run the client until it has no user."""
        try:
            async with self.key.make(self._on_event) as self.client:
                self.ready.set()
                await self.unused.wait()
        except Exception as error:  # its users raise it: nobody awaits this task
            self.failure = error
        finally:
            self.ready.set()
            self.ended.set()

    def _on_event(self, event: ClientEvent) -> None:
        for on_event in tuple(self.users):
            on_event(event)


_clients: RunVar[dict[ClientKey, _Shared]] = RunVar("reliable_channel_light_clients")
"""For each event loop."""
_running: Final = set[asyncio.Task[None]]()
"""asyncio keeps weak references to tasks only."""


@asynccontextmanager
async def shared_client(key: ClientKey, on_event: OnEvent) -> AsyncIterator[LightClient]:
    """Use the client of this event loop; the first user makes it, and it ends with the last.

    `on_event` is called with the events of the whole client.
    """
    clients = _clients.get({})
    _clients.set(clients)
    shared = clients.get(key)
    if shared is None or shared.ended.is_set():
        shared = clients[key] = _Shared(key)
        _start(shared.run)
    shared.users.append(on_event)
    try:
        await shared.ready.wait()
        if shared.client is None:
            assert shared.failure is not None
            raise shared.failure
        yield shared.client
    finally:
        shared.users.remove(on_event)
        if not shared.users:
            if clients.get(key) is shared:
                del clients[key]
            shared.unused.set()
            with anyio.CancelScope(shield=True):  # connections are closed when this returns
                await shared.ended.wait()
    if shared.failure is not None:
        raise shared.failure


def _start(run: Callable[[], Awaitable[None]]) -> None:
    """Start a task that no task group awaits: it outlives the channel that starts it."""
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        trio.lowlevel.spawn_system_task(run)
        return
    task = asyncio.ensure_future(run())
    _running.add(task)
    task.add_done_callback(_running.discard)
