"""Queries of channels on one topic, counted at the Store."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import anyio
import pytest

from reliable_channel.transport import MemoryNetwork, MemoryTransport, Received, StoreUnavailable
from reliable_channel.transport.hub_store import PAGES_AHEAD, TopicStore
from tests.channel.world import now_ns

pytestmark = pytest.mark.anyio

CHANNELS = [f"channel {number}" for number in range(20)]


class Counting(MemoryTransport):
    """Counts queries, and answers them when it may."""

    def __init__(self, network: MemoryNetwork) -> None:
        super().__init__(network)
        self.queries: list[tuple[int, int]] = []
        self.pages = 0
        self.may_answer = anyio.Event()
        self.may_answer.set()

    async def by_time(self, start_ns: int, end_ns: int) -> AsyncGenerator[list[Received], None]:
        self.queries.append((start_ns, end_ns))
        await self.may_answer.wait()
        async with aclosing(super().by_time(start_ns, end_ns)) as pages:
            async for page in pages:
                for received in page:
                    self.pages += 1
                    yield [received]


def channel_of(payload: bytes) -> str | None:
    return None if payload == b"sealed" else payload.decode()


async def stored(transport: Counting, payload: bytes) -> int:
    await transport.publish(transport.envelope(payload, timestamp_ns=now_ns(), ephemeral=False))
    await anyio.sleep(0.01)
    return now_ns()


async def fetched(store: TopicStore, channel_id: str, start_ns: int, end_ns: int) -> list[bytes]:
    pages = store.by_time(channel_id, start_ns, end_ns)
    found = [received.payload async for page in pages for received in page]
    await pages.aclose()
    return found


async def test_queries_at_the_same_time_are_two() -> None:
    transport = Counting(MemoryNetwork())
    await transport.open()
    middle_ns = 0
    for name in [*CHANNELS, "sealed"]:
        middle_ns = middle_ns or now_ns() + 1
        end_ns = await stored(transport, name.encode())
    found: dict[str, list[bytes]] = {}
    async with anyio.create_task_group() as tasks:
        store = TopicStore(transport, tasks, channel_of)

        async def ask(name: str, start_ns: int) -> None:
            found[name] = await fetched(store, name, start_ns, end_ns)

        for name in CHANNELS:
            tasks.start_soon(ask, name, middle_ns if name == CHANNELS[0] else 0)
    assert found == {
        name: ([] if name == CHANNELS[0] else [name.encode()]) + [b"sealed"] for name in CHANNELS
    }
    assert len(transport.queries) <= 2


async def test_a_store_that_is_away_is_told_to_all() -> None:
    network = MemoryNetwork()
    transport = Counting(network)
    await transport.open()
    network.away = True
    async with anyio.create_task_group() as tasks:
        store = TopicStore(transport, tasks, channel_of)

        async def ask(name: str) -> None:
            with pytest.raises(StoreUnavailable):
                await fetched(store, name, 0, now_ns())

        for name in CHANNELS:
            tasks.start_soon(ask, name)
    assert len(transport.queries) <= 2


async def test_pages_wait_for_the_slowest_and_not_for_who_has_gone() -> None:
    transport = Counting(MemoryNetwork())
    await transport.open()
    for _ in range(3 * PAGES_AHEAD):
        await stored(transport, b"sealed")
    async with anyio.create_task_group() as tasks:
        store = TopicStore(transport, tasks, channel_of)
        pages = store.by_time("slow", 0, now_ns())
        await anext(pages)
        await anyio.wait_all_tasks_blocked()
        assert transport.pages <= PAGES_AHEAD + 2
        assert len([page async for page in pages]) == 3 * PAGES_AHEAD - 1
        left = store.by_time("gone", 0, now_ns())
        await anext(left)
        await left.aclose()
        assert len(await fetched(store, "other", 0, now_ns())) == 3 * PAGES_AHEAD


async def test_who_asks_when_the_topic_closes_is_told() -> None:
    transport = Counting(MemoryNetwork())
    await transport.open()
    transport.may_answer = anyio.Event()
    async with anyio.create_task_group() as channels:
        async with anyio.create_task_group() as tasks:
            store = TopicStore(transport, tasks, channel_of)

            async def ask(name: str) -> None:
                with pytest.raises(StoreUnavailable, match="closed"):
                    await fetched(store, name, 0, now_ns())

            for name in CHANNELS:
                channels.start_soon(ask, name)
            await anyio.wait_all_tasks_blocked()
            store.close()
            tasks.cancel_scope.cancel()
    with pytest.raises(StoreUnavailable, match="closed"):
        await fetched(store, "late", 0, now_ns())


async def test_a_long_history_holds_up_no_short_query() -> None:
    transport = Counting(MemoryNetwork())
    await transport.open()
    for _ in range(3 * PAGES_AHEAD):
        newest_ns = await stored(transport, b"sealed")
    found: list[bytes] = []
    async with anyio.create_task_group() as tasks:
        store = TopicStore(transport, tasks, channel_of)
        history = store.by_time("slow", 0, newest_ns)
        await anext(history)

        async def ask() -> None:
            found.extend(await fetched(store, "quick", newest_ns - 10**9, newest_ns))

        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        assert found == 3 * PAGES_AHEAD * [b"sealed"]
        await history.aclose()


async def test_a_slow_channel_is_left_behind_and_misses_nothing(virtual_time: None) -> None:
    transport = Counting(MemoryNetwork())
    await transport.open()
    for _ in range(3 * PAGES_AHEAD):
        newest_ns = await stored(transport, b"sealed")
    found: list[bytes] = []
    async with anyio.create_task_group() as tasks:
        store = TopicStore(transport, tasks, channel_of)
        slow = store.by_time("slow", 0, newest_ns)

        async def ask() -> None:
            found.extend(await fetched(store, "quick", 0, newest_ns))

        tasks.start_soon(ask)
        hashes = {received.message_hash for received in await anext(slow)}
        await anyio.sleep(60)
        assert found == 3 * PAGES_AHEAD * [b"sealed"]
        async for page in slow:
            hashes.update(received.message_hash for received in page)
    assert len(hashes) == 3 * PAGES_AHEAD
