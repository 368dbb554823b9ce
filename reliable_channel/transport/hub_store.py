"""Store queries of the channels of one content topic, combined into one query to the Store.

A Store finds messages by content topic, not by channel. If a hundred channels share a topic and
search at the same time, each would fetch the messages of all.
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
"""Time between two queries (s), in which those of other channels gather."""
_CLOSED: Final = "the hub's topic is closed"
PAGES_AHEAD: Final = 4
"""Pages that wait for the slowest channel. The query waits for it."""


class _Asker:
    """A channel's query, and the pages for it that were not taken yet."""

    def __init__(self, channel_id: str, start_ns: int, end_ns: int) -> None:
        self.channel_id = channel_id
        self.start_ns = start_ns
        self.end_ns = end_ns
        self.pages: deque[list[Received]] = deque()
        self.has_ended = False
        self.error: StoreUnavailable | None = None
        self.came = Notifier()

    def end(self, error: StoreUnavailable | None = None) -> None:
        """Add no more pages."""
        self.has_ended, self.error = True, error
        self.came.notify()


class TopicStore:
    """Queries by time of one content topic.

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
        self._waiting: list[_Asker] = []
        self._is_asking = self._is_closed = False
        self._taken = Notifier()

    def close(self) -> None:
        """Answer no further query, and end the tasks."""
        self._is_closed = True

    async def by_time(
        self, channel_id: str, start_ns: int, end_ns: int
    ) -> AsyncGenerator[list[Received], None]:
        """Fetch a channel's messages by time, including those that name no channel.

        Raises:
            StoreUnavailable: no Store answers.
        """
        if self._is_closed:
            raise StoreUnavailable(_CLOSED)
        asker = _Asker(channel_id, start_ns, end_ns)
        self._waiting.append(asker)
        if not self._is_asking:
            self._is_asking = True
            self._tasks.start_soon(self._ask, name="reliable_channel.hub_store")
        try:
            while asker.pages or not asker.has_ended:
                if not asker.pages:
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

    async def _ask(self) -> None:
        """Answer what waits, until nothing does."""
        asked: list[_Asker] = []
        try:
            while self._waiting:
                asked, self._waiting = self._waiting, []
                await self._answer(asked)
                await anyio.sleep(SPACING_S)
        finally:
            self._is_asking = False
            for asker in [*asked, *self._waiting]:
                if not asker.has_ended:
                    asker.end(StoreUnavailable(_CLOSED))

    async def _answer(self, asked: Sequence[_Asker]) -> None:
        start_ns = min(asker.start_ns for asker in asked)
        end_ns = max(asker.end_ns for asker in asked)
        pages = self._transport.by_time(start_ns, end_ns)
        try:
            async for page in pages:
                if not (asked := [asker for asker in asked if not asker.has_ended]):
                    return
                self._share_out(page, asked)
                while any(len(each.pages) >= PAGES_AHEAD and not each.has_ended for each in asked):
                    await self._taken.wait()
        except StoreUnavailable as error:
            for asker in asked:
                asker.end(error)
        else:
            for asker in asked:
                asker.end()
        finally:
            await pages.aclose()

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
