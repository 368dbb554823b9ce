"""Publications of other members, fetched several at a time and delivered in order and once."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from ..errors import SvsError
from ..events import PublicationsKnown
from ..name import Name
from .events import PublicationReceived, PublicationUnavailable
from .options import NodeOptions

Place = tuple[Name, int, int]
"""Name of a node, a bootstrap time and a sequence number."""
Outcome = PublicationReceived | PublicationUnavailable


@dataclass(slots=True)
class _Stream:
    """The publications of one node and bootstrap time that are still to be had."""

    next_fetched: int
    next_delivered: int
    last: int
    ready: dict[int, Outcome] = field(default_factory=dict)
    turn: anyio.Lock = field(default_factory=anyio.Lock)


class Gone(SvsError):
    """Error that the publisher no longer has a publication."""


class Fetcher:
    """Fetches publications of other members when they become known.

    `fetch` returns the content of a publication or raises an `SvsError`. After an error other than
    `Gone`, the publication is requested again after growing pauses. While `deliver` waits, at most
    a window of publications is fetched.
    """

    def __init__(
        self,
        tasks: TaskGroup,
        fetch: Callable[[Place], Awaitable[bytes]],
        deliver: Callable[[Outcome], Awaitable[None]],
        options: NodeOptions,
    ) -> None:
        self._tasks, self._fetch, self._deliver, self._options = tasks, fetch, deliver, options
        self._streams: dict[tuple[Name, int], _Stream] = {}
        self._open = anyio.Semaphore(options.concurrent_fetches)

    def want(self, known: PublicationsKnown) -> None:
        key = known.name, known.bootstrap_time
        stream = self._streams.get(key)
        if stream is None:
            stream = _Stream(known.first_seq, known.first_seq, known.last_seq)
            self._streams[key] = stream
        stream.last = known.last_seq
        self._start(key, stream)

    def _start(self, key: tuple[Name, int], stream: _Stream) -> None:
        # Numbers are a claim of others, up to 2^64 - 1: only a window of them costs anything.
        end = min(stream.last + 1, stream.next_delivered + self._options.window)
        while stream.next_fetched < end:
            self._tasks.start_soon(self._one, key, stream, stream.next_fetched)
            stream.next_fetched += 1

    async def _one(self, key: tuple[Name, int], stream: _Stream, seq: int) -> None:
        stream.ready[seq] = await self._insist((*key, seq))
        async with stream.turn:
            while (outcome := stream.ready.pop(stream.next_delivered, None)) is not None:
                await self._deliver(outcome)
                stream.next_delivered += 1
                self._start(key, stream)
                if stream.next_delivered > stream.last:
                    del self._streams[key]

    async def _insist(self, place: Place) -> Outcome:
        pause_ms = self._options.retry_min_ms
        give_up_at = anyio.current_time() + self._options.give_up_after_ms / 1000
        while True:
            try:
                async with self._open:
                    return PublicationReceived(*place, await self._fetch(place))
            except SvsError as error:
                if isinstance(error, Gone) or anyio.current_time() >= give_up_at:
                    return PublicationUnavailable(*place, str(error))
            await anyio.sleep(pause_ms / 1000)
            pause_ms = min(2 * pause_ms, self._options.retry_max_ms)
