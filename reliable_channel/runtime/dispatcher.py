"""Takes messages from the outbox to the transport, and keeps at it while the transport is away."""

from collections.abc import Callable
from typing import Final

import anyio

from ..sds.events import OutgoingKind
from ..transport.base import Envelope, Transport, TransportError
from .backoff import Backoff
from .engine import Engine
from .health import Health
from .outbox import Outbox

CONCURRENCY: Final = 4
"""Messages on their way to the node at a time; order is the core's business, not the
transport's."""
FRESH_NS: Final = 10_000_000_000
"""A failed dispatch may have reached the node: within 10 s the same envelope goes again, which the
network recognises as a repetition. A later one needs a new timestamp, since archives refuse old
ones (nwaku: 20 s)."""
_EXPENDABLE: Final = (OutgoingKind.SYNC, OutgoingKind.EPHEMERAL)


class Dispatcher:
    """Publishes; `run` is for as many tasks as there may be messages on their way at a time."""

    def __init__(
        self,
        engine: Engine,
        outbox: Outbox,
        transport: Transport,
        health: Health,
        now_ns: Callable[[], int],
        random: Callable[[], float],
    ) -> None:
        self._engine = engine
        self._outbox = outbox
        self._transport = transport
        self._health = health
        self._now_ns = now_ns
        self._random = random
        self._attempted: dict[str, Envelope] = {}

    async def run(self) -> None:
        """Publish for ever."""
        backoff = Backoff(self._random)
        while True:
            item = await self._outbox.get()
            outgoing = item[2]
            envelope = self._envelope(outgoing.message_id, outgoing.data, outgoing.kind)
            try:
                await self._transport.publish(envelope)
            except TransportError as error:
                if not error.retryable:
                    self._outbox.done()
                    self._engine.refused(outgoing, str(error))
                    continue
                self._health.failed("send", str(error))
                self._engine.counters.publish_failures += 1
                if outgoing.kind in _EXPENDABLE:
                    self._outbox.done()
                else:
                    self._attempted[outgoing.message_id] = envelope
                    self._outbox.put_back(item)
                await anyio.sleep(backoff.next_s())
            except BaseException:
                self._outbox.put_back(item)  # cancelled in the middle: it may not have gone out
                raise
            else:
                self._outbox.done()
                backoff.reset()
                self._health.succeeded("send")
                self._engine.dispatched(outgoing, envelope)

    def _envelope(self, message_id: str, data: bytes, kind: OutgoingKind) -> Envelope:
        envelope = self._attempted.pop(message_id, None)
        now_ns = self._now_ns()
        if envelope is not None and now_ns - envelope.timestamp_ns < FRESH_NS:
            return envelope
        return self._transport.envelope(data, timestamp_ns=now_ns, ephemeral=kind in _EXPENDABLE)
