"""Embedded nodes in the meshes of libp2p's relay."""

from collections.abc import Callable
from functools import partial

import anyio
import pytest

from reliable_channel.diagnostics import TransportDegraded
from reliable_channel.events import MessageSent
from reliable_channel.sds.dialects import SpecCodec
from tests import virtual_time
from tests.channel.world import listening, make_channel
from tests.transport.nodes import over
from waku import RelayLeaf, StoreQuery, WakuMessage
from waku.libp2p import KeyType, PrivateKey
from waku.node import EmbeddedNode, NodeOptions, RelayFull, ServiceRefused

pytestmark = pytest.mark.anyio

SHARD = "/waku/2/rs/42/0"
TOPIC = "/app/1/chat/proto"
OPTIONS = NodeOptions(cluster_id=42, num_shards=1)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> virtual_time.Backend:
    return virtual_time.backend(request.param)


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(300):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.05)


def stored(node: EmbeddedNode) -> list[bytes]:
    assert node.archive is not None
    page = node.archive.query(StoreQuery(page_size=100))
    return sorted(e.message.payload for e in page.entries if e.message is not None)


def message(payload: bytes) -> WakuMessage:
    return WakuMessage(payload, TOPIC, timestamp=1)


async def test_nodes_hear_each_other_through_a_leaf() -> None:
    async with RelayLeaf(listen=["/ip4/127.0.0.1/tcp/0"], cluster_id=42, shards=[0]) as leaf:
        async with (
            EmbeddedNode(OPTIONS, relay_peers=leaf.addresses) as one,
            EmbeddedNode(OPTIONS, relay_peers=leaf.addresses) as other,
        ):
            await until(lambda: leaf.peers(SHARD) == 2)
            await until(lambda: one.mesh.followers(SHARD) == other.mesh.followers(SHARD) == 1)
            await anyio.sleep(3)  # heartbeats, after which both are in the mesh
            for number in range(20):
                assert one.publish(SHARD, message(b"one %d" % number)) == 1
                other.publish(SHARD, message(b"other %d" % number))
            await leaf.publish(message(b"leaf"), SHARD)
            await until(lambda: len(stored(one)) == len(stored(other)) == 41)
            await anyio.sleep(5)
            assert stored(one) == stored(other)


async def test_what_is_published_before_a_peer_is_there_leaves_when_it_comes() -> None:
    async with EmbeddedNode(OPTIONS, relay_peers=["/ip4/127.0.0.1/tcp/1"]) as alone:
        assert alone.publish(SHARD, message(b"early")) == 0
        assert alone.mesh.followers(SHARD) == 0
        assert [info.peer_id for info in alone.relay_peers()] == []
        assert stored(alone) == [b"early"]


async def test_a_full_queue_is_an_error_of_the_sender_and_loses_nothing() -> None:
    """A channel hears that relay is slow, and its messages leave when a peer comes."""
    key = PrivateKey(KeyType.SECP256K1, b"\x07" * 32)
    leaf = partial(RelayLeaf, identity=key, cluster_id=42, shards=[0])
    async with leaf(listen=["/ip4/127.0.0.1/tcp/0"]) as there:
        address = there.addresses[0]
    options = NodeOptions(cluster_id=42, num_shards=1, peer_queue_capacity=3)
    async with EmbeddedNode(options, relay_peers=[address]) as node:
        transport = over(node.app, pubsub_topic=SHARD)
        channel = make_channel(transport, "alice")
        async with listening(channel) as told:
            for number in range(6):
                await channel.send(b"%d" % number)
            degraded = await told.first(TransportDegraded)
            assert degraded.component == "send"
            assert "3 messages wait for relay peers, which are away or slow" in degraded.reason
            assert len(stored(node)) <= 3, "what goes nowhere is not kept as if it had"
            listen = [address.partition("/p2p/")[0]]
            async with leaf(listen=listen) as back, back.subscribe(SHARD) as messages:
                await told.until(lambda: len(told.of(MessageSent)) == 6)
                got = set[bytes]()
                while len(got) < 6:
                    sent = SpecCodec().decode((await messages.receive()).message.payload)
                    got |= {sent.content} if sent.content else set()
    assert got == {b"%d" % number for number in range(6)}


async def test_light_clients_and_the_node_itself_are_refused_alike() -> None:
    options = NodeOptions(cluster_id=42, num_shards=1, peer_queue_capacity=1)
    async with EmbeddedNode(options, relay_peers=["/ip4/127.0.0.1/tcp/1"]) as node:
        node.publish(SHARD, message(b"first"))
        with pytest.raises(RelayFull, match="1 messages wait for relay peers"):
            node.publish(SHARD, message(b"second"))
        with pytest.raises(ServiceRefused, match="wait for relay peers") as refused:
            await node.services.push(SHARD, message(b"third"))
        assert refused.value.status == 503
        assert stored(node) == [b"first"]


def test_a_cluster_with_rln_is_refused() -> None:
    with pytest.raises(ValueError, match="cluster 1 has RLN: relay needs a proof"):
        EmbeddedNode(relay_peers=["/ip4/127.0.0.1/tcp/1"])
