"""`MessagingTransport` on the embedded node, which behaves as logos-delivery: it stamps messages,
gives no own ones back, keeps 50, and has one reader."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from reliable_channel import ReliableChannel
from reliable_channel.events import MessageReceived, MessageSent
from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.transport import Received, Source, StoreUnavailable, TransportError
from reliable_channel.transport.connect import messaging_transport
from reliable_channel.transport.messaging import DISPATCH_S, RENEWAL_S, MessagingTransport
from reliable_channel.transport.settings import WakuSettings
from tests.channel.world import now_ns
from waku._asgi import Receive, Scope, Send
from waku.client import CLIENT_ID_HEADER
from waku.models import WakuMessage
from waku.node import EmbeddedNode, NodeOptions

from .nodes import CONTENT_TOPIC, STATIC_SHARD, Line, answering

pytestmark = pytest.mark.anyio


class OneReader(Line):
    """A line to a node that does not tell its readers apart, as logos-delivery."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        unnamed = [
            each for each in scope["headers"] if each[0] != CLIENT_ID_HEADER.lower().encode()
        ]
        await super().__call__({**scope, "headers": unnamed}, receive, send)


@asynccontextmanager
async def line(**options: Any) -> AsyncIterator[OneReader]:
    async with EmbeddedNode(NodeOptions(**{"messaging": True, **options})) as node:
        it = OneReader()
        it.connect(node)
        yield it


@asynccontextmanager
async def pair(**options: Any) -> AsyncIterator[tuple[OneReader, OneReader]]:
    """Lines to two nodes that are joined."""
    async with line(**options) as one, line(**options) as other:
        assert one.node is not None and other.node is not None
        one.node.join(other.node)
        yield one, other


@asynccontextmanager
async def opened(
    it: Line, content_topic: str = CONTENT_TOPIC, **settings: Any
) -> AsyncIterator[MessagingTransport]:
    transport = MessagingTransport(
        f"http://node-{id(it)}", WakuSettings(content_topic, **settings), app=it
    )
    await transport.open()
    try:
        yield transport
    finally:
        await transport.aclose()


async def publish(transport: MessagingTransport, payload: bytes, **how: Any) -> bytes:
    it = transport.envelope(payload, timestamp_ns=now_ns(), ephemeral=False, **how)
    return (await transport.publish(it)).message_hash


async def arrived(transport: MessagingTransport, count: int = 1) -> list[Received]:
    received: list[Received] = []
    while len(received) < count:
        received += (await transport.receive()).messages
    return received


async def test_a_message_has_the_hash_that_the_node_gave_it() -> None:
    async with pair() as (one, other), opened(one) as alice, opened(other) as bob:
        it = alice.envelope(b"hello", timestamp_ns=1, ephemeral=False, meta=b"m")
        sent = await alice.publish(it)
        assert sent.message_hash != it.message_hash
        [received] = await arrived(bob)
        assert (received.payload, received.meta) == (b"hello", b"m")
        assert (received.message_hash, received.source) == (sent.message_hash, Source.LIVE)
        [stored] = await bob.by_hash([sent.message_hash])
        assert (stored.payload, stored.message_hash) == (b"hello", sent.message_hash)


async def test_channels_refer_to_it_by_that_hash() -> None:
    async with pair() as (one, other), opened(other) as outside, AsyncExitStack() as stack:
        alice = ReliableChannel(
            channel_id="general",
            sender_id="alice",
            content_topic=CONTENT_TOPIC,
            transport=MessagingTransport("http://one", WakuSettings(CONTENT_TOPIC), app=one),
        )
        await stack.enter_async_context(alice)
        await alice.send(b"first")
        [first] = await arrived(outside)
        async for event in alice.events():
            if isinstance(event, MessageSent):
                assert event.message_hash == first.message_hash
                break
        await alice.send(b"second")
        [second] = await arrived(outside)
        [reference] = SpecCodec().decode(second.payload).causal_history
        assert reference.retrieval_hint == first.message_hash


async def test_channels_over_one_node_and_over_another_end_with_one_log() -> None:
    async with pair() as (one, other), AsyncExitStack() as stack:
        channels = [
            await stack.enter_async_context(
                ReliableChannel(
                    channel_id="general",
                    sender_id=name,
                    content_topic=CONTENT_TOPIC,
                    transport=MessagingTransport(
                        f"http://{url}", WakuSettings(CONTENT_TOPIC), app=it
                    ),
                )
            )
            for name, url, it in (("alice", "one", one), ("bob", "one", one), ("carol", "o", other))
        ]
        for number in range(5):
            for channel in channels:
                await channel.send(b"%d of %s" % (number, channel.sender_id.encode()))
        for channel in channels:
            due = 10
            async for event in channel.events():
                due -= isinstance(event, MessageReceived)
                if not due:
                    break
        assert len({channel.log_digest() for channel in channels}) == 1


async def test_channels_of_one_node_do_not_take_one_anothers_messages() -> None:
    elsewhere = CONTENT_TOPIC.replace("general", "random")
    async with (
        pair() as (one, other),
        opened(one) as sender,
        opened(one, elsewhere) as other_sender,
    ):
        async with opened(other) as here, opened(other, elsewhere) as there:
            for number in range(10):
                await publish(sender, b"here %d" % number)
                await publish(other_sender, b"there %d" % number)
            assert {m.payload[:4] for m in await arrived(here, 10)} == {b"here"}
            assert {m.payload[:4] for m in await arrived(there, 10)} == {b"ther"}


async def test_what_the_node_dropped_is_a_gap() -> None:
    async with pair() as (one, other), opened(one) as alice, opened(other) as bob:
        for number in range(60):
            await publish(alice, b"%d" % number)
        batch = await bob.receive()
        assert len(batch.messages) == 50
        assert "the node held 50 messages" in batch.gap
        stored = [m async for page in bob.by_time(0, now_ns() * 2) for m in page]
        assert len(stored) == 60


async def test_a_channel_catches_up_with_what_the_node_dropped() -> None:
    """80 messages come between two looks, and the node keeps 50 and does not say so."""
    async with pair() as (one, other), AsyncExitStack() as stack:
        alice, bob = [
            await stack.enter_async_context(
                ReliableChannel(
                    channel_id="general",
                    sender_id=name,
                    content_topic=CONTENT_TOPIC,
                    retrieval_strategy="store-only",
                    transport=MessagingTransport(
                        f"http://{name}", WakuSettings(CONTENT_TOPIC), app=it
                    ),
                )
            )
            for name, it in (("alice", one), ("bob", other))
        ]
        other.disturbance = answering(200, b"[]", path="/events/received")
        async with alice.events() as events:
            requests = {(await alice.send(b"%d" % number)).request_id for number in range(80)}
            async for sent in events:
                if isinstance(sent, MessageSent):
                    requests.discard(sent.request_id)
                    if not requests:
                        break
        other.disturbance = None
        contents = []
        async for event in bob.events():
            if isinstance(event, MessageReceived):
                contents.append(event.content)
                if len(contents) == 80:
                    break
        assert contents == [b"%d" % number for number in range(80)]
        assert bob.statistics().transport.retrieved >= 30


@pytest.mark.parametrize("numbers", [[1, 2, 4], [3, 4]])
async def test_later_nodes_number_messages_and_a_step_is_a_gap(numbers: list[int]) -> None:
    async with pair() as (one, other), opened(one) as alice, opened(other) as bob:
        await publish(alice, b"a")
        [found] = await arrived(bob)
        message = WakuMessage(b"a", CONTENT_TOPIC, timestamp=found.timestamp_ns)
        assert other.node is not None

        def numbered(first: int, *more: int) -> bytes:
            return json.dumps(
                [
                    {
                        "messageHash": "0x" + found.message_hash.hex(),
                        "message": {"payload": "YQ==", "contentTopic": message.content_topic},
                        "seq": number,
                        "source": "live",
                    }
                    for number in (first, *more)
                ]
            ).encode()

        other.disturbance = answering(200, numbered(1), path="/events/received")
        assert not (await bob.receive()).gap or numbers[0] != 1
        other.disturbance = answering(200, numbered(2), path="/events/received")
        assert (await bob.receive()).gap == ""
        other.disturbance = answering(200, numbered(*numbers[-2:]), path="/events/received")
        batch = await bob.receive()
        assert (batch.gap == "") == (numbers[-2:] == [3, 4])


async def test_a_node_that_was_away_is_subscribed_again() -> None:
    async with line() as sender, line() as first, line() as second, opened(sender) as alice:
        async with opened(first) as bob:
            first.connect(None)
            with pytest.raises(TransportError, match="nobody listens") as away:
                await bob.receive()
            assert away.value.retryable
            assert sender.node is not None and second.node is not None
            sender.node.join(second.node)
            first.connect(second.node)
            assert "nobody listens" in (await bob.receive()).gap
            await publish(alice, b"there again")
            assert [m.payload for m in await arrived(bob)] == [b"there again"]


async def test_a_node_that_forgot_in_silence_is_subscribed_again(virtual_time: None) -> None:
    async with line() as sender, line() as first, line() as second, opened(sender) as alice:
        async with opened(first) as bob:
            assert sender.node is not None and second.node is not None
            sender.node.join(second.node)
            first.connect(second.node)
            ends_s = anyio.current_time() + RENEWAL_S + 1
            while anyio.current_time() < ends_s:
                assert not (await bob.receive()).messages
            await publish(alice, b"there again")
            assert [m.payload for m in await arrived(bob)] == [b"there again"]


async def test_a_node_without_a_messaging_layer_is_said_so() -> None:
    async with line(messaging=False) as it:
        with pytest.raises(TransportError, match="--entry-layer messaging") as error:
            async with opened(it):
                pass
        assert error.value.retryable  # one that starts serves it last


async def test_a_message_that_the_node_gives_up_is_tried_again() -> None:
    events = {"requestId": "1", "events": [{"kind": "error", "error": "no peers", "timestamp": 1}]}
    async with line() as it, opened(it) as alice:
        it.disturbance = answering(200, json.dumps(events).encode(), path="/events/send/")
        with pytest.raises(TransportError, match="could not send a message: no peers") as error:
            await publish(alice, b"hello")
        assert error.value.retryable


async def test_a_message_that_is_never_dispatched_fails(virtual_time: None) -> None:
    async with line() as it, opened(it) as alice:
        it.disturbance = answering(404, b"No send events for requestId: 1", path="/events/send/")
        since_s = anyio.current_time()
        with pytest.raises(TransportError, match="has not dispatched a message after 45 s"):
            await publish(alice, b"hello")
        assert anyio.current_time() - since_s >= DISPATCH_S


async def test_later_kinds_of_events_are_waited_out() -> None:
    async with line() as it, opened(it) as alice:
        queued = {"requestId": "1", "events": [{"kind": "queued", "timestamp": 1}]}
        asked = 0

        def disturb(request: httpx.Request) -> httpx.Response | None:
            nonlocal asked
            asked += "/events/send/" in request.url.path
            if "/events/send/" not in request.url.path or asked > 2:
                return None
            return httpx.Response(200, content=json.dumps(queued).encode())

        it.disturbance = disturb
        assert len(await publish(alice, b"hello")) == 32
        assert asked == 3


async def test_another_sharding_is_named() -> None:
    async with pair(cluster_id=7) as (one, other), opened(one) as alice, opened(other) as bob:
        for number in range(3):
            await publish(alice, b"%d" % number)
        assert [m.payload for m in await arrived(bob, 3)] == [b"0", b"1", b"2"]
        with pytest.raises(TransportError, match="`cluster_id` and `num_shards` must be the"):
            while True:
                await bob.receive()


async def test_a_static_shard_is_refused() -> None:
    settings = WakuSettings(CONTENT_TOPIC, pubsub_topic=STATIC_SHARD)
    with pytest.raises(ValueError, match=STATIC_SHARD):
        MessagingTransport("http://node", settings)


async def test_closed_it_says_so() -> None:
    transport = MessagingTransport("http://node", WakuSettings(CONTENT_TOPIC))
    await transport.aclose()
    with pytest.raises(TransportError, match="open it first"):
        await transport.receive()
    with pytest.raises(StoreUnavailable, match="open it first"):
        await transport.by_hash([bytes(32)])


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("waku+messaging://node:8645", "http://node:8645"),
        ("waku+messaging+https://node", "https://node"),
    ],
)
def test_its_urls(url: str, address: str) -> None:
    assert messaging_transport(url, WakuSettings(CONTENT_TOPIC)).url == address
    with pytest.raises(ValueError, match="with a host"):
        messaging_transport("waku+messaging://", WakuSettings(CONTENT_TOPIC))
