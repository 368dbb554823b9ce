"""Queries to a simulated Store, as `runtime/store_client.py` queries one over a transport."""

from collections.abc import Callable, Generator, Iterator, Sequence
from random import Random
from typing import Any, Final

from reliable_channel.engine.backoff import Backoff
from reliable_channel.engine.recovery import SKEW_MS
from reliable_channel.engine.steps import Wake
from reliable_channel.engine.store_queries import ByTime, Query

from .driving import SimulatedDriver
from .network import Packet
from .store import Store, StoreAwayError

GRACE_MS: Final = 2_000
"""Time for which a message may still be on its way to Store."""


class Searcher:
    """Sends the engine's queries to Store, and looks for the participant's own messages there."""

    def __init__(self, driver: SimulatedDriver[Any], store: Store) -> None:
        self._driver, self._store = driver, store
        self.is_busy = False
        """True if Store is being asked for what is missing."""
        driver.wakes[Wake.FETCH] = self.wake
        if interval_ms := driver.engine.confirmation.interval_ms:
            driver.plan(interval_ms, self._confirm)

    def wake(self) -> None:
        """Send a waiting query, if none is running."""
        if not self.is_busy:
            self.is_busy = True
            self._go_on(self._fetch())

    def _confirm(self) -> None:
        self._go_on(self._look())
        self._driver.plan(self._driver.engine.confirmation.interval_ms, self._confirm)

    def _go_on(self, task: Iterator[int]) -> None:
        """Let a task that yields how long it waits run to its next wait."""
        if (wait_ms := next(task, None)) is not None:
            self._driver.plan(wait_ms, self._go_on, task)

    def _fetch(self) -> Generator[int, None, None]:
        driver, queries = self._driver, self._driver.engine.queries
        backoff = Backoff(_random(driver))
        while not queries.is_idle:
            while (query := queries.next(driver.now_ms())) is not None:
                yield self._store.delay_ms()
                try:
                    answer = self._answer(query)
                except StoreAwayError:
                    queries.failed(driver.now_ms())
                    yield int(backoff.next_s() * 1_000)
                    continue
                for found in answer:
                    driver.take(found, from_store=True)
                backoff.reset()
            driver.finish()
            if queries.catch_up_from_ms is None:
                yield queries.tick_ms
        self.is_busy = False

    def _look(self) -> Generator[int, None, None]:
        """Look for what was sent lately, and take what did not come."""
        driver, engine, now_ms = self._driver, self._driver.engine, self._driver.now_ms()
        yield self._store.delay_ms()
        query = ByTime(engine.confirmation.look_from_ms(now_ms), now_ms + SKEW_MS)
        try:
            answer = self._answer(query)
        except StoreAwayError:
            return
        driver.turn(driver.engine.in_store, [stored.message_hash for stored in answer])
        others = [each for each in answer if not engine.is_known(each.message_hash)]
        driver.turn(driver.engine.store_checked, now_ms * 1_000_000)
        if others:
            yield GRACE_MS
        for other in others:
            if not engine.is_known(other.message_hash):
                driver.take(other, from_store=True)

    def _answer(self, query: Query) -> Sequence[Packet]:
        self._driver.engine.counters.store_queries += 1
        return self._store.answer(query)


def _random(driver: SimulatedDriver[Any]) -> Callable[[], float]:
    return Random(f"{driver.name} {driver.now_ms()} store").random
