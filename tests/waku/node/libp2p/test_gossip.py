"""Embedded nodes in the meshes of libp2p's relay."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from urllib.parse import quote

import anyio
import httpx
import pytest

from reliable_channel.diagnostics import TransportDegraded
from reliable_channel.events import MessageSent
from reliable_channel.sds.dialects import SpecCodec
from tests import inside, virtual_time
from tests.channel.world import listening, make_channel
from tests.transport.nodes import over
from tests.waku.node.wires import HERE
from waku import RelayLeaf, StoreQuery, WakuMessage
from waku.libp2p import KeyType, Multiaddr, PrivateKey
from waku.libp2p.driver import Host
from waku.libp2p.gossipsub import RELAY
from waku.libp2p.gossipsub_pb2 import GossipRpc
from waku.node import EmbeddedNode, Listen, NodeOptions, RelayFull, ServiceRefused

pytestmark = pytest.mark.anyio

SHARD = "/waku/2/rs/42/0"
OTHER_SHARD = "/waku/2/rs/42/1"
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


def has(node: EmbeddedNode, payload: bytes) -> bool:
    return payload in stored(node)


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


async def test_a_lone_nodes_message_reaches_a_peer_that_comes_just_after() -> None:
    async with EmbeddedNode(OPTIONS, listen=HERE) as early:
        early.publish(SHARD, message(b"early"))
        async with EmbeddedNode(OPTIONS, relay_peers=early.libp2p_addresses) as late:
            begun = anyio.current_time()
            await until(lambda: stored(late) == [b"early"])
            assert anyio.current_time() - begun < 0.5, "before the heartbeat"


async def test_a_message_reaches_a_peer_that_subscribes_just_after() -> None:
    two = replace(OPTIONS, num_shards=2)
    quiet = replace(two, shards=(1,))
    async with (
        EmbeddedNode(two, listen=HERE) as one,
        EmbeddedNode(quiet, relay_peers=one.libp2p_addresses) as other,
    ):
        await until(lambda: bool(one.mesh.followers(OTHER_SHARD)))
        one.publish(SHARD, message(b"early"))
        begun = anyio.current_time()
        other.relay.subscribe(other.clients.unnamed, SHARD)
        other.announce_topics()
        await until(lambda: b"early" in stored(other))
        assert anyio.current_time() - begun < 0.5, "before the heartbeat"


async def test_a_peer_that_restarts_is_met_anew_at_once() -> None:
    """It comes back between two heartbeats, and knows nothing of the topics it was told."""
    key = PrivateKey(KeyType.SECP256K1, b"\x07" * 32)
    async with EmbeddedNode(OPTIONS, listen=HERE) as stays:
        for number in range(3):
            async with EmbeddedNode(OPTIONS, listen=Listen(HERE, identity=key)) as node:
                await stays.dial(node.libp2p_addresses[0], stay=False)
                begun = anyio.current_time()
                node.publish(SHARD, message(b"%d" % number))
                stays.publish(SHARD, message(b"to %d" % number))
                await until(partial(has, stays, b"%d" % number))
                await until(partial(has, node, b"to %d" % number))
                assert anyio.current_time() - begun < 0.5, "before the heartbeat"


@pytest.mark.parametrize("path", ["/relay/v1/subscriptions", "/relay/v1/auto/subscriptions"])
async def test_a_subscription_is_answered_when_peers_were_told(path: str) -> None:
    topic = TOPIC if "auto" in path else SHARD
    quiet = replace(OPTIONS, num_shards=2, shards=(1,))
    async with (
        EmbeddedNode(quiet, listen=HERE) as one,
        EmbeddedNode(quiet, relay_peers=one.libp2p_addresses) as other,
        httpx.AsyncClient(transport=httpx.ASGITransport(other.app), base_url="http://o") as rest,
    ):
        await until(lambda: bool(one.mesh.followers(OTHER_SHARD)))
        assert (await rest.post(path, json=[topic])).status_code == 200
        assert not inside.node_router(other).waiting, "it has left"
        await until(lambda: one.mesh.followers(SHARD) == 1)
        assert (await rest.request("DELETE", path, json=[topic])).status_code == 200
        assert not inside.node_router(other).waiting
        await until(lambda: one.mesh.followers(SHARD) == 0)


@pytest.mark.parametrize(
    "path", [f"/relay/v1/messages/{quote(SHARD, '')}", "/relay/v1/auto/messages"]
)
async def test_a_publication_is_answered_when_peers_were_sent_it(path: str) -> None:
    async with (
        EmbeddedNode(OPTIONS, listen=HERE) as one,
        EmbeddedNode(OPTIONS, relay_peers=one.libp2p_addresses) as other,
        httpx.AsyncClient(transport=httpx.ASGITransport(other.app), base_url="http://o") as rest,
    ):
        await until(lambda: other.mesh.followers(SHARD) == 1)
        body = {"payload": "YQ==", "contentTopic": TOPIC}
        assert (await rest.post(path, json=body)).status_code == 200
        assert not inside.node_router(other).waiting, "it has left"
        await until(lambda: stored(one) == [b"a"])


async def test_a_peer_that_hangs_delays_answers_a_little() -> None:
    quiet = replace(OPTIONS, num_shards=2, shards=(1,))
    async with (
        EmbeddedNode(quiet, listen=HERE) as node,
        httpx.AsyncClient(transport=httpx.ASGITransport(node.app), base_url="http://n") as rest,
        Host(PrivateKey(KeyType.SECP256K1, b"\x09" * 32)) as host,
    ):
        link = await host.dial(Multiaddr.parse(node.libp2p_addresses[0]))
        async with link.open([RELAY]) as stream:
            link.connection.receive = _reads_nothing  # type: ignore[method-assign]
            rpc = GossipRpc()
            rpc.subscriptions.add(subscribe=True, topic=OTHER_SHARD)
            await stream.send_message(rpc.SerializeToString())
            await until(lambda: bool(inside.node_router(node).subscribers(OTHER_SHARD)))
            for number in range(5):
                node.publish(OTHER_SHARD, message(b"%d" % number + bytes(100_000)))
            await anyio.sleep(5)
            assert inside.node_router(node).waiting, "for credit"
            begun = anyio.current_time()
            answer = await rest.post("/relay/v1/subscriptions", json=[SHARD])
            assert answer.status_code == 200
            assert anyio.current_time() - begun == pytest.approx(1)
            body = {"payload": "YQ==", "contentTopic": TOPIC}
            answer = await rest.post(f"/relay/v1/messages/{quote(SHARD, '')}", json=body)
            assert answer.status_code == 200
            assert anyio.current_time() - begun == pytest.approx(1.1)


def _reads_nothing(data: bytes, now_ms: int) -> None:
    """As a program that hangs: the bytes lie there."""


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
