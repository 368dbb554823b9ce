"""Light clients, each shared by all channels that use the same service peers.

A client has tasks, which must not end when its first channel closes. Each shared client therefore
runs in a separate task, until its last user leaves.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import anyio
from anyio.lowlevel import RunVar

from waku.models import StorePage, StoreQuery
from waku.p2p import ClientEvent, LightClient

from .._own_task import OwnTask
from .hub_queries import StoreQueries
from .settings import trusting

__all__ = ["ClientKey", "SharedClient", "shared_client"]

OnEvent = Callable[[ClientEvent], None]


@dataclass(frozen=True, slots=True)
class ClientKey:
    """Settings that must be equal for two channels that share a client."""

    addresses: tuple[str, ...]
    network: str | None
    cluster_id: int
    shard: int
    redundancy: int
    ca_file: str | None

    def make(self, on_event: OnEvent = lambda _: None) -> LightClient:
        """Return a new client that is not open yet.

        Raises:
            ValueError: an address or the file of certificates cannot be used.
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

    def check(self) -> None:
        """Check the settings by making a client, once for equal settings.

        Raises:
            ValueError: as `make`.
        """
        _make_once(self)


@lru_cache
def _make_once(key: ClientKey) -> None:
    key.make()


class SharedClient:
    """Light client, with the channels that use it."""

    def __init__(self, key: ClientKey) -> None:
        self.client: Final = key.make(self._on_event)
        self.users: list[OnEvent] = []
        self.task = OwnTask(self.client)
        self._queries = StoreQueries(self.client.store)

    async def store(self, query: StoreQuery) -> StorePage:
        """Return a page of messages from Store. Queries of several channels may be combined into
        one query.

        Raises:
            WakuError: as the client.
        """
        if len(self.users) > 1:
            return await self._queries.page(query)
        return await self.client.store(query)

    def _on_event(self, event: ClientEvent) -> None:
        for on_event in tuple(self.users):
            on_event(event)


_clients: RunVar[dict[ClientKey, SharedClient]] = RunVar("reliable_channel_light_clients")
"""For each event loop."""


@asynccontextmanager
async def shared_client(key: ClientKey, on_event: OnEvent) -> AsyncIterator[SharedClient]:
    """Use the light client of this event loop with these settings. The first user creates the
    client, and the last user ends it.

    The client calls `on_event` with each of its events.
    """
    clients = _clients.get({})
    _clients.set(clients)
    shared = clients.get(key)
    if shared is None or shared.task.has_ended:
        shared = clients[key] = SharedClient(key)
        shared.task.start()
    shared.users.append(on_event)
    try:
        await shared.task.entered()
        yield shared
    finally:
        shared.users.remove(on_event)
        if not shared.users:
            if clients.get(key) is shared:
                del clients[key]
            with anyio.CancelScope(shield=True):  # connections are closed when this returns
                await shared.task.leave()
    if shared.task.failure is not None:
        raise shared.task.failure
