"""Relay leaves on loopback, in virtual time: meshes, foreign and hostile peers, slow readers."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest

from tests import inside
from tests.waku.libp2p.pair import DIALLER
from waku import WakuMessage, errors
from waku.discovery import Network
from waku.libp2p import InvalidInput, Libp2pError, Multiaddr, varint
from waku.libp2p.driver import Host, Link, MessageSink
from waku.libp2p.gossipsub import RELAY, GossipOptions
from waku.libp2p.gossipsub_pb2 import GossipRpc
from waku.p2p import (
    ClientEvent,
    MessageDropped,
    PeerBehind,
    PeerConnected,
    PeerLost,
    RelayLeaf,
)
from waku.p2p.codec import encode_message
from waku.p2p.relay import PEERS_S

pytestmark = pytest.mark.anyio

SHARD = "/waku/2/rs/42/0"
TOPIC = "/app/1/chat/proto"
HERE = "/ip4/127.0.0.1/tcp/0"


def message(payload: bytes, timestamp: int = 1) -> WakuMessage:
    return WakuMessage(payload, TOPIC, timestamp=timestamp)


def leaf(*addresses: str, **values: Any) -> RelayLeaf:
    return RelayLeaf(addresses, **{"cluster_id": 42, "shards": [0], **values})


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(300):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.05)


def has_mesh(one: RelayLeaf, size: int) -> bool:
    router = inside.router(one)
    return router is not None and len(router.mesh(SHARD)) == size


@asynccontextmanager
async def reading(one: RelayLeaf, *topics: str) -> AsyncIterator[list[bytes]]:
    """The payloads that a leaf gets."""
    read: list[bytes] = []

    async def collect(messages: Any) -> None:
        async for pushed in messages:
            read.append(pushed.message.payload)  # noqa: PERF401 as they come

    async with one.subscribe(SHARD, topics or None) as messages, anyio.create_task_group() as tasks:
        tasks.start_soon(collect, messages)
        yield read
        tasks.cancel_scope.cancel()


async def test_leaves_without_any_node_hear_each_other() -> None:
    async with leaf(listen=[HERE]) as alice, leaf(*alice.addresses) as bob:
        async with leaf(*alice.addresses) as carol:
            async with reading(alice) as a, reading(bob) as b, reading(carol) as c:
                await until(lambda: all(map(has_mesh, (alice, bob, carol), (2, 1, 1))))
                for number, one in enumerate((alice, bob, carol) * 5):
                    assert await one.publish(message(b"%d" % number), SHARD) >= 1
                # Carol and Bob know each other through Alice alone.
                await until(lambda: min(map(len, (a, b, c))) == 15)
                await anyio.sleep(10)
                assert (
                    sorted(a)
                    == sorted(b)
                    == sorted(c)
                    == sorted(b"%d" % number for number in range(15))
                )


async def test_a_reader_of_one_content_topic() -> None:
    async with leaf(listen=[HERE]) as alice, leaf(*alice.addresses) as bob:
        async with reading(bob, TOPIC) as ours, reading(bob, "/app/1/other/proto") as others:
            await alice.publish(message(b"x"), SHARD)
            await until(lambda: ours == [b"x"])
            assert others == []


async def test_a_peer_that_comes_back_is_met_again() -> None:
    events: list[ClientEvent] = []
    async with leaf(listen=[HERE]) as alice, leaf(*alice.addresses, on_event=events.append) as bob:
        async with reading(bob) as read:
            await alice.publish(message(b"before"), SHARD)
            await until(lambda: read == [b"before"])
            for link in list(inside.host(alice).links):
                link.close()
            await until(lambda: len([e for e in events if isinstance(e, PeerConnected)]) == 2)
            await alice.publish(message(b"after"), SHARD)
            await until(lambda: read == [b"before", b"after"])
    assert [type(event) for event in events] == [PeerConnected, PeerLost, PeerConnected]


async def test_what_is_published_in_one_go_leaves_at_the_pace_that_nodes_take() -> None:
    async with leaf(listen=[HERE]) as alice, leaf(*alice.addresses, publish_per_second=100) as bob:
        async with reading(alice) as read:
            await bob.publish(message(b"first"), SHARD)
            begun = anyio.current_time()
            async with anyio.create_task_group() as tasks:
                for number in range(300):
                    tasks.start_soon(bob.publish, message(b"%d" % number), SHARD)
            assert anyio.current_time() - begun > 2.7
            await until(lambda: len(read) == 301)


async def test_nobody_there() -> None:
    events: list[ClientEvent] = []
    nowhere = "/ip4/127.0.0.1/tcp/1"
    async with leaf(nowhere, on_event=events.append) as alone:
        begun = anyio.current_time()
        with pytest.raises(errors.NoPeers, match="no peer of /waku/2/rs/42/0 takes messages"):
            await alone.publish(message(b"x"), SHARD)
        assert anyio.current_time() - begun >= PEERS_S
    lost = [event for event in events if isinstance(event, PeerLost)]
    assert 4 <= len(lost) <= 6, "1, 2, 4, 8 and 16 s apart"


async def test_another_cluster_is_named_and_left_alone() -> None:
    events: list[ClientEvent] = []
    async with leaf(listen=[HERE], cluster_id=43) as other:
        async with leaf(*other.addresses, on_event=events.append):
            await anyio.sleep(60)
    (lost,) = events
    assert isinstance(lost, PeerLost) and "is in cluster 43, not 42" in lost.reason


async def test_a_peer_without_relay_is_named() -> None:
    events: list[ClientEvent] = []
    async with Host(DIALLER) as host:
        address = await host.listen(Multiaddr.parse(HERE))
        async with leaf(str(address), on_event=events.append):
            await until(lambda: bool(events))
    (lost,) = events
    assert isinstance(lost, PeerLost) and f"does not speak {RELAY}" in lost.reason


async def test_what_cannot_be_published() -> None:
    async with leaf() as alone:
        with pytest.raises(errors.WrongNetwork, match="is no shard of this leaf"):
            await alone.publish(message(b"x"), "/waku/2/rs/42/1")
        with pytest.raises(errors.WrongNetwork, match="is no shard of this leaf"):
            async with alone.subscribe("/waku/2/rs/42/1"):
                pass
        with pytest.raises(errors.MessageTooLarge, match="a message of"):
            await alone.publish(message(bytes(160_000)), SHARD)


def test_a_network_with_rln_is_refused() -> None:
    with pytest.raises(ValueError, match="cluster 1 has RLN: relay needs a proof"):
        RelayLeaf(cluster_id=1, shards=[0])
    with pytest.raises(ValueError, match="cluster 1 has RLN: relay needs a proof"):
        RelayLeaf(network="twn")
    own = Network(name="own", cluster_id=1, shards=(0,), max_message_bytes=1_000_000)
    assert inside.meshes(RelayLeaf(network=own)).options.message_bytes == 1_000_000
    with pytest.raises(ValueError, match="`cluster_id` or `network` must say"):
        RelayLeaf()
    with pytest.raises(ValueError, match="`shards` must name at least one"):
        RelayLeaf(cluster_id=42)
    with pytest.raises(ValueError, match="must be at least 1"):
        leaf(publish_per_second=0)
    with pytest.raises(InvalidInput, match="cannot be dialled"):
        leaf("/ip4/1.2.3.4/udp/1")


# Peers that are not ours


class Stranger:
    """A peer that sends what a test wants."""

    def __init__(self) -> None:
        self.heard: list[GossipRpc] = []

    def take(self, link: Any, data: bytes) -> None:
        self.heard.append(GossipRpc.FromString(data))

    @asynccontextmanager
    async def joined(self, one: RelayLeaf) -> AsyncIterator[Link]:
        sink = MessageSink(10_000_000, self.take)
        async with Host(DIALLER, handlers={RELAY: sink}) as host:
            yield await host.dial(Multiaddr.parse(one.addresses[0]))


def rpc(*payloads: bytes) -> GossipRpc:
    made = GossipRpc()
    for payload in payloads:
        made.publish.add(topic=SHARD, data=payload)
    return made


async def test_a_message_that_comes_again_in_other_bytes_is_delivered_once() -> None:
    """T15: nwaku encodes a message anew, so that its id in gossip is another."""
    data = encode_message(message(b"hello"))
    payload_last = data[2 + data[1] :] + data[: 2 + data[1]]
    async with leaf(listen=[HERE]) as alice, reading(alice) as read:
        async with Stranger().joined(alice) as link, link.open([RELAY]) as stream:
            await stream.send_message(rpc(data, payload_last).SerializeToString())
            await until(lambda: bool(read))
            await anyio.sleep(1)
    assert read == [b"hello"]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (rpc(b"\xff no message").SerializeToString(), "that is not valid"),
        (rpc(b"").SerializeToString(), "that is not valid"),
        (b"\xff\xff", "an RPC that cannot be read"),
    ],
)
async def test_a_peer_that_sends_nonsense_is_disconnected(wrong: bytes, reason: str) -> None:
    async with leaf(listen=[HERE]) as alice, leaf(*alice.addresses) as bob:
        async with reading(bob) as read, Stranger().joined(alice) as link:
            number = 0
            with anyio.fail_after(300):
                while link.is_open:
                    number += 1
                    sent = wrong
                    if reason == "that is not valid" and number > 1:
                        sent = rpc(b"\xff%d" % number).SerializeToString()
                    try:
                        async with link.open([RELAY]) as stream:
                            await stream.send_message(sent)
                            await anyio.sleep(0.01)
                    except Libp2pError:
                        await anyio.sleep(0.01)
            assert number >= 20
            await alice.publish(message(b"others are well"), SHARD)
            await until(lambda: read == [b"others are well"])


async def test_a_peer_that_sends_rpcs_that_are_too_long_is_disconnected() -> None:
    async with leaf(listen=[HERE], options=GossipOptions(rpc_bytes=300_000)) as alice:
        async with Stranger().joined(alice) as link:
            number = 0
            while link.is_open:
                number += 1
                with suppress(Libp2pError):
                    async with link.open([RELAY]) as stream:
                        await stream.send(varint.encode(300_001))
                        await stream.receive()
    assert number >= 20


async def test_an_rpc_that_is_too_long_costs_its_stream() -> None:
    async with leaf(listen=[HERE], options=GossipOptions(rpc_bytes=300_000)) as alice:
        async with Stranger().joined(alice) as link, reading(alice) as read:
            with pytest.raises(Libp2pError):
                async with link.open([RELAY]) as stream:
                    await stream.send_message(bytes(300_001))
                    await stream.receive()
            async with link.open([RELAY]) as stream:
                good = encode_message(message(b"good"))
                await stream.send_message(rpc(good).SerializeToString())
                await until(lambda: read == [b"good"])


async def test_a_reader_that_is_slow_loses_messages_and_the_loss_is_an_event() -> None:
    events: list[ClientEvent] = []
    async with leaf(listen=[HERE]) as alice:
        async with leaf(*alice.addresses, buffer_messages=5, on_event=events.append) as bob:
            async with bob.subscribe(SHARD) as messages:
                for number in range(20):
                    await alice.publish(message(b"%d" % number), SHARD)
                await until(lambda: any(isinstance(e, MessageDropped) for e in events))
                assert (await messages.receive()).message.payload == b"0"


async def test_a_peer_that_does_not_read_is_given_up() -> None:
    """Its socket fills, then its queue; others get everything."""
    options = GossipOptions(queue_bytes=400_000)
    events: list[ClientEvent] = []
    slow = leaf(listen=[HERE], options=options, on_event=events.append)
    async with slow as alice, leaf(*alice.addresses) as bob:
        stranger = Stranger()
        async with reading(bob) as read, stranger.joined(alice) as link:
            subscription = GossipRpc()
            subscription.subscriptions.add(subscribe=True, topic=SHARD)
            async with link.open([RELAY]) as stream:
                await stream.send_message(subscription.SerializeToString())
                await until(lambda: bool(stranger.heard))
                link.connection.receive = _reads_nothing  # type: ignore[method-assign]
                for number in range(120):
                    payload = b"%d" % number + bytes(100_000)
                    await alice.publish(message(payload), SHARD)
                await until(lambda: len(read) == 120)
                await anyio.sleep(60)
                assert len(inside.host(alice).links) == 1
    assert events == [PeerBehind(DIALLER.peer_id)], "once, not for each message"


def _reads_nothing(data: bytes, now_ms: int) -> None:
    """As a program that hangs: the bytes lie there."""
