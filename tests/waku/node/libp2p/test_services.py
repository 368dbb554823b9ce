"""What a node does not serve itself it asks of libp2p peers: light push, filter, Store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import anyio
import httpx
import pytest

from tests import inside
from tests.waku.node.wires import HERE, OPTIONS, SHARD, TOPIC, live, message, publish
from tests.waku.p2p.service import identity
from waku import StoreQuery, WakuClient, WakuMessage
from waku.errors import CursorExpired
from waku.node import BadAddress, EmbeddedNode, Listen, NodeOptions
from waku.node.envelope import Envelope
from waku.node.service_nodes import PING_S

from .around import until

pytestmark = pytest.mark.anyio

EDGE = replace(OPTIONS, relay=False, store=False, filter=False, lightpush=False)
SERVICE = replace(OPTIONS, self_service=False)
WANTED_PUSH = {"message": {"payload": "YQ==", "contentTopic": TOPIC}}
WANTED_FILTER = {"requestId": "r", "contentFilters": [TOPIC]}


@asynccontextmanager
async def client(node: EmbeddedNode, client_id: str = "reader") -> AsyncIterator[WakuClient]:
    async with WakuClient("http://node", app=node.app, client_id=client_id) as found:
        yield found


@asynccontextmanager
async def rest(node: EmbeddedNode) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=node.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://node") as http:
        yield http


async def pushed(reader: WakuClient, last: WakuMessage) -> list[WakuMessage]:
    """Read what filter pushes, until a message has come."""
    found: list[WakuMessage] = []
    while last not in found:
        await anyio.sleep(0.05)
        found += await reader.filter_messages(TOPIC)
    return found


def address(node: EmbeddedNode) -> str:
    return node.libp2p_addresses[0]


class World:
    """Nodes of one test, which end with it."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack

    async def enter(
        self, *dialled: EmbeddedNode, options: NodeOptions = SERVICE, **named: EmbeddedNode
    ) -> EmbeddedNode:
        """A node that listens, and is connected to these."""
        service_nodes = {kind: address(one) for kind, one in named.items()}
        node = EmbeddedNode(options, listen=HERE, service_nodes=service_nodes)  # type: ignore[arg-type]
        await self._stack.enter_async_context(node)
        for one in dialled:
            await node.dial(address(one))
        await until(lambda: {one.peer_id for one in named.values()} <= node.mesh.peers().keys())
        return node


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        yield World(stack)


def mortal(port: str = "0") -> EmbeddedNode:
    """A node that can come back with its name."""
    listen = Listen((f"/ip4/127.0.0.1/tcp/{port}",), identity=identity(1))
    return EmbeddedNode(SERVICE, listen=listen)


@pytest.mark.parametrize("edge_dials", [True, False])
async def test_an_edge_is_served_whichever_dialled(world: World, edge_dials: bool) -> None:
    relay = await world.enter()
    if edge_dials:
        service = await world.enter(relay)
        edge = await world.enter(service, options=EDGE)
    else:
        edge = await world.enter(options=EDGE)
        service = await world.enter(relay, edge)
        await until(lambda: bool(edge.mesh.peers()))
    await until(lambda: service.mesh.followers(SHARD) == 1)
    async with client(edge) as reader:
        await reader.filter_subscribe([TOPIC])
        await reader.filter_ping()
        assert service.filter.criteria_by_peer() == {edge.peer_id: [(SHARD, TOPIC)]}
        assert (await reader.lightpush(message(1, timestamp=5))).relay_peer_count == 1
        publish(service, message(2, timestamp=6))
        found = await pushed(reader, message(2, timestamp=6))
        assert found == [message(1, timestamp=5), message(2, timestamp=6)]
        page = await reader.store(StoreQuery(include_data=True))
        assert [entry.message for entry in page.entries] == found
        await reader.filter_unsubscribe([TOPIC])
        assert service.filter.criteria_by_peer() == {}
    archive = relay.archive
    assert archive is not None
    await until(lambda: len(archive) == 2)


async def test_a_filter_subscription_survives_a_restart_of_the_service_node() -> None:
    async with anyio.create_task_group() as tasks:
        service = mortal()
        life = await tasks.start(live, service)
        named = address(service)
        async with EmbeddedNode(EDGE, service_nodes={"filter": named}) as edge:
            await until(lambda: bool(edge.mesh.peers()))
            async with client(edge) as reader:
                await reader.filter_subscribe([TOPIC])
                life.cancel()
                await until(lambda: not edge.mesh.peers())
                again = mortal(named.split("/")[4])
                life = await tasks.start(live, again)
                await until(lambda: bool(again.filter.criteria))
                publish(again, message(1, timestamp=5))
                assert await pushed(reader, message(1, timestamp=5)) == [message(1, timestamp=5)]
        life.cancel()


async def test_a_filter_node_that_forgets_is_told_again(world: World) -> None:
    """nwaku forgets a subscriber after five minutes without a ping."""
    service = await world.enter()
    edge = await world.enter(service, options=EDGE)
    async with client(edge) as reader:
        await reader.filter_subscribe([TOPIC])
        (subscriber,) = inside.subscribed(service)
        service.filter.drop(subscriber)
        await anyio.sleep(PING_S + 1)
        assert service.filter.criteria_by_peer() == {edge.peer_id: [(SHARD, TOPIC)]}


async def test_filter_moves_to_another_peer_when_its_own_is_away(world: World) -> None:
    spare, edge = await world.enter(), await world.enter(options=EDGE)
    async with anyio.create_task_group() as tasks:
        first = mortal()
        life = await tasks.start(live, first)
        for one in (first, spare):
            await edge.dial(address(one))
        async with client(edge) as reader:
            await reader.filter_subscribe([TOPIC])
            assert first.filter.criteria and not spare.filter.criteria
            life.cancel()
            await until(lambda: (SHARD, TOPIC) in spare.filter.criteria)
            publish(spare, message(1, timestamp=5))
            await pushed(reader, message(1, timestamp=5))


async def test_clients_of_an_edge_share_one_subscription(world: World) -> None:
    service = await world.enter()
    edge = await world.enter(service, options=EDGE)
    async with client(edge, "one") as one, client(edge, "two") as two:
        for reader in (one, two):
            await reader.filter_subscribe([TOPIC])
        assert len(inside.subscribed(service)) == 1
        await one.filter_unsubscribe([TOPIC])
        assert (SHARD, TOPIC) in service.filter.criteria
        publish(service, message(1, timestamp=5))
        await pushed(two, message(1, timestamp=5))
        inside.forget_client(edge, edge.clients.get("two"))
        await until(lambda: not service.filter.criteria)


async def test_a_message_is_pushed_once(world: World) -> None:
    """As by nwaku; a client of the node itself gets it as often as it is published."""
    service = await world.enter(options=OPTIONS)
    edge = await world.enter(service, options=EDGE)
    async with client(edge) as reader, client(service) as near:
        for one in (reader, near):
            await one.filter_subscribe([TOPIC])
        for number in (1, 1, 2):
            publish(service, message(number, timestamp=5))
        found = await pushed(reader, message(2, timestamp=5))
        assert [one.payload for one in found] == [b"message 1", b"message 2"]


async def test_a_peer_pushes_to_clients_only_where_it_was_asked(world: World) -> None:
    service = await world.enter()
    edge = await world.enter(service, options=EDGE)
    stranger = await world.enter(edge)
    async with client(edge) as reader:
        await reader.filter_subscribe([TOPIC])
        edge.service_nodes.take_push(stranger.peer_id, _envelope(1))
        edge.service_nodes.take_push(service.peer_id, _envelope(2))
        assert [one.payload for one in await reader.filter_messages(TOPIC)] == [b"message 2"]


@pytest.mark.parametrize("ascending", [True, False])
async def test_store_by_pages(world: World, ascending: bool) -> None:
    service = await world.enter()
    edge = await world.enter(service, options=EDGE)
    large = [
        replace(message(number, timestamp=number + 1), payload=bytes(140_000 - number))
        for number in range(40)
    ]
    publish(service, *large)
    async with client(edge) as reader:
        query = StoreQuery(page_size=100, ascending=ascending)
        first = await reader.store(query)
        assert 1 < len(first.entries) < 40, "a page of a peer has 4 MiB at most"
        assert first.cursor is not None
        found = [entry async for entry in reader.store_all(query)]
        timestamps = {entry.message.timestamp for entry in found if entry.message is not None}
        assert len(found) == 40 and timestamps == set(range(1, 41))
        hashes = tuple(entry.message_hash for entry in found[:3])
        assert len(await reader.store_by_hash(hashes)) == 3
        with pytest.raises(CursorExpired):
            await reader.store(replace(query, cursor=b"\x01" * 32))


async def test_a_message_under_a_forged_hash_is_refused_with_its_page(world: World) -> None:
    service = await world.enter()
    edge = await world.enter(service, options=EDGE)
    assert service.archive is not None
    service.archive.insert(b"\xab" * 32, SHARD, message(1, timestamp=5))
    async with rest(edge) as http:
        answer = (await http.get("/store/v3/messages?includeData=true")).json()
        assert (answer["statusCode"], answer["messages"]) == (300, [])
        hashes_alone = (await http.get("/store/v3/messages")).json()
        assert hashes_alone["statusCode"] == 200


async def test_a_store_named_in_the_request_is_dialled(world: World) -> None:
    """nwaku's `peerAddr`; the connection is not kept."""
    service = await world.enter()
    publish(service, message(1, timestamp=5))
    async with EmbeddedNode(EDGE) as edge, rest(edge) as http:
        where = {"peerAddr": address(service)}
        answer = (await http.get("/store/v3/messages", params=where)).json()
        assert (answer["statusCode"], len(answer["messages"])) == (200, 1)
        (link,) = edge.mesh.links.values()
        assert link.connected
        where = {"peerAddr": f"/ip4/127.0.0.1/tcp/1/p2p/{edge.peer_id[:-1]}x"}
        answer = await http.get("/store/v3/messages", params=where)
        assert answer.status_code == 400 or answer.json()["statusCode"] == 504


async def test_a_service_node_that_is_away_is_a_dial_failure() -> None:
    """nwaku's words, in each of its protocols."""
    async with mortal() as service:
        away = address(service)
    named = {"filter": away, "lightpush": away, "store": away}
    async with EmbeddedNode(EDGE, service_nodes=named) as edge, rest(edge) as http:  # type: ignore[arg-type]
        legacy = await http.post("/lightpush/v1/message", json=WANTED_PUSH)
        newer = await http.post("/lightpush/v3/message", json=WANTED_PUSH)
        filtered = await http.post("/filter/v2/subscriptions", json=WANTED_FILTER)
        stored = await http.get("/store/v3/messages")
        assert not edge.service_nodes.subscriptions.criteria
    assert (legacy.status_code, legacy.text) == (
        503,
        "Failed to request a message push: dial_failure",
    )
    description = f"dial_failure: {service.peer_id} is not accessible"
    assert (newer.status_code, newer.json()) == (505, {"statusDesc": description})
    assert filtered.status_code == 504
    assert (stored.status_code, stored.json()["statusCode"]) == (200, 504)
    assert stored.json()["statusDesc"] == f"PEER_DIAL_FAILURE: {service.peer_id}"


async def test_a_named_service_node_is_asked_and_no_other(world: World) -> None:
    service = await world.enter()
    bare = await world.enter(options=replace(SERVICE, lightpush=False))
    edge = await world.enter(service, options=EDGE, lightpush=bare)
    async with rest(edge) as http:
        refused = await http.post("/lightpush/v1/message", json=WANTED_PUSH)
        assert refused.text == "Failed to request a message push: dial_failure"
        assert (await http.post("/filter/v2/subscriptions", json=WANTED_FILTER)).status_code == 200
        health = (await http.get("/health")).json()["protocolsHealth"]
        assert {"Filter Client": "READY"} in health


async def test_a_named_service_node_goes_before_the_node_itself(world: World) -> None:
    service = await world.enter(options=OPTIONS)
    full = await world.enter(options=OPTIONS, filter=service)
    async with client(full) as reader:
        await reader.filter_subscribe([TOPIC])
        assert service.filter.criteria and not full.filter.criteria


async def test_nobody_takes_a_message_whose_topic_no_peer_follows(world: World) -> None:
    elsewhere = await world.enter(options=replace(SERVICE, shards=(7,)))
    service = await world.enter(elsewhere)
    edge = await world.enter(service, options=EDGE)
    await until(lambda: service.mesh.followers("/waku/2/rs/1/7") == 1)
    assert service.mesh.followers(SHARD) == 0
    async with rest(edge) as http, rest(elsewhere) as there, rest(service) as here:
        refused = await http.post("/lightpush/v3/message", json=WANTED_PUSH)
        assert (refused.status_code, refused.json()["statusDesc"]) == (
            505,
            "No peers for topic, skipping publish",
        )
        refused = await http.post("/lightpush/v1/message", json=WANTED_PUSH)
        assert refused.text.endswith("not_published_to_any_peer")
        await there.post("/relay/v1/subscriptions", json=[SHARD])
        await until(lambda: service.mesh.followers(SHARD) == 1)
        answer = await http.post("/lightpush/v3/message", json=WANTED_PUSH)
        assert answer.json() == {"relayPeerCount": 1}
        await there.request("DELETE", "/relay/v1/subscriptions", json=[SHARD])
        await until(lambda: service.mesh.followers(SHARD) == 0)
        assert elsewhere.mesh.followers(SHARD) == 1
        await here.request("DELETE", "/relay/v1/subscriptions", json=[SHARD])
        await until(lambda: elsewhere.mesh.followers(SHARD) == 0)


def test_service_nodes_that_cannot_be_named() -> None:
    with pytest.raises(ValueError, match=r"filter, lightpush or store \(got 'light_push'\)"):
        EmbeddedNode(service_nodes={"light_push": NAMED})  # type: ignore[dict-item]
    with pytest.raises(BadAddress, match="must be named with its peer id"):
        EmbeddedNode(service_nodes={"store": "/ip4/127.0.0.1/tcp/1"})
    with pytest.raises(BadAddress, match="must start with `/`"):
        EmbeddedNode(service_nodes={"store": "http://127.0.0.1:8645"})


async def test_a_lone_node_has_no_service_node() -> None:
    async with EmbeddedNode(SERVICE) as node, rest(node) as http:
        refused = await http.post("/lightpush/v3/message", json=WANTED_PUSH)
        assert refused.json() == {"statusDesc": "No suitable service peer & no discovery method"}
        assert node.service_nodes.find("store") is None


NAMED = f"/ip4/127.0.0.1/tcp/1/p2p/{identity(1).peer_id}"


def _envelope(number: int) -> Envelope:
    return Envelope.of(SHARD, message(number, timestamp=5))
