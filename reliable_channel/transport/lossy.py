"""Transport that drops messages on purpose, for demonstrations and tests of reliability."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from random import Random

from .base import Batch, Envelope, NodeHealth, Received, Transport


class LossyTransport:
    """Transport that drops a share of live messages by a seed. Messages fetched from Store arrive
    completely.

    Raises:
        ValueError: a share outside 0 to 1.
    """

    def __init__(self, inner: Transport, *, drop_incoming: float, seed: int) -> None:
        if not 0 <= drop_incoming <= 1:
            raise ValueError(f"`drop_incoming` must be a share from 0 to 1 (got {drop_incoming})")
        self._inner = inner
        self._drop_incoming = drop_incoming
        self._random = Random(seed)
        self.cut_off = False
        """While set, nothing arrives and nothing is broadcast."""
        self.dropped = 0

    @property
    def has_store(self) -> bool:
        """True if the inner transport has one."""
        return self._inner.has_store

    async def open(self) -> None:
        """Open the inner transport, too."""
        await self._inner.open()

    async def aclose(self) -> None:
        """Close the inner transport, too."""
        await self._inner.aclose()

    def envelope(
        self, payload: bytes, *, timestamp_ns: int, ephemeral: bool, meta: bytes = b""
    ) -> Envelope:
        """Wrap bytes as the inner transport does."""
        return self._inner.envelope(
            payload, timestamp_ns=timestamp_ns, ephemeral=ephemeral, meta=meta
        )

    async def publish(self, envelope: Envelope) -> Envelope | None:
        """Broadcast, or pretend to while cut off, because a partition does not announce itself."""
        return None if self.cut_off else await self._inner.publish(envelope)

    async def receive(self) -> Batch:
        """Receive messages, without the dropped ones."""
        batch = await self._inner.receive()
        kept = [message for message in batch.messages if not self._loses()]
        self.dropped += len(batch.messages) - len(kept)
        return Batch(kept, batch.gap)

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        """Fetch by hash. While cut off, fetch nothing."""
        return [] if self.cut_off else await self._inner.by_hash(hashes)

    async def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        """Fetch by time. While cut off, fetch nothing."""
        if self.cut_off:
            return
        async with aclosing(self._inner.by_time(start_ns, end_ns)) as pages:
            async for page in pages:
                yield page

    def renew(self) -> None:
        """Subscribe again at the inner transport."""
        self._inner.renew()

    async def handed_over(self) -> None:
        """Wait for others to fetch what was published."""
        await self._inner.handed_over()

    def nodes(self) -> tuple[NodeHealth, ...]:
        """Return the state of each node."""
        return self._inner.nodes()

    async def nodes_changed(self) -> None:
        """Wait until a node's state changes."""
        await self._inner.nodes_changed()

    def _loses(self) -> bool:
        return self._random.random() < self._drop_incoming or self.cut_off
