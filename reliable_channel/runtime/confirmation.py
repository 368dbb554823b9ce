"""Looks into Store from time to time: is there what was sent, and is there what did not come?

A subscription that died is as quiet as a network in which nobody speaks; only Store tells them
apart (LIP 172, P2P reliability: one query by content topic serves both). Ephemeral messages are not
stored, and not expected there.
"""

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

import anyio

from ..events import MessageStored
from ..sds import Arrival, Outcome
from ..sds.events import Outgoing, OutgoingKind
from ..transport.base import Envelope, Received, StoreUnavailable, Transport, renew
from ..transport.recent_hashes import RecentHashes
from .engine import Engine
from .health import Health
from .intake import Intake

SKEW_MS: Final = 30_000
"""What clocks may differ: Store orders by the sender's time."""
GRACE_S: Final = 2.0
"""How long what Store has may still be on its way to us."""
LOOKS: Final = 2
"""Looks in which a message must be absent before it counts as not stored."""
LOOK_LIMIT: Final = 2_000
"""Messages that one look goes through; where there are more, the subscription is not silent."""
WAITING_LIMIT: Final = 10_000
"""Own messages that wait to be seen in Store; of the oldest no more is said."""


@dataclass(slots=True)
class _Unconfirmed:
    """An own message that Store was not seen to have."""

    newest_ns: int
    """The timestamp of its newest envelope."""
    hashes: list[bytes] = field(default_factory=list)
    """One for each time it was sent."""
    looks: int = 0


class Confirmation:
    """The task that looks, and what it remembers from look to look."""

    def __init__(
        self,
        engine: Engine,
        intake: Intake,
        transport: Transport,
        health: Health,
        *,
        interval_ms: int,
    ) -> None:
        self._engine = engine
        self._intake = intake
        self._transport = transport
        self._health = health
        self._interval_ms = interval_ms
        self._opened_ms = engine.now_ms()
        self._unconfirmed: dict[str, _Unconfirmed] = {}
        self._message_ids: dict[bytes, str] = {}
        self._own = RecentHashes()
        self._came = RecentHashes()
        self._heard = self._heard_before = 0

    def dispatched(self, outgoing: Outgoing, envelope: Envelope) -> None:
        """A message is out; from now on Store should have it."""
        self._own.add(envelope.message_hash)
        message_id = outgoing.message_id
        if outgoing.kind is OutgoingKind.CONTENT and self._interval_ms:
            self._unconfirmed[message_id] = _Unconfirmed(envelope.timestamp_ns)
            if len(self._unconfirmed) > WAITING_LIMIT:
                self._forget(next(iter(self._unconfirmed)))
        elif outgoing.kind is not OutgoingKind.RETRY:
            return
        if waiting := self._unconfirmed.get(message_id):
            waiting.newest_ns = envelope.timestamp_ns
            waiting.hashes.append(envelope.message_hash)
            self._message_ids[envelope.message_hash] = message_id

    def came_live(self, received: Received, arrival: Arrival) -> None:
        """A message came by itself. Our own say nothing: a node that is cut off echoes them."""
        self._came.add(received.message_hash)
        if arrival.outcome is not Outcome.OWN and received.message_hash not in self._own:
            self._heard += 1
            self._health.succeeded("receive", "silence")

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await anyio.sleep(self._interval_ms / 1000)
            try:
                await self._look()
            except StoreUnavailable as error:
                self._health.failed("store", str(error))

    async def _look(self) -> None:
        """Go through what was stored lately."""
        now_ms = self._engine.now_ms()
        start_ms = max(now_ms - LOOKS * self._interval_ms - SKEW_MS, self._opened_ms)
        self._engine.counters.store_queries += 1
        others: list[Received] = []
        looked_at, reached_ns = 0, now_ms * 1_000_000
        pages = self._transport.by_time(start_ms * 1_000_000, (now_ms + SKEW_MS) * 1_000_000)
        async with aclosing(pages):
            async for page in pages:
                for received in page:
                    self._confirm(received.message_hash)
                others += [received for received in page if not self._is_known(received)]
                looked_at += len(page)
                if looked_at >= LOOK_LIMIT:
                    reached_ns = page[-1].timestamp_ns
                    break
        self._health.succeeded("store")
        self._publish_again(reached_ns)
        await self._take(others)

    def _confirm(self, message_hash: bytes) -> None:
        message_id = self._message_ids.get(message_hash)
        if message_id is not None:
            self._forget(message_id)
            self._engine.counters.confirmed += 1
            self._engine.emit(MessageStored(message_id, message_hash))

    def _publish_again(self, reached_ns: int) -> None:
        """Send again what was absent from enough looks and is unacknowledged."""
        for message_id, waiting in list(self._unconfirmed.items()):
            if waiting.newest_ns > reached_ns:
                continue
            waiting.looks += 1
            if waiting.looks < LOOKS:
                continue
            if self._engine.resend(message_id):
                waiting.looks = 0
            else:
                self._forget(message_id)

    def _is_known(self, received: Received) -> bool:
        digest = received.message_hash
        return digest in self._own or digest in self._came or self._engine.was_handled(digest)

    async def _take(self, others: list[Received]) -> None:
        """Hand in what did not come; where nothing else came either, the subscription is dead.

        In a known outage as well: it may last for as long as the node cannot subscribe, and Store
        works meanwhile.
        """
        if others:
            await anyio.sleep(GRACE_S)
        heard, self._heard_before = self._heard - self._heard_before, self._heard
        missed = 0
        for received in others:
            if not self._is_known(received):
                arrival = await self._intake.take(received)
                missed += arrival.outcome in (Outcome.DELIVERED, Outcome.PARKED)
        self._engine.counters.missed_live += missed
        if missed and not heard and not self._health.is_failing("receive"):
            reason = f"the subscription was silent while Store had {missed} messages"
            self._health.failed("receive", reason, "silence")
            renew(self._transport)

    def _forget(self, message_id: str) -> None:
        for message_hash in self._unconfirmed.pop(message_id).hashes:
            del self._message_ids[message_hash]
