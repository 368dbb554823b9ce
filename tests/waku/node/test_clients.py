"""Caches that overflow, and clients that have their own."""

from __future__ import annotations

import pytest

from tests import inside
from tests.waku.node.wires import TOPIC, message
from waku import StoreQuery, WakuClient, WakuMessage, message_hash
from waku.errors import NotSubscribed
from waku.node import EmbeddedNode, NodeOptions
from waku.node.cache import UnreadMessages

SHARD = "/waku/2/rs/1/0"


def put(cache: UnreadMessages, *numbers: int, topic: str = TOPIC, shard: str = SHARD) -> None:
    for number in numbers:
        one = WakuMessage(b"%d" % number, topic, timestamp=number)
        cache.add(message_hash(shard, one), shard, one)


def numbers(found: list[WakuMessage] | None) -> list[int] | None:
    return None if found is None else [int(one.payload) for one in found]


def test_a_full_cache_drops_the_oldest_timestamp() -> None:
    cache = UnreadMessages(3)
    cache.subscribe_content(TOPIC)
    put(cache, 5, 1, 4, 3, 2)
    assert (numbers(cache.take_content(TOPIC)), cache.dropped) == ([5, 4, 2], 2)


def test_the_capacity_is_for_all_topics_together() -> None:
    cache = UnreadMessages(2)
    cache.subscribe_content("/a")
    cache.subscribe_content("/b")
    put(cache, 1, topic="/a")
    put(cache, 2, 3, topic="/b")
    assert numbers(cache.take_content("/a")) == []
    assert numbers(cache.take_content("/b")) == [2, 3]


def test_a_message_is_read_once_by_either_topic() -> None:
    cache = UnreadMessages(50)
    cache.subscribe_pubsub(SHARD)
    put(cache, 1, 1)
    assert numbers(cache.take_content(TOPIC)) == [1]
    put(cache, 1, 2)
    assert numbers(cache.take_pubsub(SHARD)) == [1, 2]
    assert cache.take_pubsub(SHARD) == [] == cache.take_content(TOPIC)
    assert cache.take_pubsub("/other") is None is cache.take_content("/other")


def test_unsubscribing_forgets() -> None:
    cache = UnreadMessages(50)
    cache.subscribe_pubsub(SHARD)
    cache.subscribe_content(TOPIC)
    put(cache, 1)
    cache.unsubscribe_content(TOPIC)
    assert (len(cache), cache.take_content(TOPIC), cache.take_pubsub(SHARD)) == (0, None, [])
    put(cache, 2)
    cache.unsubscribe_pubsub(SHARD)
    cache.unsubscribe_pubsub(SHARD)
    assert (len(cache), cache.take_content(TOPIC), cache.take_pubsub(SHARD)) == (0, [], None)
    put(cache, 3)
    cache.clear()
    put(cache, 4)
    assert len(cache) == 0


def client(node: EmbeddedNode, client_id: str) -> WakuClient:
    return WakuClient("http://node", app=node.app, client_id=client_id)


@pytest.mark.anyio
async def test_each_client_reads_for_itself() -> None:
    async with EmbeddedNode() as node, client(node, "one") as one, client(node, "two") as two:
        shard = node.shard_for(TOPIC)
        for reader in (one, two):
            await reader.relay_auto_subscribe([TOPIC])
            await reader.filter_subscribe([TOPIC])
        await one.relay_subscribe([shard])
        await two.lightpush(message(1, timestamp=5))
        expected = [message(1, timestamp=5)]
        for reader in (one, two):
            assert list(await reader.relay_auto_messages(TOPIC)) == expected
            assert list(await reader.filter_messages(TOPIC)) == expected
            assert not await reader.relay_auto_messages(TOPIC)
        assert not await one.relay_messages(shard)  # read already, by its content topic
        await one.filter_unsubscribe_all()
        await one.relay_auto_unsubscribe([TOPIC])
        await one.relay_unsubscribe([shard])
        with pytest.raises(NotSubscribed):
            await one.filter_messages(TOPIC)
        await two.filter_ping()


@pytest.mark.anyio
async def test_a_slow_reader_finds_the_newest_fifty() -> None:
    async with EmbeddedNode() as node, client(node, "slow") as slow:
        await slow.filter_subscribe([TOPIC])
        for number in range(60):
            await slow.lightpush(message(number, timestamp=number + 1))
        found = [one.timestamp for one in await slow.filter_messages(TOPIC)]
        assert found == list(range(11, 61))
        page = await slow.store(StoreQuery(content_topics=(TOPIC,), page_size=100))
        assert len(page.entries) == 60


def test_idle_and_excess_clients_go() -> None:
    now = [0]
    options = NodeOptions(max_clients=2, client_idle_s=10, now_ns=lambda: now[0], shards=())
    node = EmbeddedNode(options)
    topic = node.shard_for(TOPIC)
    for name in ("one", "two", "one", "three"):
        found = node.clients.get(name)
        node.relay.subscribe_content(found, TOPIC)
        node.filter.subscribe(found, [(topic, TOPIC)])
    assert len(node.clients) == 2
    assert node.relay.follows(topic)
    now[0] = 10 * 10**9
    again = node.clients.get("one")
    assert len(node.clients) == 1 and again.relay_cache.take_content(TOPIC) is None
    assert not node.relay.follows(topic)
    assert not node.filter.criteria_by_peer()
    assert node.clients.get(None) is node.clients.unnamed
    assert node.archive is not None
    node.archive.close()


@pytest.mark.anyio
async def test_an_edge_node_is_served_by_one_that_it_is_joined_to() -> None:
    edge_options = NodeOptions(relay=False, store=False, filter=False, lightpush=False)
    async with EmbeddedNode() as full, EmbeddedNode(edge_options) as edge:
        edge.join(full)
        edge_client = edge.clients.get("reader")
        async with client(edge, "reader") as reader:
            await reader.filter_subscribe([TOPIC])
            assert (await reader.lightpush(message(1, timestamp=5))).relay_peer_count == 1
            assert list(await reader.filter_messages(TOPIC)) == [message(1, timestamp=5)]
            assert len((await reader.store(StoreQuery())).entries) == 1
            assert list(full.filter.criteria_by_peer()) == [edge.peer_id]
        inside.forget_client(edge, edge_client)
        assert not full.filter.criteria_by_peer()
