"""Transport that drops messages on purpose, for demonstrations and tests of reliability."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from random import Random

from .base import Batch, Envelope, NodeHealth, Received, Transport


class LossyTransport:
    """Transport that drops a share of the live messages, chosen by a seed. Messages that are
    fetched from Store always arrive.

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
        """True if the inner transport has a Store."""
        return self._inner.has_store

    async def open(self) -> None:
        """Open this transport and the inner transport."""
        await self._inner.open()

    async def aclose(self) -> None:
        """Close this transport and the inner transport."""
        await self._inner.aclose()

    def envelope(
        self, payload: bytes, *, timestamp_ns: int, ephemeral: bool, meta: bytes = b""
    ) -> Envelope:
        """Make an envelope, as the inner transport does."""
        return self._inner.envelope(
            payload, timestamp_ns=timestamp_ns, ephemeral=ephemeral, meta=meta
        )

    async def publish(self, envelope: Envelope) -> Envelope | None:
        """Broadcast an envelope, or drop it silently while the transport is cut off."""
        return None if self.cut_off else await self._inner.publish(envelope)

    async def receive(self) -> Batch:
        """Receive the messages that are not dropped."""
        batch = await self._inner.receive()
        kept = [message for message in batch.messages if not self._loses()]
        self.dropped += len(batch.messages) - len(kept)
        return Batch(kept, batch.gap)

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        """Fetch stored messages by hash, but no messages while the transport is cut off."""
        return [] if self.cut_off else await self._inner.by_hash(hashes)

    async def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        """Fetch stored messages by time, but no messages while the transport is cut off."""
        if self.cut_off:
            return
        async with aclosing(self._inner.by_time(start_ns, end_ns)) as pages:
            async for page in pages:
                yield page

    def renew(self) -> None:
        """Subscribe again at the inner transport."""
        self._inner.renew()

    async def handed_over(self) -> None:
        """Wait until others have fetched the published messages."""
        await self._inner.handed_over()

    def nodes(self) -> tuple[NodeHealth, ...]:
        """Return the state of each node of the inner transport."""
        return self._inner.nodes()

    async def nodes_changed(self) -> None:
        """Wait until the state of a node changes."""
        await self._inner.nodes_changed()

    def _loses(self) -> bool:
        return self._random.random() < self._drop_incoming or self.cut_off
