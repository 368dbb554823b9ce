"""Queries of several topics, counted as requests to a Store."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

import anyio
import pytest

from reliable_channel.transport.hub_queries import (
    MAX_BYTES,
    MAX_TOPIC_BYTES,
    MAX_TOPICS,
    SPACING_S,
    StoreQueries,
)
from waku.errors import BadRequest, NodeUnreachable, WakuError
from waku.models import StoreEntry, StorePage, StoreQuery, WakuMessage

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("virtual_time")]

TOPICS = [f"/app/1/room-{number}/proto" for number in range(150)]
LONG_AGO_NS = 1_000


class Store:
    """One message a second of each topic; pages are as large as it likes."""

    def __init__(self, *, page_size: float = inf, payload: bytes = b"") -> None:
        self.queries: list[StoreQuery] = []
        self.error: Callable[[StoreQuery], WakuError | None] = lambda query: None
        self._page_size = page_size
        self._payload = payload

    async def __call__(self, query: StoreQuery) -> StorePage:
        self.queries.append(query)
        await anyio.sleep(0.001)
        if (error := self.error(query)) is not None:
            raise error
        assert query.start_time_ns is not None and query.end_time_ns is not None
        entries = [
            StoreEntry(bytes(32), WakuMessage(self._payload, topic, timestamp=at_ns), None)
            for topic in query.content_topics
            for at_ns in range(query.start_time_ns, query.end_time_ns + 1)
        ]
        begin = int.from_bytes(query.cursor or b"")
        end = min(begin + self._page_size, len(entries), begin + 10_000)
        cursor = int(end).to_bytes(32) if end < len(entries) else None
        return StorePage(tuple(entries[begin : int(end)]), cursor)


def asking(number: int, *, seconds: int = 4) -> StoreQuery:
    """A query of one topic; each a little later than the one before."""
    start_ns = LONG_AGO_NS + number % 3
    return StoreQuery(
        content_topics=(TOPICS[number],), start_time_ns=start_ns, end_time_ns=start_ns + seconds
    )


async def answers(store: Store, queries: Sequence[StoreQuery]) -> list[StorePage | WakuError]:
    """What each query brings; all are asked at once."""
    shared = StoreQueries(store)
    found: list[StorePage | WakuError | None] = [None] * len(queries)

    async def ask(number: int) -> None:
        try:
            found[number] = await shared.page(queries[number])
        except WakuError as error:
            found[number] = error

    async with anyio.create_task_group() as tasks:
        for number in range(len(queries)):
            tasks.start_soon(ask, number)
    return [one for one in found if one is not None]


async def test_each_gets_its_own_and_requests_are_few() -> None:
    store = Store()
    queries = [asking(number) for number in range(len(TOPICS))]
    for query, page in zip(queries, await answers(store, queries), strict=True):
        assert isinstance(page, StorePage) and page.cursor is None
        messages = [entry.message for entry in page.entries if entry.message is not None]
        found = [(message.content_topic, message.timestamp) for message in messages]
        assert query.start_time_ns is not None
        assert found == [(query.content_topics[0], query.start_time_ns + at) for at in range(5)]
    size = len("%2Fapp%2F1%2Froom-100%2Fproto")
    assert len(store.queries) <= 2 + len(TOPICS) * size // MAX_TOPIC_BYTES
    assert all(len(query.content_topics) <= MAX_TOPICS for query in store.queries)


async def test_the_first_query_goes_at_once_and_the_next_ones_a_second_later() -> None:
    store, begun_s = Store(), anyio.current_time()
    shared = StoreQueries(store)
    await shared.page(asking(0))
    assert anyio.current_time() - begun_s < 0.1
    await shared.page(asking(1))
    assert anyio.current_time() - begun_s >= SPACING_S


async def test_a_long_query_is_a_request_of_its_own() -> None:
    store = Store()
    await answers(store, [asking(0), asking(1), asking(2, seconds=4_000)])
    long = [query.content_topics for query in store.queries if TOPICS[2] in query.content_topics]
    assert long == [(TOPICS[2],)]


async def test_further_pages_are_fetched_for_all() -> None:
    store = Store(page_size=20)
    found = await answers(store, [asking(number) for number in range(50)])
    assert all(isinstance(page, StorePage) and len(page.entries) == 5 for page in found)
    assert len(store.queries) <= 20


async def test_pages_that_do_not_end_are_asked_for_by_each() -> None:
    store = Store(page_size=2)
    queries = [replace(asking(number), page_size=2) for number in range(50)]
    found = await answers(store, queries)
    assert all(isinstance(page, StorePage) and len(page.entries) == 2 for page in found)
    assert sum(len(query.content_topics) == 1 for query in store.queries) >= 50
    assert len(store.queries) <= 3 * len(queries)


async def test_one_with_more_than_a_page_reads_its_own() -> None:
    store = Store(page_size=20)
    queries = [asking(0), *(asking(number, seconds=n) for number, n in ((1, 4), (2, 7), (3, 7)))]
    await answers(store, [replace(query, page_size=6) for query in queries])
    alone = [query.content_topics for query in store.queries if len(query.content_topics) == 1]
    assert (TOPICS[2],) in alone and (TOPICS[3],) in alone and (TOPICS[1],) not in alone


async def test_large_messages_are_not_collected() -> None:
    store = Store(page_size=20, payload=bytes(MAX_BYTES // 30))
    found = await answers(store, [asking(number) for number in range(50)])
    assert all(isinstance(page, StorePage) and len(page.entries) == 5 for page in found)
    assert all(query.cursor in (None, (20).to_bytes(32)) for query in store.queries)


async def test_a_node_that_refuses_many_topics_is_asked_for_one() -> None:
    store = Store()
    store.error = lambda query: BadRequest("store") if len(query.content_topics) > 1 else None
    found = await answers(store, [asking(number) for number in range(20)])
    assert all(isinstance(page, StorePage) and len(page.entries) == 5 for page in found)


async def test_a_node_that_is_away_is_one_request() -> None:
    store = Store()
    store.error = lambda query: NodeUnreachable("store")
    found = await answers(store, [asking(number) for number in range(20)])
    assert all(isinstance(error, NodeUnreachable) for error in found)
    assert len(store.queries) <= 2


async def test_one_that_is_cancelled_holds_up_no_other() -> None:
    store = Store()
    shared = StoreQueries(store)
    await shared.page(asking(0))
    found: list[StorePage] = []

    async def ask(number: int) -> None:
        found.append(await shared.page(asking(number)))

    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as cancelled:
            cancelled.start_soon(ask, 1)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(ask, 2)
            await anyio.wait_all_tasks_blocked()
            cancelled.cancel_scope.cancel()
    assert [page.entries[0].message.content_topic for page in found] == [TOPICS[2]]  # type: ignore[union-attr]


async def test_pages_further_on_go_straight_to_the_node() -> None:
    store = Store()
    shared = StoreQueries(store)
    for _ in range(3):
        begun_s = anyio.current_time()
        query = asking(0)
        await shared.page(
            StoreQuery(
                content_topics=query.content_topics,
                start_time_ns=query.start_time_ns,
                end_time_ns=query.end_time_ns,
                cursor=bytes(32),
            )
        )
        assert anyio.current_time() - begun_s < 0.1
