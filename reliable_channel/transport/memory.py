"""Network inside one process, for tests, and for channels that need no real network."""

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from hashlib import sha256
from threading import get_ident
from typing import Final
from weakref import WeakValueDictionary

import anyio
import mmh3

from .._notifier import Notifier
from .base import BaseTransport, Batch, Envelope, Received, Source, StoreUnavailable, TransportError
from .settings import WakuSettings

PAGE_SIZE: Final = 100
STORE_LIMIT_BYTES: Final = 32 * 1024 * 1024
"""Maximum size of the payloads in a network's Store (bytes). The oldest messages are evicted."""
AWAY: Final = "the network is away"
BEHIND: Final = 32
"""Number of a participant's unread messages from which a publisher waits for one event loop
turn."""


class MemoryNetwork:
    """Network that delivers each message to every open transport, and stores it.

    A memory network belongs to the thread of one event loop.
    """

    def __init__(self) -> None:
        self.store: dict[bytes, Received] = {}
        """What was published and is not ephemeral, by hash; the newest `STORE_LIMIT_BYTES`."""
        self.away = False
        """While set, everything fails as if the node were gone."""
        self._stored: deque[Received] = deque()
        self._stored_bytes = 0
        self._transports: list[MemoryTransport] = []
        self._thread = 0

    def transport(self, url: str = "") -> "MemoryTransport":
        """Return a transport for a new participant of this network."""
        return MemoryTransport(self, url)

    def broadcast(self, envelope: Envelope) -> bool:
        """Deliver an envelope to all participants, the sender included, and store it. Return True
        if a participant has many unread messages."""
        live = Received(
            envelope.payload,
            envelope.message_hash,
            envelope.timestamp_ns,
            Source.LIVE,
            envelope.meta,
        )
        if not envelope.ephemeral and envelope.message_hash not in self.store:
            self.store[live.message_hash] = live
            self._stored.append(live)
            self._stored_bytes += len(live.payload)
        while self._stored_bytes > STORE_LIMIT_BYTES:
            oldest = self._stored.popleft()
            self._stored_bytes -= len(oldest.payload)
            self.store.pop(oldest.message_hash, None)
        is_behind = False
        for transport in self._transports:
            is_behind |= transport.arrive(live) >= BEHIND
        return is_behind

    def join(self, transport: "MemoryTransport") -> None:
        """Add a transport, which receives broadcasts from now on.

        Raises:
            TransportError: from another thread, whose event loop would not wake up.
        """
        thread = get_ident()
        if not self._transports:
            self._thread = thread
        elif thread != self._thread:
            raise TransportError(
                f"{transport.url} is in use in another thread; all transports of a network in "
                "memory belong to one event loop",
                retryable=False,
            )
        if transport not in self._transports:
            self._transports.append(transport)

    def leave(self, transport: "MemoryTransport") -> None:
        """Remove a transport, which receives no more broadcasts."""
        if transport in self._transports:
            self._transports.remove(transport)


def _from_store(message: Received) -> Received:
    return replace(message, source=Source.STORE)


class MemoryTransport(BaseTransport):
    """Transport of one participant in a `MemoryNetwork`."""

    def __init__(self, network: MemoryNetwork, url: str = "") -> None:
        self.url = url
        self._network = network
        self._arrived: deque[Received] = deque()
        self._came = Notifier()

    async def open(self) -> None:
        """Join the network of the participant."""
        if self._network.away:
            raise TransportError(AWAY)
        self._network.join(self)

    async def aclose(self) -> None:
        """Leave the network of the participant."""
        self._network.leave(self)

    def envelope(
        self, payload: bytes, *, timestamp_ns: int, ephemeral: bool, meta: bytes = b""
    ) -> Envelope:
        """Make an envelope, whose hash covers payload, meta and time."""
        # Nothing forges a hash inside a process, so the payload is hashed in a fifth of the time.
        short = mmh3.hash_bytes(payload)
        digest = sha256(short + timestamp_ns.to_bytes(8) + meta).digest()
        return Envelope(payload, timestamp_ns, ephemeral, digest, meta)

    async def publish(self, envelope: Envelope) -> None:
        """Broadcast an envelope to all participants. If a participant has many unread messages,
        wait for one turn of the event loop."""
        if self._network.away:
            raise TransportError(AWAY)
        if self._network.broadcast(envelope):
            await anyio.lowlevel.checkpoint()

    async def receive(self) -> Batch:
        """Wait for messages of the memory network."""
        while not self._arrived:
            await self._came.wait()
        if self._network.away:
            raise TransportError(AWAY)
        arrived = list(self._arrived)
        self._arrived.clear()
        return Batch(arrived)

    async def by_hash(self, hashes: Sequence[bytes]) -> list[Received]:
        """Fetch messages by hash from the Store of the memory network."""
        await anyio.lowlevel.checkpoint()
        if self._network.away:
            raise StoreUnavailable(AWAY)
        store = self._network.store
        return [_from_store(store[h]) for h in hashes if h in store]

    async def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        """Fetch messages by time from the Store of the memory network."""
        await anyio.lowlevel.checkpoint()
        if self._network.away:
            raise StoreUnavailable(AWAY)
        found = sorted(
            (m for m in self._network.store.values() if start_ns <= m.timestamp_ns <= end_ns),
            key=lambda m: (m.timestamp_ns, m.message_hash),
        )
        for start in range(0, len(found), PAGE_SIZE):
            yield list(map(_from_store, found[start : start + PAGE_SIZE]))

    def arrive(self, received: Received) -> int:
        """Accept a message of the network. Return how many were not received yet."""
        self._arrived.append(received)
        if self._came.waiting:
            self._came.notify()
        return len(self._arrived)


_named: WeakValueDictionary[tuple[str, str], MemoryNetwork] = WeakValueDictionary()


def named_transport(url: str, settings: WakuSettings) -> MemoryTransport:
    """Return a transport in the memory network that the URL names (`memory://name`).

    The first transport of a name creates the network, and the last transport ends it.

    Raises:
        ValueError: it has no name.
    """
    name = url.partition("://")[2]
    if not name or {*"/?#"} & {*name}:
        raise ValueError(f"`node` must be memory://name (got {url!r})")
    network = _named.setdefault((name, settings.content_topic), MemoryNetwork())
    return network.transport(url)
