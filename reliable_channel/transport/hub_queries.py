"""Store queries of a hub, in which one request asks for several content topics.

Each channel queries the Store once a minute for missing messages, and usually misses no message. A
thousand separate requests without a result would keep a hub and its node busy.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final
from urllib.parse import quote

import anyio

from waku._paging import all_entries
from waku.errors import NodeUnreachable, RateLimited, WakuError
from waku.models import StoreEntry, StorePage, StoreQuery

__all__ = ["StoreQueries"]

SPACING_S: Final = 1.0
"""Minimum time between two requests, in which queries of other topics are collected (s)."""
MAX_TOPICS: Final = 100
"""Maximum number of content topics in one request (13/WAKU2-STORE)."""
MAX_TOPIC_BYTES: Final = 3_000
"""Maximum length of the topics in the URL of one request (bytes). A node accepts URLs of about 8
kB."""
MAX_PAGES: Final = 5
"""Maximum number of pages of one query for many, so that each topic may have some messages."""

Store = Callable[[StoreQuery], Awaitable[StorePage]]


@dataclass(eq=False, slots=True)
class _Asker:
    query: StoreQuery
    page: StorePage | None = None
    error: WakuError | None = None
    is_alone: bool = False
    """True if the request for many did not answer it."""

    @property
    def waits(self) -> bool:
        return self.page is None and self.error is None and not self.is_alone


class _Line:
    """Queries that differ in their topics and a little in their times."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = anyio.Lock()
        self._askers: list[_Asker] = []
        self._limit = MAX_TOPICS
        self._asked_s = -inf

    async def page(self, query: StoreQuery) -> StorePage:
        asker = _Asker(query)
        self._askers.append(asker)
        try:
            async with self._lock:
                if asker.waits:
                    await self._gather()
                if asker.waits:
                    await self._ask(self._batch(asker))
        finally:
            self._askers.remove(asker)
        if asker.error is not None:
            raise asker.error
        return await self._store(query) if asker.page is None else asker.page

    async def _gather(self) -> None:
        """Wait for others, unless there are enough or the last request is long ago."""
        wait_s = self._asked_s + SPACING_S - anyio.current_time()
        if wait_s > 0 and sum(asker.waits for asker in self._askers) < self._limit:
            await anyio.sleep(wait_s)
        self._asked_s = anyio.current_time()

    def _batch(self, first: _Asker) -> list[_Asker]:
        """Return the askers of the next request."""
        batch, size_bytes = list[_Asker](), 0
        waiting = [asker for asker in self._askers if asker.waits and asker is not first]
        for asker in [first, *waiting][: self._limit]:
            size_bytes += sum(len(quote(topic, safe="")) for topic in asker.query.content_topics)
            if batch and size_bytes > MAX_TOPIC_BYTES:
                break
            batch.append(asker)
        return batch

    async def _ask(self, batch: Sequence[_Asker]) -> None:
        if len(batch) == 1:
            batch[0].is_alone = True
            return
        together = _together([asker.query for asker in batch])
        pages = all_entries(self._store, together, max_pages=MAX_PAGES, call="store")
        try:
            entries = [entry async for entry in pages]
        except (NodeUnreachable, RateLimited) as error:
            for asker in batch:
                asker.error = error
        except WakuError:  # it may be the request for many that the node refuses
            self._limit = max(self._limit // 2, 1)
            for asker in batch:
                asker.is_alone = True
        else:
            self._limit = min(2 * self._limit, MAX_TOPICS)
            by_topic: dict[str, list[StoreEntry]] = {}
            for entry in entries:
                if entry.message is not None:
                    by_topic.setdefault(entry.message.content_topic, []).append(entry)
            for asker in batch:
                part = _part(by_topic, asker.query)
                asker.is_alone = len(part) > (asker.query.page_size or inf)
                asker.page = None if asker.is_alone else StorePage(part, None)


class StoreQueries:
    """Client of one node's Store, which fetches the first pages of several topics in one request.

    Args:
        store: returns a page of one query.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lines: dict[tuple[StoreQuery, int], _Line] = {}

    async def page(self, query: StoreQuery) -> StorePage:
        """Return a page of messages for a query.

        Raises:
            WakuError: the node does not answer, or refuses the query.
        """
        start_ns, end_ns = query.start_time_ns, query.end_time_ns
        if query.cursor is not None or query.hashes or start_ns is None or end_ns is None:
            return await self._store(query)
        # A query for months must not hold up those for minutes, nor add to their answers.
        kind = replace(query, content_topics=(), start_time_ns=None, end_time_ns=None)
        line = (kind, (end_ns - start_ns).bit_length() // 3)
        if line not in self._lines:
            self._lines[line] = _Line(self._store)
        return await self._lines[line].page(query)


def _together(queries: Sequence[StoreQuery]) -> StoreQuery:
    """Return one query for the topics and times of several."""
    return replace(
        queries[0],
        content_topics=tuple(
            dict.fromkeys(topic for one in queries for topic in one.content_topics)
        ),
        start_time_ns=min(query.start_time_ns or 0 for query in queries),
        end_time_ns=max(query.end_time_ns or 0 for query in queries),
    )


def _part(
    by_topic: Mapping[str, Sequence[StoreEntry]], query: StoreQuery
) -> tuple[StoreEntry, ...]:
    """Return what the pages for many have for one query."""
    start_ns, end_ns = query.start_time_ns or 0, query.end_time_ns or 0
    return tuple(
        entry
        for topic in query.content_topics
        for entry in by_topic.get(topic, ())
        if entry.message is not None and start_ns <= entry.message.timestamp <= end_ns
    )
