"""Edge nodes of go-waku as clients of the Python node: light push, filter and Store v3."""

import time

import anyio

from waku import StoreQuery, WakuClient, WakuMessage
from waku.topics import pubsub_topic_for

from ..needed import PATIENCE_S
from .bench import REST_PORT, Bench

TOPIC = "/reliable-channel/1/edge/proto"
PACE_S = 0.1
"""go-waku's filter client takes 15 pushes a second."""


def test_go_waku_pushes_filters_and_queries_through_the_python_node(bench: Bench) -> None:
    with bench.network("python") as network:
        edge = network.gateway("edge", "light")
        ours, theirs = (f"http://{one.address}:{REST_PORT}" for one in (network.node, edge))
        anyio.run(talk, ours, theirs, network.node_address("tcp"))


async def talk(ours: str, theirs: str, store: str) -> None:
    """The edge node's client hears what is published at ours, and the other way round."""
    async with WakuClient(ours) as node, WakuClient(theirs) as edge:
        await edge.filter_subscribe([TOPIC], pubsub_topic_for(TOPIC))
        sent = [message(number) for number in range(30)]
        for one in sent[:15]:
            await edge.lightpush_v1(one, pubsub_topic_for(TOPIC))
        for one in sent[15:]:
            await node.lightpush(one)
            await anyio.sleep(PACE_S)
        heard: set[bytes] = set()
        with anyio.fail_after(PATIENCE_S):
            while len(heard) < 30:
                heard |= {m.payload for m in await edge.filter_messages(TOPIC)}
                await anyio.sleep(PACE_S)
        query = StoreQuery(
            content_topics=(TOPIC,),
            pubsub_topic=pubsub_topic_for(TOPIC),
            page_size=12,
            peer_addr=store,
        )
        stored = [entry async for entry in edge.store_all(query)]
        assert [e.message.payload for e in stored if e.message] == [m.payload for m in sent]
        by_hash = StoreQuery(hashes=(stored[3].message_hash,), peer_addr=store)
        assert [e.message_hash for e in (await edge.store(by_hash)).entries] == [
            stored[3].message_hash
        ]


def message(number: int) -> WakuMessage:
    """One that was never published."""
    return WakuMessage(b"message %d" % number, TOPIC, timestamp=time.time_ns() + number)
