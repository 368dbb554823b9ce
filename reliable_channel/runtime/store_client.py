"""Store client of a channel, which fetches missing messages and confirms sent messages."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

import anyio

from ..engine.recovery import SKEW_MS
from ..engine.store_queries import ByHash, ByTime, Query
from ..engine.sync_core import Outcome
from ..transport.base import Received, StoreUnavailable
from .listener import Intake
from .task_context import TaskContext

GRACE_S: Final = 2.0
"""Time for which a message that is in Store may still arrive live (s)."""
LOOK_LIMIT: Final = 2_000
"""Maximum number of messages in one confirmation query. If there are more messages, the
subscription is not silent."""


class StoreClient:
    """Tasks of a channel that query Store, `fetch` for the engine and `confirm` for sent
    messages."""

    def __init__(self, wiring: TaskContext, intake: Intake) -> None:
        self._wiring = wiring
        self._driver = wiring.driver
        self._engine = wiring.driver.engine
        self._transport = wiring.transport
        self._health = wiring.health
        self._intake = intake
        self._backoff = wiring.backoff()

    async def fetch(self) -> None:
        """Send the engine's queries to Store, until cancelled."""
        driver, queries = self._driver, self._engine.queries
        while True:
            while (query := queries.next(driver.now_ms())) is not None:
                try:
                    await self._ask(query)
                except StoreUnavailable as error:
                    queries.failed(driver.now_ms())
                    if isinstance(query, ByHash):
                        continue  # it may refuse hashes alone: the query by time decides
                    self._health.failed("store", str(error))
                    await anyio.sleep(self._backoff.next_s())
            driver.finish()
            if queries.is_idle:
                await driver.to_fetch.wait()
            elif queries.catch_up_from_ms is None:
                await driver.to_catch_up.wait(queries.tick_ms / 1000)

    async def confirm(self) -> None:
        """Look for recently sent and for missed messages in Store at intervals, until cancelled."""
        while True:
            await anyio.sleep(self._engine.confirmation.interval_ms / 1000)
            try:
                others = await self._look()
            except StoreUnavailable as error:
                self._health.failed("store", str(error))
            else:
                await self._take_missed(others)

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
                if self._wiring.writer is not None:
                    await self._wiring.writer.writable()

    async def _deliver(self, messages: Sequence[Received]) -> None:
        for received in messages:
            await self._intake.take(received)

    async def _look(self) -> list[Received]:
        """Go through what was stored lately; return what is not known here."""
        engine, now_ms = self._engine, self._driver.now_ms()
        engine.counters.store_queries += 1
        others: list[Received] = []
        looked_at, reached_ns = 0, now_ms * 1_000_000
        start_ms = engine.confirmation.look_from_ms(now_ms)
        pages = self._transport.by_time(start_ms * 1_000_000, (now_ms + SKEW_MS) * 1_000_000)
        async with aclosing(pages):
            async for page in pages:
                self._driver.turn(engine.in_store, [received.message_hash for received in page])
                others += [each for each in page if not engine.is_known(each.message_hash)]
                looked_at += len(page)
                if looked_at >= LOOK_LIMIT:
                    reached_ns = page[-1].timestamp_ns
                    break
        self._health.succeeded("store")
        self._driver.turn(engine.store_checked, reached_ns)
        return others

    async def _take_missed(self, others: list[Received]) -> None:
        """Hand in what did not come; where nothing else came either, the subscription is dead.

        In a known outage as well: it may last for as long as the node cannot subscribe, and Store
        works meanwhile.
        """
        engine = self._engine
        if others:
            await anyio.sleep(GRACE_S)
        is_silent, missed = not engine.confirmation.heard_anything(), 0
        for received in others:
            if not engine.is_known(received.message_hash):
                arrival = await self._intake.take(received)
                missed += arrival.outcome in (Outcome.DELIVERED, Outcome.PARKED)
        engine.counters.missed_live += missed
        if missed and is_silent and not self._health.is_failing("receive"):
            reason = f"the subscription was silent while Store had {missed} messages"
            self._health.failed("receive", reason, "silence")
            self._transport.renew()
