"""The node treats subscriptions as nwaku and as go-waku were seen to, where it is told to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from waku import StoreQuery, WakuClient, WakuMessage
from waku._request import Flavour
from waku.errors import EndpointMissing
from waku.node import EmbeddedNode, NodeOptions
from waku.node.options import Behaviour

pytestmark = pytest.mark.anyio

X, Y, NEW = (f"/reliable-channel/1/{name}/proto" for name in ("x", "y", "new"))
"""Autosharding looks at application and version alone: one shard."""


@asynccontextmanager
async def node_as(behaviour: Behaviour | None) -> AsyncIterator[tuple[EmbeddedNode, WakuClient]]:
    async with EmbeddedNode(NodeOptions(behave_as=behaviour)) as node:
        async with client_of(node) as client:
            yield node, client


def client_of(node: EmbeddedNode) -> WakuClient:
    return WakuClient("http://node", app=node.app)


async def heard(node: EmbeddedNode, client: WakuClient, number: int) -> tuple[int, int, int]:
    """Whether a message on Y comes through relay and filter, and whether Store has it."""
    message = WakuMessage(b"%d" % number, Y, timestamp=number)
    node.publish(node.shard_for(Y), message, unfollowed=True)
    page = await client.store(StoreQuery(content_topics=(Y,), start_time_ns=number))
    return (
        len(await client.relay_auto_messages(Y)),
        len(await client.filter_messages(Y)),
        len(page.entries),
    )


async def test_on_nwaku_one_delete_silences_the_shard_for_everybody_until_a_delete_and_a_post() -> (
    None
):
    async with node_as("nwaku") as (node, ours), client_of(node) as another:
        await ours.relay_auto_subscribe([Y])
        await ours.filter_subscribe([Y])
        await another.relay_auto_subscribe([X])
        assert await heard(node, ours, 1) == (1, 1, 1)
        await another.relay_auto_unsubscribe([X])
        assert await heard(node, ours, 2) == (0, 0, 0)
        await ours.relay_auto_subscribe([Y])  # the node knows it
        assert await heard(node, ours, 3) == (0, 0, 0)
        await ours.relay_auto_unsubscribe([Y])
        await ours.relay_auto_subscribe([Y])
        assert await heard(node, ours, 4) == (1, 1, 1)


async def test_on_nwaku_a_topic_that_is_new_to_the_node_revives_the_shard() -> None:
    async with node_as("nwaku") as (node, ours), client_of(node) as another:
        await ours.relay_auto_subscribe([X, Y])
        await ours.filter_subscribe([Y])
        await ours.relay_auto_unsubscribe([X])
        assert await heard(node, ours, 1) == (0, 0, 0)
        await another.relay_auto_subscribe([NEW])
        assert await heard(node, ours, 2) == (1, 1, 1)


async def test_on_nwaku_a_static_shard_is_left_for_everybody_too() -> None:
    async with node_as("nwaku") as (node, ours), client_of(node) as another:
        shard = node.shard_for(Y)
        await ours.relay_auto_subscribe([Y])
        await ours.filter_subscribe([Y])
        await another.relay_unsubscribe([shard])
        assert await heard(node, ours, 1) == (0, 0, 0)
        await another.relay_subscribe([shard])
        assert await heard(node, ours, 2) == (1, 1, 1)


async def test_on_nwaku_a_topic_that_it_does_not_know_is_deleted_without_harm() -> None:
    async with node_as("nwaku") as (node, ours):
        await ours.relay_auto_subscribe([Y])
        await ours.filter_subscribe([Y])
        await ours.relay_auto_unsubscribe([NEW])
        assert await heard(node, ours, 1) == (1, 1, 1)


@pytest.mark.parametrize("behaviour", [None, "go-waku"])
async def test_elsewhere_a_delete_is_the_client_s_own_affair(behaviour: Behaviour | None) -> None:
    async with node_as(behaviour) as (node, ours), client_of(node) as another:
        await ours.relay_auto_subscribe([Y])
        await ours.filter_subscribe([Y])
        await another.relay_auto_subscribe([X, Y])
        await another.relay_auto_unsubscribe([X, Y])
        assert await heard(node, ours, 1) == (1, 1, 1)


async def test_on_go_waku_a_subscription_with_1000_unread_messages_stops_the_node() -> None:
    """T18."""
    async with node_as("go-waku") as (node, ours), client_of(node) as idle:
        await ours.relay_auto_subscribe([Y])
        await ours.filter_subscribe([Y])
        await idle.relay_auto_subscribe([X])
        for number in range(1, 1_001):
            node.publish(node.shard_for(X), WakuMessage(b"x", X, timestamp=number))
        assert await heard(node, ours, 2_000) == (0, 0, 0)
        await idle.relay_auto_unsubscribe([X])
        assert await heard(node, ours, 2_001) == (1, 1, 1)


async def test_on_go_waku_reading_lets_the_node_go_on() -> None:
    async with node_as("go-waku") as (node, ours):
        await ours.relay_auto_subscribe([Y])
        await ours.filter_subscribe([Y])
        for number in range(1, 1_002):
            node.publish(node.shard_for(Y), WakuMessage(b"y", Y, timestamp=number))
        assert len(await ours.relay_auto_messages(Y)) == 1_000
        await ours.filter_messages(Y)
        assert await heard(node, ours, 2_000) == (1, 1, 1)


@pytest.mark.parametrize(
    ("behaviour", "flavour"),
    [(None, Flavour.EMBEDDED), ("nwaku", Flavour.NWAKU), ("go-waku", Flavour.GO_WAKU)],
)
async def test_the_client_recognises_each(behaviour: Behaviour | None, flavour: Flavour) -> None:
    async with node_as(behaviour) as (_, client):
        await client.store(StoreQuery())  # shows whose Store answers it has, not what it is
        assert await client.flavour() is flavour


async def test_go_waku_s_answers_are_its_own_and_the_client_reads_them() -> None:
    async with node_as("go-waku") as (node, client):
        http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=node.app), base_url="http://node"
        )
        shard = node.shard_for(Y).replace("/", "%2F")
        topic = Y.replace("/", "%2F")
        async with http:

            async def asked(method: str, path: str, body: object = None) -> tuple[int, bytes]:
                answer = await http.request(method, path, json=body)
                return answer.status_code, answer.content

            message = {"payload": "YQ==", "contentTopic": Y, "timestamp": 5}
            unread = b'[{"payload":"YQ==","contentTopic":"%s","timestamp":5,"ephemeral":null}]'
            silent = b"no subscription found for pubsubTopic"
            assert await asked("GET", f"/relay/v1/auto/messages/{topic}") == (404, silent)
            assert await asked("POST", "/relay/v1/auto/subscriptions", [Y]) == (200, b"true")
            assert await asked("GET", f"/relay/v1/auto/messages/{topic}") == (200, b"null")
            assert await asked("POST", f"/relay/v1/messages/{shard}", message) == (200, b"true")
            assert await asked("GET", f"/relay/v1/auto/messages/{topic}") == (
                200,
                unread % Y.encode(),
            )
            unfollowed = "/relay/v1/messages/%2Fwaku%2F2%2Frs%2F1%2F99"
            assert await asked("POST", unfollowed, message) == (500, b"")
            assert await asked("POST", "/relay/v1/auto/messages", message) == (200, b"")
            assert (await asked("GET", "/health"))[0] == 501
            assert (await asked("POST", "/lightpush/v3/message", {"message": message}))[0] == 404
        entries = (await client.store(StoreQuery(content_topics=(Y,), page_size=1))).entries
        (entry,) = entries
        assert entry.message is not None
        assert (entry.message.timestamp, entry.pubsub_topic) == (5, node.shard_for(Y))
        assert await client.store_by_hash([entry.message_hash, b"\0" * 32]) == [entry]
        with pytest.raises(EndpointMissing):
            await client.health()


def test_another_behaviour_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`behave_as` must be 'nwaku' or 'go-waku' \(got 'x'\)"):
        NodeOptions(behave_as="x")  # type: ignore[arg-type]
