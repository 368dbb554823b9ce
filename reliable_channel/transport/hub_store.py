"""Store queries of the channels of one content topic, combined into one query.

A Store finds messages by content topic, not by channel. If a hundred channels searched one topic at
the same time, each would fetch all messages.
"""

from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final

import anyio
from anyio.abc import TaskGroup

from .._notifier import Notifier
from .base import Received, StoreUnavailable, Transport

__all__ = ["TopicStore"]

SPACING_S: Final = 1.0
"""Minimum time between two queries, in which queries of other channels are collected (s)."""
_CLOSED: Final = "the hub's topic is closed"
PAGES_AHEAD: Final = 4
"""Maximum number of pages that wait for a slow channel."""
PATIENCE_S: Final = 1.0
"""Longest time that other channels wait for a slow channel (s). The slow channel then queries again
from its last page."""


class _Asker:
    """A channel's query, and the pages for it that were not taken yet."""

    def __init__(self, channel_id: str, start_ns: int, end_ns: int) -> None:
        self.channel_id = channel_id
        self.start_ns = start_ns
        self.end_ns = end_ns
        self.pages: deque[list[Received]] = deque()
        self.has_ended = False
        self.is_left_behind = False
        """True if the query went on without it."""
        self.error: StoreUnavailable | None = None
        self.came = Notifier()

    @property
    def size(self) -> int:
        """Magnitude of the time span. Each is eight times the next smaller one."""
        return (self.end_ns - self.start_ns).bit_length() // 3

    @property
    def is_slow(self) -> bool:
        """True if it has no room for another page."""
        return len(self.pages) >= PAGES_AHEAD

    def end(self, error: StoreUnavailable | None = None) -> None:
        """Add no more pages."""
        self.has_ended, self.error = True, error
        self.came.notify()


class TopicStore:
    """Store queries by time of one content topic.

    Args:
        transport: the topic's transport.
        tasks: where a query runs.
        channel_of: reads the channel id of a payload.
    """

    def __init__(
        self, transport: Transport, tasks: TaskGroup, channel_of: Callable[[bytes], str | None]
    ) -> None:
        self._transport = transport
        self._tasks = tasks
        self._channel_of = channel_of
        self._waiting: dict[int, list[_Asker]] = {}
        """By size: a query for months must not hold up those for minutes."""
        self._is_closed = False
        self._taken = Notifier()
        """A page was taken, or another channel asks."""

    def close(self) -> None:
        """Answer no further queries, and end the tasks."""
        self._is_closed = True

    async def by_time(
        self, channel_id: str, start_ns: int, end_ns: int
    ) -> AsyncGenerator[list[Received], None]:
        """Fetch the stored messages of a channel by time, and messages whose channel cannot be
        read.

        Raises:
            StoreUnavailable: no Store answers.
        """
        asker = _Asker(channel_id, start_ns, end_ns)
        self._add(asker)
        try:
            while asker.pages or not asker.has_ended:
                if not asker.pages:
                    if asker.is_left_behind:
                        asker.is_left_behind = False
                        self._add(asker)
                    await asker.came.wait()
                    continue
                page = asker.pages.popleft()
                self._taken.notify()
                yield page
        finally:
            asker.end(asker.error)
            self._taken.notify()
        if asker.error is not None:
            raise asker.error

    def _add(self, asker: _Asker) -> None:
        """Ask with the next query of its size.

        Raises:
            StoreUnavailable: the topic is closed.
        """
        if self._is_closed:
            raise StoreUnavailable(_CLOSED)
        is_asking = asker.size in self._waiting
        self._waiting.setdefault(asker.size, []).append(asker)
        self._taken.notify()
        if not is_asking:
            self._tasks.start_soon(self._ask, asker.size, name="reliable_channel.hub_store")

    async def _ask(self, size: int) -> None:
        """Answer what waits of one size, until nothing does."""
        asked: list[_Asker] = []
        try:
            while waiting := self._waiting[size]:
                asked, self._waiting[size] = waiting, []
                await self._answer(asked, size)
                await anyio.sleep(SPACING_S)
        except BaseException:  # the topic is closed
            for asker in [*asked, *self._waiting[size]]:
                if not asker.has_ended:
                    asker.end(StoreUnavailable(_CLOSED))
            raise
        finally:
            del self._waiting[size]

    async def _answer(self, asked: Sequence[_Asker], size: int) -> None:
        start_ns = min(asker.start_ns for asker in asked)
        end_ns = max(asker.end_ns for asker in asked)
        pages = self._transport.by_time(start_ns, end_ns)
        try:
            async for page in pages:
                if not page:
                    continue
                if not (asked := await self._ready(asked, page, size)):
                    return
                self._share_out(page, asked)
        except StoreUnavailable as error:
            for asker in asked:
                asker.end(error)
        else:
            for asker in asked:
                asker.end()
        finally:
            await pages.aclose()

    async def _ready(
        self, asked: Sequence[_Asker], page: Sequence[Received], size: int
    ) -> list[_Asker]:
        """Wait for room for a page, and leave those behind that keep others waiting."""
        patient_until_s = anyio.current_time() + PATIENCE_S
        while True:
            asked = [asker for asker in asked if not asker.has_ended]
            slow = [asker for asker in asked if asker.is_slow]
            if not slow:
                return asked
            within_s = None
            if len(slow) < len(asked) or self._waiting[size]:
                within_s = patient_until_s - anyio.current_time()
                if within_s <= 0:
                    break
            await self._taken.wait(within_s)
        for asker in slow:
            asker.start_ns = min(received.timestamp_ns for received in page)
            asker.is_left_behind = True
        return [asker for asker in asked if asker not in slow]

    def _share_out(self, page: Sequence[Received], asked: Sequence[_Asker]) -> None:
        by_channel: dict[str | None, list[Received]] = {}
        for received in page:
            by_channel.setdefault(self._channel_of(received.payload), []).append(received)
        unnamed = by_channel.pop(None, [])
        for asker in asked:
            own = [
                received
                for received in [*by_channel.get(asker.channel_id, ()), *unnamed]
                if asker.start_ns <= received.timestamp_ns <= asker.end_ns
            ]
            if own:
                asker.pages.append(own)
                asker.came.notify()
