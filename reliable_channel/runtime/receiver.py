"""Takes what arrives from the transport to the core."""

from collections.abc import Callable

import anyio

from ..transport.base import Transport, TransportError
from .backoff import Backoff
from .confirmation import Confirmation
from .engine import Engine
from .health import Health
from .intake import Intake
from .retrieval import Retriever


class Receiver:
    """The task that listens."""

    def __init__(
        self,
        engine: Engine,
        intake: Intake,
        transport: Transport,
        health: Health,
        retriever: Retriever,
        confirmation: Confirmation,
        random: Callable[[], float],
    ) -> None:
        self._engine = engine
        self._intake = intake
        self._transport = transport
        self._health = health
        self._retriever = retriever
        self._confirmation = confirmation
        self._backoff = Backoff(random)
        self._last_look_ms = engine.now_ms()

    async def run(self) -> None:
        """Listen for ever; ask Store for what an outage or an overflow may have swallowed."""
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
                self._confirmation.came_live(received, await self._intake.take(received))
            if outage or batch.gap:
                self._engine.counters.outages += outage
                self._engine.counters.gaps += bool(batch.gap)
                self._retriever.catch_up(self._last_look_ms)
            self._last_look_ms = self._engine.now_ms()
            self._engine.looked(self._last_look_ms)
            await self._engine.writable()
