"""Takes messages from the outbox to the transport, and keeps at it while the transport is away."""

from collections.abc import Callable
from typing import Final

import anyio

from ..sds.events import Outgoing, OutgoingKind
from ..transport.base import Envelope, Transport, TransportError
from .backoff import Backoff
from .confirmation import Confirmation
from .engine import Engine
from .health import Health
from .outbox import Item, Outbox
from .rate_limit import RateLimitManager
from .stages import Parcel, StageFailed, Stages

CONCURRENCY: Final = 4
"""Messages on their way to the node at a time; order is the core's business, not the
transport's."""
FRESH_NS: Final = 10_000_000_000
"""A failed dispatch may have reached the node: within 10 s the same envelope goes again, which the
network recognises as a repetition. A later one needs a new timestamp, since archives refuse old
ones (nwaku: 20 s)."""
_EXPENDABLE: Final = (OutgoingKind.CONTROL, OutgoingKind.EPHEMERAL)
"""What is not tried again. A sync is, until a newer one takes its place: through a node that takes
few messages a second, the first attempt seldom is the one that gets through."""


class Dispatcher:
    """Publishes; `run` is for as many tasks as there may be messages on their way at a time."""

    def __init__(
        self,
        engine: Engine,
        outbox: Outbox,
        transport: Transport,
        stages: Stages,
        limits: RateLimitManager | None,
        health: Health,
        confirmation: Confirmation,
        now_ns: Callable[[], int],
        random: Callable[[], float],
    ) -> None:
        self._engine = engine
        self._outbox = outbox
        self._transport = transport
        self._stages = stages
        self._limits = limits
        self._health = health
        self._confirmation = confirmation
        self._now_ns = now_ns
        self._random = random
        self._attempted: dict[str, Envelope] = {}

    async def run(self) -> None:
        """Publish for ever."""
        backoff = Backoff(self._random)
        while True:
            item = await self._outbox.get()
            outgoing = item[2]
            if self._engine.is_settled(outgoing):
                self._attempted.pop(outgoing.message_id, None)
                self._outbox.done()
                continue
            if not self._may_go(outgoing.kind):
                self._outbox.put_back(item)
                await self._budget_grows(outgoing.kind)
                continue
            try:
                if self._limits is not None:
                    await self._engine.recorded()
                envelope = await self._envelope(outgoing)
                await self._transport.publish(envelope)
            except StageFailed as error:
                self._outbox.done()
                self._engine.refused(outgoing, str(error))
            except TransportError as error:
                if not error.retryable:
                    self._outbox.done()
                    self._engine.refused(outgoing, str(error))
                    continue
                self._health.failed("send", str(error))
                self._engine.counters.publish_failures += 1
                self._keep(item, envelope)
                await anyio.sleep(backoff.next_s())
            except BaseException:
                self._outbox.put_back(item)  # cancelled in the middle: it may not have gone out
                raise
            else:
                self._outbox.done()
                backoff.reset()
                self._health.succeeded("send")
                self._confirmation.dispatched(outgoing, envelope)
                self._engine.dispatched(outgoing, envelope)

    def _keep(self, item: Item, envelope: Envelope) -> None:
        """See that a message that the node did not take goes again, where it is to."""
        outgoing = item[2]
        if outgoing.kind in _EXPENDABLE:
            self._outbox.done()
            return
        if outgoing.kind is not OutgoingKind.SYNC:
            self._attempted[outgoing.message_id] = envelope
        self._outbox.put_back(item)

    async def _envelope(self, outgoing: Outgoing) -> Envelope:
        envelope = self._attempted.pop(outgoing.message_id, None)
        if envelope is not None and self._now_ns() - envelope.timestamp_ns < FRESH_NS:
            return envelope
        parcel = await self._stages.outward(Parcel(outgoing.data))
        timestamp_ns, id_ns = self._now_ns(), outgoing.timestamp_ns
        if id_ns is not None and abs(timestamp_ns - id_ns) < FRESH_NS:
            timestamp_ns = id_ns  # what its id was made of, so that others can check it
        return self._transport.envelope(
            parcel.payload,
            timestamp_ns=timestamp_ns,
            ephemeral=outgoing.kind.is_of_the_moment,
            meta=parcel.meta,
        )

    def _may_go(self, kind: OutgoingKind) -> bool:
        """Ask the rate limit, and count what goes."""
        if self._limits is None:
            return True
        if not self._limits.admits(kind):
            return False
        self._limits.spend()
        return True

    async def _budget_grows(self, kind: OutgoingKind) -> None:
        """Wait for the next epoch, or for a message that may go before it."""
        assert self._limits is not None
        ends_at_ms = self._limits.epoch_ends_at_ms
        self._engine.rate_limited(ends_at_ms, len(self._outbox))
        with anyio.move_on_after(max(0, ends_at_ms - self._engine.now_ms()) / 1000):
            if kind is OutgoingKind.CONTENT:
                await anyio.sleep_forever()
            await self._outbox.content_comes()
