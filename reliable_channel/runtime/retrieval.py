"""Fetches from Store what did not arrive, as `engine/store_queries.py` says."""

from collections.abc import Sequence
from contextlib import aclosing, closing

import anyio

from ..engine.repairs import Repairs
from ..engine.store_queries import ByHash, ByTime, Query, StoreQueries
from ..transport.base import Received, StoreUnavailable, Transport
from .backoff import Backoff
from .engine import Engine
from .health import Health
from .intake import Intake


class Retriever:
    """The task that asks Store."""

    def __init__(
        self,
        engine: Engine,
        intake: Intake,
        transport: Transport,
        health: Health,
        backoff: Backoff,
        repairs: Repairs,
    ) -> None:
        self._engine = engine
        self._intake = intake
        self._transport = transport
        self._health = health
        self._backoff = backoff
        self._queries = StoreQueries(engine.core, engine.now_ms, repairs)
        self._changed = anyio.Event()
        self._idle = False

    def catch_up(self, since_ms: int) -> None:
        """Fetch all that was stored since `since_ms`, as soon as Store answers."""
        self._queries.catch_up(since_ms)
        self._changed.set()

    def wake(self) -> None:
        """Something is missing."""
        if self._idle:
            self._changed.set()

    async def run(self) -> None:
        """Ask Store whenever there is something to ask for, for ever."""
        while True:
            for look in self._queries.looks():
                try:
                    with closing(look) as queries:
                        for query in queries:
                            await self._ask(query)
                except StoreUnavailable as error:
                    self._health.failed("store", str(error))
                    await anyio.sleep(self._backoff.next_s())
            self._engine.repairs_changed()
            await self._wait()

    async def _wait(self) -> None:
        if self._queries.must_catch_up:
            return
        self._changed = anyio.Event()
        self._idle = self._queries.is_idle
        tick_s = None if self._idle else self._queries.tick_ms / 1000
        with anyio.move_on_after(tick_s):
            await self._changed.wait()
        self._idle = False

    async def _ask(self, query: Query) -> None:
        self._engine.counters.store_queries += 1
        match query:
            case ByHash(hashes):
                await self._deliver(await self._transport.by_hash(list(hashes)))
            case ByTime(start_ms, end_ms):
                await self._search(max(1, start_ms * 1_000_000), end_ms * 1_000_000)
        self._backoff.reset()
        self._health.succeeded("store")

    async def _search(self, start_ns: int, end_ns: int) -> None:
        async with aclosing(self._transport.by_time(start_ns, end_ns)) as pages:
            async for page in pages:
                await self._deliver(page)
                await anyio.lowlevel.checkpoint()
                await self._engine.writable()

    async def _deliver(self, messages: Sequence[Received]) -> None:
        for received in messages:
            await self._intake.take(received)
