"""`/messaging/v1` of the embedded node, through the client: what logos-delivery 69fbffa3 does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import pytest

from tests.asgi import app_of
from waku import WakuClient, WakuMessage
from waku.errors import BadRequest, EndpointMissing, NodeFailure, NotFound
from waku.node import EmbeddedNode, NodeOptions

pytestmark = pytest.mark.anyio

TOPIC = "/app/1/chat/proto"


@asynccontextmanager
async def _two(**options: object) -> AsyncIterator[tuple[WakuClient, WakuClient]]:
    """Clients of two nodes that are joined."""
    async with AsyncExitStack() as stack:
        clients, nodes = [], []
        for _ in range(2):
            node = EmbeddedNode(NodeOptions(**{"messaging": True, **options}))  # type: ignore[arg-type]
            nodes.append(await stack.enter_async_context(node))
            clients.append(await stack.enter_async_context(_client(node)))
        nodes[0].join(nodes[1])
        yield clients[0], clients[1]


def _client(node: EmbeddedNode, client_id: str | None = None) -> WakuClient:
    return WakuClient("http://node", app=node.app, client_id=client_id)


async def test_a_message_is_sent_and_received_once() -> None:
    async with _two() as (alice, bob):
        await bob.messaging_subscribe([TOPIC])
        await alice.messaging_send(b"hello", TOPIC, meta=b"marker")
        [received] = await bob.messaging_received()
        assert (received.message.payload, received.message.meta) == (b"hello", b"marker")
        assert received.message.timestamp  # the node stamped it
        assert received.source == "live"
        assert await bob.messaging_received() == []


async def test_the_hash_of_an_own_message_is_known_from_its_events_alone() -> None:
    async with _two() as (alice, bob):
        await bob.messaging_subscribe([TOPIC])
        request_id = await alice.messaging_send(b"hello", TOPIC)
        events = (await alice.messaging_events_of(request_id)).events
        assert [event.kind for event in events] == ["propagated", "sent"]
        [received] = await bob.messaging_received()
        assert {event.message_hash for event in events} == {received.message_hash}
        [stored] = await alice.store_by_hash([received.message_hash])
        assert stored.message is not None and stored.message.payload == b"hello"


async def test_events_are_read_once() -> None:
    async with _two() as (alice, _):
        ids = {await alice.messaging_send(b"a", TOPIC), await alice.messaging_send(b"b", TOPIC)}
        assert {each.request_id for each in await alice.messaging_send_events()} == ids
        assert await alice.messaging_send_events() == []
        with pytest.raises(NotFound, match="No send events"):
            await alice.messaging_events_of(ids.pop())


async def test_equal_payloads_are_two_messages() -> None:
    """The node stamps each, so a repetition after an unclear failure is a second message."""
    clock = iter(range(1_000, 1_000_000))
    async with _two(now_ns=lambda: next(clock)) as (alice, bob):
        await bob.messaging_subscribe([TOPIC])
        for _ in range(2):
            await alice.messaging_send(b"same", TOPIC)
        assert len({each.message_hash for each in await bob.messaging_received()}) == 2


async def test_own_messages_are_not_received() -> None:
    async with _two() as (alice, _):
        await alice.messaging_subscribe([TOPIC])
        await alice.messaging_send(b"mine", TOPIC)
        assert await alice.messaging_received() == []


async def test_what_is_not_read_in_time_is_dropped_silently_and_in_store() -> None:
    async with _two() as (alice, bob):
        await bob.messaging_subscribe([TOPIC])
        hashes = []
        for number in range(60):
            request_id = await alice.messaging_send(b"%d" % number, TOPIC)
            hashes.append((await alice.messaging_events_of(request_id)).events[0].message_hash)
        received = await bob.messaging_received()
        assert [each.message.payload for each in received] == [b"%d" % n for n in range(10, 60)]
        lost = [each for each in hashes[:10] if each is not None]
        assert len(await bob.store_by_hash(lost)) == 10


async def test_an_ephemeral_message_is_in_no_store() -> None:
    async with _two() as (alice, _):
        request_id = await alice.messaging_send(b"brief", TOPIC, ephemeral=True)
        events = (await alice.messaging_events_of(request_id)).events
        assert [event.kind for event in events] == ["propagated"]


async def test_a_subscription_ends_and_another_stays() -> None:
    async with _two() as (alice, bob):
        await bob.messaging_subscribe([TOPIC, "/app/1/other/proto"])
        await bob.messaging_unsubscribe([TOPIC])
        await alice.messaging_send(b"no", TOPIC)
        await alice.messaging_send(b"yes", "/app/1/other/proto")
        assert [each.message.payload for each in await bob.messaging_received()] == [b"yes"]


async def test_topics_before_one_that_fails_stay_subscribed() -> None:
    async with _two() as (alice, bob):
        with pytest.raises(BadRequest, match="Subscribe failed"):
            await bob.messaging_subscribe([TOPIC, "nonsense"])
        await alice.messaging_send(b"hello", TOPIC)
        assert len(await bob.messaging_received()) == 1


async def test_what_cannot_be_sent_is_named() -> None:
    async with _two() as (alice, _):
        with pytest.raises(BadRequest, match="`payload` is missing or empty"):
            await alice.messaging_send(b"", TOPIC)
        with pytest.raises(BadRequest, match="`contentTopic` is missing or empty"):
            await alice.messaging_send(b"x", " ")
        with pytest.raises(NodeFailure, match="Send failed"):
            await alice.messaging_send(b"x", "nonsense")


async def test_readers_have_events_and_messages_apart() -> None:
    async with EmbeddedNode(NodeOptions(messaging=True)) as node:
        async with _client(node, "a") as a, _client(node, "b") as b:
            await a.messaging_send(b"x", TOPIC)
            assert await b.messaging_send_events() == []
            assert len(await a.messaging_send_events()) == 1


async def test_a_node_without_the_layer_is_recognised() -> None:
    async with EmbeddedNode() as node, _client(node) as client:
        assert not await client.has_messaging()
        with pytest.raises(EndpointMissing):
            await client.messaging_subscribe([TOPIC])
    async with EmbeddedNode(NodeOptions(messaging=True)) as node, _client(node) as client:
        assert await client.has_messaging()


async def test_what_later_versions_add_is_read() -> None:
    """FIELD: sequence numbers, `history`, `queued`; unknown fields are skipped."""
    bodies = {
        "/messaging/v1/events/received": [
            {
                "seq": 7,
                "source": "history",
                "messageHash": "0x" + "ab" * 32,
                "message": WakuMessage(b"x", TOPIC, timestamp=1).to_json(),
            },
            {"messageHash": "0x12"},
        ],
        "/messaging/v1/events/send": [
            {"requestId": "r", "events": [{"kind": "queued", "timestamp": 5, "more": 1}]}
        ],
    }

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=bodies[request.url.path])

    rejected = list[object]()
    async with WakuClient("http://node", app=app_of(answer), on_rejected=rejected.append) as client:
        [received] = await client.messaging_received()
        assert (received.sequence, received.source) == (7, "history")
        assert len(rejected) == 1
        [events] = await client.messaging_send_events()
        assert (events.events[0].kind, events.events[0].message_hash) == ("queued", None)
