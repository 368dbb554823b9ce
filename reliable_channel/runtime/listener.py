"""Listener that passes received messages from the transport to the engine."""

from collections.abc import Callable

import anyio

from ..engine.backoff import Backoff
from ..engine.sync_core import Arrival, Outcome
from ..transport.base import Received, Source, TransportError
from .driver import RealTimeDriver
from .stages import Frame, NotForUs, NotOpened, Stages
from .task_context import TaskContext
from .unopened import Unopened


class Intake:
    """Receiver of live and stored messages, which decrypts them for the engine."""

    def __init__(
        self,
        driver: RealTimeDriver,
        stages: Stages,
        unopened: Unopened | None,
        log_unopened: Callable[[], None],
    ) -> None:
        self._driver = driver
        self._unopened = unopened
        self._log_unopened = log_unopened
        self._engine = driver.engine
        self._stages = stages

    async def take(self, received: Received) -> Arrival:
        """Decrypt a received message, and pass it to the engine. Equal hashes mean equal bytes, so
        messages that were handled before are skipped."""
        engine = self._engine
        is_live = received.source is Source.LIVE
        if (known := engine.repeated(received.message_hash, is_live=is_live)) is not None:
            return Arrival(known)
        payload = received.payload
        if self._stages.change_anything:
            try:
                payload, _ = await self._stages.inward(Frame(payload, received.meta))
            except NotForUs as error:
                engine.counters.foreign += 1
                if isinstance(error, NotOpened):
                    await self._note(received)
                # Not remembered: a key that opens it may yet come (rotation), and Store give it
                # again.
                return Arrival(Outcome.REJECTED)
        arrival = self._driver.received(
            payload,
            received,
            message_hash=received.message_hash,
            timestamp_ns=received.timestamp_ns,
            from_store=not is_live,
        )
        if self._unopened is not None:
            if payload is not received.payload:
                self._unopened.note_opened()
            elif arrival.outcome is Outcome.REJECTED:  # contents alone are encrypted
                await self._note(received)
        return arrival

    async def _note(self, received: Received) -> None:
        if self._unopened is not None:
            if await self._unopened.note(received.message_hash, received.payload):
                self._log_unopened()


class Listener:
    def __init__(self, wiring: TaskContext, intake: Intake) -> None:
        self._wiring = wiring
        self._driver = wiring.driver
        self._engine = wiring.driver.engine
        self._health = wiring.health
        self._intake = intake
        self._last_look_ms = wiring.driver.now_ms()

    async def run(self) -> None:
        """Receive messages until cancelled. After an outage or an overflow, fetch lost messages
        from Store."""
        engine, health, writer = self._engine, self._health, self._wiring.writer
        backoff: Backoff | None = None
        while True:
            try:
                batch = await self._wiring.transport.receive()
            except TransportError as error:
                health.failed("receive", str(error))
                backoff = backoff or self._wiring.backoff()
                await anyio.sleep(backoff.next_s())
                continue
            backoff = None
            outage = bool(health.failing) and health.succeeded("receive") is not None
            now_ms = self._driver.now_ns() // 1_000_000
            for received in batch.messages:
                arrival = await self._intake.take(received)
                came = engine.confirmation.came_live(received.message_hash, arrival)
                if came and health.failing:
                    health.succeeded("receive", "silence")
            if outage or batch.gap:
                engine.counters.outages += outage
                engine.counters.gaps += bool(batch.gap)
                self._driver.catch_up(self._last_look_ms)
            self._last_look_ms = now_ms
            if writer is not None:
                engine.listened(now_ms)
                await writer.writable()
