"""Fetches from Store what did not arrive: by retrieval hint, and by topic and time where that
fails.

js-waku's hints never match (it stamps a message twice, once for the hint and once for the wire), so
a hint is a first try and no more.
"""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

import anyio

from ..sds.incoming import MissingEntry
from ..transport.base import Received, StoreUnavailable, Transport
from .backoff import Backoff
from .engine import Engine
from .event_stream import EventStream
from .health import Health
from .intake import Intake

SKEW_MS: Final = 30_000
"""What other participants' clocks may differ: Store orders by the sender's time."""
LOOKBACKS_MS: Final = (60_000, 600_000, 3_600_000, 86_400_000, 30 * 86_400_000)
"""How far before it was noticed a missing message is looked for, one step further each time."""
FIRST_LOOK_MS: Final = 1_000
"""A message that is missing for less may still be on its way."""
HINT_BYTES: Final = 32


@dataclass(slots=True)
class _Search:
    """What was tried for one missing message."""

    due_ms: int
    attempts: int = 0

    @property
    def searches_by_time(self) -> bool:
        """Whether to search by time as well: after 0, 1, 3, 7, 15, … attempts, as each costs
        more."""
        return (self.attempts + 1) & self.attempts == 0

    @property
    def lookback_ms(self) -> int:
        """How far before it was noticed to search."""
        return LOOKBACKS_MS[min(self.attempts.bit_length(), len(LOOKBACKS_MS) - 1)]


class Retriever:
    """The task that asks Store."""

    def __init__(
        self,
        engine: Engine,
        intake: Intake,
        transport: Transport,
        health: Health,
        stream: EventStream,
        backoff: Backoff,
        *,
        retrieve_frequency_ms: int,
    ) -> None:
        self._engine = engine
        self._intake = intake
        self._transport = transport
        self._health = health
        self._stream = stream
        self._backoff = backoff
        self._frequency_ms = retrieve_frequency_ms
        self._catch_up_from_ms: int | None = None
        self._searches: dict[str, _Search] = {}
        self._changed = anyio.Event()
        self._idle = False

    def catch_up(self, since_ms: int) -> None:
        """Fetch all that was stored since `since_ms`, as soon as Store answers."""
        if self._catch_up_from_ms is None or since_ms < self._catch_up_from_ms:
            self._catch_up_from_ms = since_ms
        self._changed.set()

    def wake(self) -> None:
        """Something is missing."""
        if self._idle:
            self._changed.set()

    async def run(self) -> None:
        """Ask Store whenever there is something to ask for, for ever."""
        while True:
            try:
                await self._catch_up()
                await self._fetch_missing()
            except StoreUnavailable as error:
                self._health.failed("store", str(error))
                await anyio.sleep(self._backoff.next_s())
            await self._wait()

    async def _wait(self) -> None:
        if self._catch_up_from_ms is not None:
            return
        self._changed = anyio.Event()
        self._idle = not self._engine.core.is_missing_something
        tick_s = None if self._idle else min(FIRST_LOOK_MS, self._frequency_ms) / 1000
        with anyio.move_on_after(tick_s):
            await self._changed.wait()
        self._idle = False

    @property
    def _missing(self) -> Mapping[str, MissingEntry]:
        return {missing.entry.message_id: missing for missing in self._engine.core.missing()}

    async def _catch_up(self) -> None:
        start_ms, self._catch_up_from_ms = self._catch_up_from_ms, None
        if start_ms is None:
            return
        try:
            await self._search(start_ms)
        except StoreUnavailable:
            self.catch_up(start_ms)
            raise

    async def _fetch_missing(self) -> None:
        due = self._due()
        hints = [m.entry.retrieval_hint for m in due if m.entry.retrieval_hint is not None]
        if usable := [hint for hint in hints if len(hint) == HINT_BYTES]:
            self._engine.counters.store_queries += 1
            await self._deliver(await self._transport.by_hash(usable))
            self._succeeded()
        missing_now, waited_for = self._missing, self._engine.core.incoming_buffer.missing
        still = [m for m in due if m.entry.message_id in missing_now]
        by_time = [
            m
            for m in still
            if m.entry.message_id in waited_for
            and self._searches[m.entry.message_id].searches_by_time
        ]
        if by_time:
            lookback_ms = max(self._searches[m.entry.message_id].lookback_ms for m in by_time)
            await self._search(min(m.since_ms for m in by_time) - lookback_ms)
        for missing in still:
            search = self._searches[missing.entry.message_id]
            search.attempts += 1
            search.due_ms = self._engine.now_ms() + self._frequency_ms

    def _due(self) -> list[MissingEntry]:
        """What to look for now: a first time soon after it was noticed, then at the retrieve
        frequency."""
        now_ms, missing = self._engine.now_ms(), self._missing
        first_ms = min(FIRST_LOOK_MS, self._frequency_ms)
        self._searches = {
            message_id: self._searches.get(message_id) or _Search(entry.since_ms + first_ms)
            for message_id, entry in missing.items()
        }
        return [m for i, m in missing.items() if self._searches[i].due_ms <= now_ms]

    async def _search(self, start_ms: int) -> None:
        """Take everything stored since `start_ms`: a message is stamped anew when it is sent
        again."""
        self._engine.counters.store_queries += 1
        start_ns = max(1, (start_ms - SKEW_MS) * 1_000_000)
        end_ns = (self._engine.now_ms() + SKEW_MS) * 1_000_000
        async with aclosing(self._transport.by_time(start_ns, end_ns)) as pages:
            async for page in pages:
                await self._deliver(page)
                await anyio.lowlevel.checkpoint()
                await self._stream.writable()
                await self._engine.writable()
        self._succeeded()

    async def _deliver(self, messages: Sequence[Received]) -> None:
        for received in messages:
            await self._intake.take(received)

    def _succeeded(self) -> None:
        self._backoff.reset()
        self._health.succeeded("store")
