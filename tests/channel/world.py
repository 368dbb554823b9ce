"""Channels over a network in memory, and what they told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import anyio

from reliable_channel import ChannelOptions, MessageReceived, ReliableChannel
from reliable_channel.events import AnyEvent
from reliable_channel.options import BloomParameters, RepairOptions
from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.sds.message import Message
from reliable_channel.transport import (
    LossyTransport,
    MemoryNetwork,
    MemoryTransport,
    Transport,
)
from tests.virtual_time import limit_s

EPOCH_NS: Final = 1_700_000_000_000_000_000
CHANNEL_ID: Final = "general"

QUICK: Final = ChannelOptions(
    sync_min_interval_ms=40,
    retry_interval_ms=60,
    possibly_acknowledged_retry_interval_ms=120,
    max_retry_attempts=1_000,
    retrieve_frequency_ms=20,
    sweep_in_buf_interval_ms=20,
    timeout_for_lost_messages_ms=60_000,
    repair=RepairOptions(
        t_min_ms=10, t_max_ms=60, sweep_interval_ms=10, max_request_attempts=1_000
    ),
    causal_history_size=20,
    bloom=BloomParameters(capacity=200),
)
"""Everything a thousand times faster than usual, for tests that run in real time."""

E = TypeVar("E")


def now_ns() -> int:
    """The event loop's time as wall-clock time: on trio it is virtual."""
    return EPOCH_NS + int(anyio.current_time() * 1_000_000_000)


def make_channel(
    transport: Transport,
    sender_id: str,
    *,
    options: ChannelOptions = QUICK,
    seed: int = 1,
    **arguments: Any,
) -> ReliableChannel:
    return ReliableChannel(
        transport=transport,
        channel_id=CHANNEL_ID,
        sender_id=sender_id,
        options=options,
        now_ns=now_ns,
        seed=seed,
        **arguments,
    )


class Told:
    """What a channel told so far."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        self._changed = anyio.Event()

    async def listen(self, channel: ReliableChannel) -> None:
        async for event in channel.events():
            self.events.append(event)
            self._changed.set()
            self._changed = anyio.Event()

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, holds: Callable[[], object], *, within_s: float = 20) -> None:
        """Wait until something holds, looking after each event."""
        with anyio.fail_after(limit_s(within_s)):
            while not holds():
                await self._changed.wait()

    async def first(self, kind: type[E], *, within_s: float = 20) -> E:
        await self.until(lambda: self.of(kind), within_s=within_s)
        return self.of(kind)[0]

    @property
    def contents(self) -> list[bytes]:
        return [event.content for event in self.of(MessageReceived)]


@asynccontextmanager
async def listening(channel: ReliableChannel) -> AsyncIterator[Told]:
    """Open a channel and note what it tells."""
    told = Told()
    async with anyio.create_task_group() as tasks:
        async with channel:
            tasks.start_soon(told.listen, channel)
            yield told


class Spy(LossyTransport):
    """A way into a network that remembers what went out and can lose what comes in."""

    def __init__(self, inner: Transport, *, drop_incoming: float = 0, seed: int = 0) -> None:
        super().__init__(inner, drop_incoming=drop_incoming, seed=seed)
        self.sent: list[Message] = []

    async def publish(self, envelope: Any) -> None:
        await super().publish(envelope)
        self.sent.append(SpecCodec().decode(envelope.payload))


def spied(network: MemoryNetwork, **arguments: Any) -> Spy:
    return Spy(network.transport(), **arguments)


__all__ = [
    "CHANNEL_ID",
    "EPOCH_NS",
    "QUICK",
    "MemoryNetwork",
    "MemoryTransport",
    "Spy",
    "Told",
    "listening",
    "make_channel",
    "now_ns",
    "spied",
]
