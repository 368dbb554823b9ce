"""Takes what arrives from the transport to the engine."""

from collections.abc import Callable

import anyio

from ..engine.backoff import Backoff
from ..sync_core import Arrival, Outcome
from ..transport.base import Received, Transport, TransportError
from .driver import Driver
from .health import Health
from .stages import Foreign, Parcel, Stages
from .state_writer import StateWriter


class Intake:
    """Decrypts what arrives, live or from Store, and hands it to the engine."""

    def __init__(self, driver: Driver, stages: Stages) -> None:
        self._driver = driver
        self._engine = driver.engine
        self._stages = stages

    async def take(self, received: Received) -> Arrival:
        """Take one message. Equal hashes are equal bytes, so one that was handled is skipped."""
        engine = self._engine
        if engine.was_handled(received.message_hash):
            engine.counters.repeated += 1
            return Arrival(Outcome.DUPLICATE)
        try:
            parcel = await self._stages.inward(Parcel(received.payload, received.meta))
        except Foreign:
            engine.counters.foreign += 1
            # Not remembered: a key that opens it may yet come (rotation), and Store give it again.
            return Arrival(Outcome.REJECTED)
        return self._driver.came(parcel.payload, received)


class Listener:
    """The task that listens."""

    def __init__(
        self,
        driver: Driver,
        intake: Intake,
        transport: Transport,
        health: Health,
        *,
        writer: StateWriter | None,
        random: Callable[[], float],
    ) -> None:
        self._driver = driver
        self._engine = driver.engine
        self._intake = intake
        self._transport = transport
        self._health = health
        self._writer = writer
        self._backoff = Backoff(random)
        self._last_look_ms = driver.now_ms()

    async def run(self) -> None:
        """Listen for ever; ask Store for what an outage or an overflow may have swallowed."""
        engine, confirmation = self._engine, self._engine.confirmation
        while True:
            try:
                batch = await self._transport.receive()
            except TransportError as error:
                self._health.failed("receive", str(error))
                await anyio.sleep(self._backoff.next_s())
                continue
            self._backoff.reset()
            outage = self._health.succeeded("receive") is not None
            for received in batch.messages:
                arrival = await self._intake.take(received)
                if confirmation.came_live(received.message_hash, arrival):
                    self._health.succeeded("receive", "silence")
            if outage or batch.gap:
                engine.counters.outages += outage
                engine.counters.gaps += bool(batch.gap)
                self._driver.catch_up(self._last_look_ms)
            self._last_look_ms = self._driver.now_ms()
            engine.listened(self._last_look_ms)
            if self._writer is not None:
                await self._writer.writable()
