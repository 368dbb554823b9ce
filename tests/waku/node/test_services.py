"""A node serves the light clients of nodes joined over HTTP: light push, filter, Store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import anyio.lowlevel
import httpx
import pytest

from tests import inside
from tests.waku.node.wires import OPTIONS, TOPIC, Wires, message, publish, until
from waku import StoreQuery, WakuClient, WakuMessage
from waku.errors import CursorExpired
from waku.node import EmbeddedNode, NodeOptions
from waku.node.protocols import FILTER
from waku.topics import pubsub_topic_for

pytestmark = pytest.mark.anyio

EDGE = replace(OPTIONS, relay=False, store=False, filter=False, lightpush=False)
SERVICE = replace(OPTIONS, self_service=False)
WANTED_PUSH = {"message": {"payload": "YQ==", "contentTopic": TOPIC}}
SHARD = pubsub_topic_for(TOPIC, cluster_id=1, num_shards=8)


@asynccontextmanager
async def client(node: EmbeddedNode, client_id: str = "reader") -> AsyncIterator[WakuClient]:
    transport = httpx.ASGITransport(app=node.app)
    async with WakuClient("http://node", transport=transport, client_id=client_id) as found:
        yield found


@asynccontextmanager
async def rest(node: EmbeddedNode) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=node.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://node") as http:
        yield http


def meets(node: EmbeddedNode, *, others: int = 1) -> bool:
    return len(node.mesh.peers()) == others


async def pushed(reader: WakuClient, last: WakuMessage) -> list[WakuMessage]:
    """Read what filter pushes, until a message has come."""
    found: list[WakuMessage] = []
    while last not in found:
        await anyio.lowlevel.checkpoint()
        found += await reader.filter_messages(TOPIC)
    return found


class Network:
    """Nodes on wires; `enter` waits until each has met those that it joins."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.wires = Wires()
        self._exit = stack

    async def enter(
        self, name: str, *join: str, options: NodeOptions = OPTIONS, **more: dict[str, str]
    ) -> EmbeddedNode:
        node = EmbeddedNode(
            options,
            join=[f"http://{other}" for other in join],
            transport=self.wires,
            **more,  # type: ignore[arg-type]
        )
        self.wires.nodes[name] = node
        await self._exit.enter_async_context(node)
        await until(lambda: meets(node, others=len({*join, *more.get("service_nodes", {})})))
        return node


@pytest.fixture
async def network() -> AsyncIterator[Network]:
    async with AsyncExitStack() as stack:
        yield Network(stack)


@pytest.mark.parametrize("edge_dials", [True, False])
async def test_an_edge_is_served_over_http_whoever_dialled(
    network: Network, edge_dials: bool
) -> None:
    """A node joined over HTTP served nobody: light push, filter and Store were 503 and 412."""
    relay = await network.enter("relay", options=SERVICE)
    if edge_dials:
        service = await network.enter("service", "relay", options=SERVICE)
        edge = await network.enter("edge", "service", options=EDGE)
    else:
        edge = await network.enter("edge", options=EDGE)
        service = await network.enter("service", "relay", "edge", options=SERVICE)
        await until(lambda: meets(edge))
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


async def test_a_filter_subscription_survives_a_restart_of_the_service_node(
    network: Network,
) -> None:
    await network.enter("service", options=SERVICE)
    edge = await network.enter("edge", "service", options=EDGE)
    async with client(edge) as reader:
        await reader.filter_subscribe([TOPIC])
        network.wires.cut_off("service")
        await until(lambda: meets(edge, others=0))
        again = network.wires.node("service", options=SERVICE)
        async with again:
            network.wires.mend("service")
            await until(lambda: bool(again.filter.criteria))
            publish(again, message(1, timestamp=5))
            assert await pushed(reader, message(1, timestamp=5)) == [message(1, timestamp=5)]


async def test_filter_moves_to_another_node_when_its_own_stays_away(network: Network) -> None:
    first = await network.enter("first", options=SERVICE)
    second = await network.enter("second", options=SERVICE)
    edge = await network.enter("edge", "first", "second", options=EDGE)
    async with client(edge) as reader, client(edge, "other") as other:
        await reader.filter_subscribe([TOPIC])
        serving, spare = (first, second) if first.filter.criteria else (second, first)
        network.wires.cut_off("first" if serving is first else "second")
        await until(lambda: meets(edge))
        await other.filter_subscribe(["/app/1/elsewhere/proto"])
        await until(lambda: (SHARD, TOPIC) in spare.filter.criteria)
        publish(spare, message(1, timestamp=5))
        await pushed(reader, message(1, timestamp=5))


async def test_clients_of_an_edge_share_what_it_subscribed_to(network: Network) -> None:
    service = await network.enter("service", options=SERVICE)
    edge = await network.enter("edge", "service", options=EDGE)
    async with client(edge, "one") as one, client(edge, "two") as two:
        for reader in (one, two):
            await reader.filter_subscribe([TOPIC])
        await one.filter_unsubscribe([TOPIC])
        assert (SHARD, TOPIC) in service.filter.criteria
        publish(service, message(1, timestamp=5))
        await pushed(two, message(1, timestamp=5))
        inside.forget_client(edge, edge.clients.get("two"))
        await until(lambda: not service.filter.criteria)


async def test_a_message_is_pushed_once(network: Network) -> None:
    """As by nwaku; a client of the node itself gets it as often as it is published."""
    service = await network.enter("service", options=replace(OPTIONS, self_service=True))
    edge = await network.enter("edge", "service", options=EDGE)
    async with client(edge) as reader, client(service) as near:
        for one in (reader, near):
            await one.filter_subscribe([TOPIC])
        for number in (1, 1, 2):
            publish(service, message(number, timestamp=5))
        found = await pushed(reader, message(2, timestamp=5))
        assert [one.payload for one in found] == [b"message 1", b"message 2"]


async def test_a_link_that_is_forgotten_takes_its_subscription_along(network: Network) -> None:
    now = [10**18]
    service = await network.enter("service", options=replace(SERVICE, now_ns=lambda: now[0]))
    edge = await network.enter("edge", "service", options=EDGE)
    async with client(edge) as reader:
        await reader.filter_subscribe([TOPIC])
    network.wires.cut_off("service")
    now[0] += 61 * 10**9
    network.wires.mend("service")
    await network.enter("another", "service")
    await until(lambda: meets(edge))
    await until(lambda: list(service.filter.criteria_by_peer()) == [edge.peer_id])
    network.wires.cut_off("service")
    now[0] += 61 * 10**9
    edge.service_nodes.drop(edge.clients.get("reader"))
    network.wires.mend("service")
    await network.enter("a third", "service")
    assert not service.filter.criteria


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # httpx's ASGITransport leaks under trio
async def test_store_by_pages_of_bounded_size(network: Network, ascending: bool) -> None:
    """An answer on its way between nodes stays below the limit of a body."""
    service = await network.enter("service", options=SERVICE)
    edge = await network.enter("edge", "service", options=EDGE)
    large = [
        replace(message(number, timestamp=number + 1), payload=bytes(140_000 - number))
        for number in range(12)
    ]
    publish(service, *large)
    async with client(edge) as reader:
        query = StoreQuery(page_size=100, ascending=ascending)
        first = await reader.store(query)
        assert 1 < len(first.entries) < 12
        assert first.cursor is not None
        found = [entry async for entry in reader.store_all(query)]
        timestamps = {entry.message.timestamp for entry in found if entry.message is not None}
        assert len(found) == 12 and timestamps == set(range(1, 13))
        hashes = tuple(entry.message_hash for entry in found[:3])
        assert len(await reader.store_by_hash(hashes)) == 3
        with pytest.raises(CursorExpired):
            await reader.store(replace(query, cursor=b"\x01" * 32))


async def test_a_service_node_that_is_away_is_a_dial_failure(network: Network) -> None:
    """nwaku's words, in each of its protocols."""
    service = await network.enter("service", options=SERVICE)
    edge = await network.enter("edge", "service", options=EDGE)
    network.wires.cut_off("service")
    await until(lambda: meets(edge, others=0))
    wanted_push = {"message": {"payload": "YQ==", "contentTopic": TOPIC}}
    wanted = {"requestId": "r", "contentFilters": [TOPIC]}
    async with rest(edge) as http:
        legacy = await http.post("/lightpush/v1/message", json=wanted_push)
        newer = await http.post("/lightpush/v3/message", json=wanted_push)
        filtered = await http.post("/filter/v2/subscriptions", json=wanted)
        stored = await http.get("/store/v3/messages")
    assert (legacy.status_code, legacy.text) == (
        503,
        "Failed to request a message push: dial_failure",
    )
    description = f"dial_failure: {service.peer_id} is not accessible"
    assert (newer.status_code, newer.json()) == (505, {"statusDesc": description})
    assert filtered.status_code == 504
    assert (stored.status_code, stored.json()["statusCode"]) == (200, 504)
    assert stored.json()["statusDesc"] == f"PEER_DIAL_FAILURE: {service.peer_id}"
    assert not edge.service_nodes.subscriptions.criteria


async def test_a_named_service_node_is_asked_and_no_other(network: Network) -> None:
    await network.enter("relay", options=SERVICE)
    await network.enter("service", "relay", options=SERVICE)
    await network.enter("bare", "relay", options=replace(SERVICE, lightpush=False))
    named = {"lightpush": "http://bare"}
    edge = await network.enter("edge", "service", options=EDGE, service_nodes=named)
    async with rest(edge) as http:
        wanted_push = {"message": {"payload": "YQ==", "contentTopic": TOPIC}}
        refused = await http.post("/lightpush/v1/message", json=wanted_push)
        assert refused.text == "Failed to request a message push: dial_failure"
        wanted = {"requestId": "r", "contentFilters": [TOPIC]}
        assert (await http.post("/filter/v2/subscriptions", json=wanted)).status_code == 200
        health = (await http.get("/health")).json()["protocolsHealth"]
        assert {"Filter Client": "READY"} in health


async def test_a_named_service_node_goes_before_the_node_itself(network: Network) -> None:
    service = await network.enter("service")
    full = await network.enter("full", service_nodes={"filter": "http://service"})
    async with client(full) as reader:
        await reader.filter_subscribe([TOPIC])
        assert service.filter.criteria and not full.filter.criteria


async def test_nobody_takes_a_message_whose_topic_no_peer_follows(network: Network) -> None:
    """A joined node counted as a peer of every topic: the message was lost as a success."""
    elsewhere = await network.enter("elsewhere", options=replace(SERVICE, shards=(7,)))
    service = await network.enter("service", "elsewhere", options=SERVICE)
    edge = await network.enter("edge", "service", options=EDGE)
    assert [service.mesh.followers(f"/waku/2/rs/1/{shard}") for shard in (7, 4)] == [1, 0]
    async with rest(edge) as http, rest(elsewhere) as there, rest(service) as here:
        refused = await http.post("/lightpush/v3/message", json=WANTED_PUSH)
        assert (refused.status_code, refused.json()["statusDesc"]) == (
            505,
            "No peers for topic, skipping publish",
        )
        await there.post("/relay/v1/subscriptions", json=[SHARD])
        await until(lambda: service.mesh.followers(SHARD) == 1)
        pushed = await http.post("/lightpush/v3/message", json=WANTED_PUSH)
        assert pushed.json() == {"relayPeerCount": 1}
        await there.request("DELETE", "/relay/v1/subscriptions", json=[SHARD])
        await until(lambda: service.mesh.followers(SHARD) == 0)
        assert elsewhere.mesh.followers(SHARD) == 1
        await here.request("DELETE", "/relay/v1/subscriptions", json=[SHARD])
        await until(lambda: elsewhere.mesh.followers(SHARD) == 0)


def test_a_service_that_there_is_not_is_named() -> None:
    with pytest.raises(ValueError, match=r"filter, lightpush or store \(got 'light_push'\)"):
        EmbeddedNode(service_nodes={"light_push": "http://a"})  # type: ignore[dict-item]


async def test_a_lone_node_has_no_service_node() -> None:
    async with EmbeddedNode(SERVICE) as node, rest(node) as http:
        wanted_push = {"message": {"payload": "YQ==", "contentTopic": TOPIC}}
        refused = await http.post("/lightpush/v3/message", json=wanted_push)
        assert refused.json() == {"statusDesc": "No suitable service peer & no discovery method"}
        assert node.service_nodes.find("store") is None


async def test_the_protocols_of_a_node_are_what_it_serves(network: Network) -> None:
    """A node without filter refuses, whatever the other one believes."""
    await network.enter("service", options=replace(SERVICE, filter=False))
    edge = await network.enter("edge", "service", options=EDGE)
    assert edge.service_nodes.find("filter") is None
    (link,) = edge.mesh.links.values()
    assert link.info is not None
    link.info = replace(link.info, protocols=(FILTER,))  # type: ignore[misc]
    async with rest(edge) as http:
        wanted = {"requestId": "r", "contentFilters": [TOPIC]}
        assert (await http.post("/filter/v2/subscriptions", json=wanted)).status_code == 503
