"""Publisher from an engine to the network, as `runtime/publisher.py` publishes to a node."""

from random import Random
from typing import Any

from reliable_channel.engine.backoff import Backoff
from reliable_channel.engine.outbox import Item
from reliable_channel.engine.steps import Wake

from .driving import SimulatedDriver
from .network import Packet, packet


class Publisher:
    """Publisher of one message at a time, through a node that may be slow or away.

    A message is sent in the middle of the publishing time. If the process dies after that, the
    message is published, but the engine does not know.
    """

    def __init__(self, driver: SimulatedDriver[Any]) -> None:
        self._driver = driver
        self._is_busy = False
        self._in_hand: Item | None = None
        self._backoff: Backoff | None = None
        driver.wakes[Wake.SEND] = self.wake
        driver.has_in_hand = self._has_in_hand

    def wake(self) -> None:
        """Continue with the next message, if no message is on its way."""
        if not self._is_busy:
            self._is_busy = True
            self._driver.plan(0, self._next)

    def _has_in_hand(self, message_id: str) -> bool:
        return self._in_hand is not None and self._in_hand.outgoing.message_id == message_id

    def _next(self) -> None:
        driver, engine, now_ms = self._driver, self._driver.engine, self._driver.now_ms()
        self._in_hand = item = engine.take(now_ms)
        if engine.has_news:
            driver.finish()
        if item is None:
            self._is_busy = False
            if (goes_at_ms := engine.sends_at_ms(now_ms)) is not None:
                driver.finish()
                driver.plan(max(0, goes_at_ms - now_ms), self.wake)
        elif engine.limit is None:
            self._call(item)
        else:
            driver.node.spent = engine.limit.spent(now_ms)
            driver.finish()
            driver.when_written(self._call, item)

    def _call(self, item: Item) -> None:
        publish_ms = self._driver.world.publish_ms
        self._driver.plan(publish_ms - publish_ms // 2, self._arrive, item)

    def _arrive(self, item: Item) -> None:
        driver, outgoing = self._driver, item.outgoing
        if driver.node.is_away:
            self._failed(item)
            return
        stamp_ms = item.stamp_ns(driver.wall_ns()) // 1_000_000
        sent = packet(outgoing.data, stamp_ms, outgoing.kind)
        driver.note(f"publishes {outgoing.kind.value} {outgoing.message_id}")
        driver.watch.published(driver.core, outgoing, sent.message_hash, driver.now_ms())
        driver.world.network.broadcast(driver.node.number, sent)
        driver.plan(driver.world.publish_ms // 2, self._answered, item, sent)

    def _answered(self, item: Item, sent: Packet) -> None:
        driver = self._driver
        if driver.node.is_away:
            self._failed(item)
            return
        self._backoff = None
        stamp_ns = sent.timestamp_ms * 1_000_000
        if driver.journal is not None:
            driver.journal.went(item.outgoing, sent, driver.now_ms())
        self._in_hand = None
        driver.turn(driver.engine.dispatched, item, sent.message_hash, stamp_ns)
        self._next()

    def _failed(self, item: Item) -> None:
        driver = self._driver
        if self._backoff is None:
            self._backoff = Backoff(Random(f"{driver.name} {driver.now_ms()} publish").random)
        driver.engine.failed(item, driver.now_ms())
        self._in_hand = None
        driver.plan(int(self._backoff.next_s() * 1_000), self._next)
