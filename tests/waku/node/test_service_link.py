"""Attack: a service node that lies, floods or is silent, and a joined node that asks too much."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import httpx
import pytest

from tests.waku.node.wires import OPTIONS, TOPIC, message, until
from waku import WakuMessage, pubsub_topic_for
from waku.node import EmbeddedNode, Envelope, NodeOptions
from waku.node.budget import BURST_S
from waku.node.outbox import BATCH_MESSAGES
from waku.node.protocols import FILTER, LIGHTPUSH, STORE
from waku.node.service_link import MAX_PENDING

pytestmark = pytest.mark.anyio

EDGE = replace(OPTIONS, relay=False, store=False, filter=False, lightpush=False, self_service=False)
SHARD = pubsub_topic_for(TOPIC, cluster_id=1, num_shards=8)
PUSH = {"message": {"payload": "YQ==", "contentTopic": TOPIC}}
WANTED = {"requestId": "r", "contentFilters": [TOPIC]}
MIB = 1024 * 1024

Answering = Callable[[dict[str, Any]], list[object]]


class Rogue(httpx.AsyncBaseTransport):
    """A node that is joined, and answers what it likes to each request of a service."""

    def __init__(self, answering: Answering) -> None:
        self.asked: list[dict[str, Any]] = []
        self.hellos = 0
        self._answering = answering
        self._items: list[object] = []
        self._given = 0
        self._changed = anyio.Event()

    def say(self, *items: object) -> None:
        """Send items that nobody asked for."""
        self._items += items
        self._changed.set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        if request.url.path == "/mesh/v1/hello":
            self.hellos += 1
            return _json(
                peerId="rogue",
                multiaddr="/ip4/127.0.0.1/tcp/1/http",
                protocols=[LIGHTPUSH, FILTER, STORE],
                shards=[],
                agent="rogue",
                clusterId=1,
            )
        if request.method == "POST":
            for item in json.loads(body).get("services", []):
                self.asked.append(item)
                self.say(*self._answering(item))
            return _json(taken=0)
        while not self._items:
            self._changed = anyio.Event()
            await self._changed.wait()
        items, self._items = self._items[:BATCH_MESSAGES], self._items[BATCH_MESSAGES:]
        self._given += len(items)
        return _json(messages=[], services=items, last=self._given)


def _json(**fields: object) -> httpx.Response:
    return httpx.Response(200, content=json.dumps(fields).encode())


def answer(**fields: object) -> Answering:
    return lambda asked: [{"kind": "answer", "id": asked["id"], **fields}]


@asynccontextmanager
async def edge_of(
    rogue: Rogue, options: NodeOptions = EDGE
) -> AsyncIterator[tuple[EmbeddedNode, httpx.AsyncClient]]:
    async with EmbeddedNode(options, join=["http://rogue"], transport=rogue) as edge:
        transport = httpx.ASGITransport(app=edge.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://node") as http:
            await until(lambda: bool(edge.mesh.peers()))
            yield edge, http


def pushed(one: WakuMessage, pubsub_topic: str = SHARD) -> dict[str, object]:
    return {"kind": "push", **Envelope.of(pubsub_topic, one).to_json()}


@pytest.mark.parametrize(
    "fields",
    [
        {"status": 999, "desc": "", "legacy": ""},
        {"status": 302, "desc": "", "legacy": ""},
        {"status": 300, "desc": "", "legacy": ""},
        {"status": "200"},
        {"status": 500, "desc": 5, "legacy": ""},
        {"status": 200},
        {"status": 200, "relayPeerCount": -1},
        {"status": 200, "relayPeerCount": 10**30},
        {"status": 200, "relayPeerCount": "1"},
        {},
    ],
)
async def test_an_answer_that_cannot_be_read_is_a_failure_of_the_service_node(
    fields: dict[str, object],
) -> None:
    async with edge_of(Rogue(answer(**fields))) as (_, http):
        found = await http.post("/lightpush/v3/message", json=PUSH)
        assert (found.status_code, found.json()) == (500, {"statusDesc": "decode_rpc_failure"})


async def test_a_refusal_is_cut_short() -> None:
    rogue = Rogue(answer(status=400, desc="a" * 100_000, legacy="b" * 100_000))
    async with edge_of(rogue) as (_, http):
        found = await http.post("/lightpush/v3/message", json=PUSH)
        assert found.status_code == 400 and len(found.content) < 2_000


def entry(number: int, **changed: object) -> dict[str, object]:
    one = Envelope.of(SHARD, message(number, timestamp=1))
    return {"hash": one.hash.hex(), **one.to_json(), **changed}


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [entry(1, hash="ab" * 32)], "cursor": None},
        {"messages": [entry(1, pubsubTopic="/waku/2/rs/1/7")], "cursor": None},
        {"messages": [{"hash": "ab" * 32}], "cursor": None},
        {"messages": [entry(1), entry(2), entry(3)], "cursor": None},
        {"messages": [entry(1)], "cursor": "ab"},
        {"messages": [entry(1)], "cursor": 5},
        {"messages": None},
        {},
    ],
)
async def test_a_page_that_is_not_what_was_asked_for_is_refused(
    fields: dict[str, object],
) -> None:
    """A forged message would have reached clients under any hash."""
    async with edge_of(Rogue(answer(status=200, **fields))) as (_, http):
        found = await http.get("/store/v3/messages?includeData=true&pageSize=2")
        assert found.json()["statusDesc"] == "BAD_RESPONSE: decode_rpc_failure"
        assert found.json()["messages"] == []


async def test_what_is_pushed_unasked_too_often_or_too_large_reaches_nobody() -> None:
    rogue = Rogue(answer(status=200))
    async with edge_of(rogue) as (edge, http):
        assert (await http.post("/filter/v2/subscriptions", json=WANTED)).status_code == 200
        rogue.say(
            pushed(message(1, timestamp=1)),
            pushed(message(1, timestamp=1)),
            pushed(replace(message(2), payload=bytes(200_000))),
            pushed(replace(message(3), meta=bytes(65))),
            pushed(replace(message(4), content_topic="/app/1/elsewhere/proto")),
            pushed(message(5), "/waku/2/rs/1/7"),
            *(pushed(message(n, timestamp=n)) for n in range(10, 210)),
        )
        cache = edge.clients.unnamed.filter_cache
        await until(lambda: cache.dropped == 151)
        assert len(cache) == edge.options.cache_capacity == 50
        rogue.say(pushed(message(1, timestamp=1)), pushed(message(300, timestamp=300)))
        await until(lambda: cache.dropped == 152)


async def test_a_silent_service_node_costs_time_and_no_more() -> None:
    rogue = Rogue(lambda asked: [])
    async with edge_of(rogue, replace(EDGE, peer_timeout_s=0.01)) as (edge, http):
        found = await http.post("/lightpush/v1/message", json=PUSH)
        assert found.text == "Failed to request a message push: Push request timed out"
        found = await http.get("/store/v3/messages")
        assert (found.status_code, found.text) == (500, "No history response received (timeout)")
        found = await http.post("/filter/v2/subscriptions", json=WANTED)
        assert found.status_code == 503
        assert not edge.service_nodes.subscriptions.criteria
        assert (await http.get(f"/filter/v2/messages/{TOPIC.replace('/', '%2F')}")).is_error


async def test_requests_that_wait_for_a_node_are_bounded() -> None:
    rogue = Rogue(lambda asked: [])
    async with edge_of(rogue, replace(EDGE, peer_timeout_s=3600)) as (_, http):
        async with anyio.create_task_group() as tasks:
            for _ in range(MAX_PENDING):
                tasks.start_soon(http.get, "/store/v3/messages")
            await until(lambda: len(rogue.asked) == MAX_PENDING)
            found = await http.get("/store/v3/messages")
            assert found.text == "No history response received (timeout)"
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("nonsense", [5, [], {}, {"kind": "ask"}, {"kind": "push"}, {"kind": "x"}])
async def test_an_item_that_is_none_costs_the_link_alone(nonsense: object) -> None:
    rogue = Rogue(answer(status=200, relayPeerCount=1))
    async with edge_of(rogue) as (_, http):
        rogue.say({"kind": "answer", "id": 12345, "status": 200})  # nobody asked: ignored
        rogue.say(nonsense)
        await until(lambda: rogue.hellos == 2)
        while (await http.post("/lightpush/v3/message", json=PUSH)).status_code != 200:
            await anyio.lowlevel.checkpoint()


class Asker:
    """A joined node that asks a service node whatever it likes."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self._taken = 0

    async def hello(self) -> None:
        hello = {"peerId": "asker", "multiaddr": "/ip4/127.0.0.1/tcp/1/http", "protocols": []}
        fields = {**hello, "shards": [], "agent": "asker", "clusterId": 1}
        (await self._http.post("/mesh/v1/hello", json=fields)).raise_for_status()

    async def ask(self, *requests: object) -> httpx.Response:
        items = [
            {"kind": "ask", "id": n, **r} if isinstance(r, dict) else r
            for n, r in enumerate(requests)
        ]
        body = {"peerId": "asker", "messages": [], "services": items}
        headers = {"Content-Type": "application/json"}
        return await self._http.post("/mesh/v1/messages", content=json.dumps(body), headers=headers)

    async def answers(self) -> list[dict[str, Any]]:
        params = {"peerId": "asker", "after": str(self._taken)}
        found = (await self._http.get("/mesh/v1/messages", params=params)).json()
        self._taken = found["last"]
        services: list[dict[str, Any]] = found.get("services", [])
        return services


@asynccontextmanager
async def asker_of(**options: Any) -> AsyncIterator[tuple[EmbeddedNode, Asker]]:
    async with EmbeddedNode(NodeOptions(**{"now_ns": lambda: 10**18, **options})) as node:
        transport = httpx.ASGITransport(app=node.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://node") as http:
            asker = Asker(http)
            await asker.hello()
            yield node, asker


PING = {"service": "ping", "criteria": []}


async def test_a_joined_node_that_asks_too_much_is_refused() -> None:
    now = [10**18]
    async with asker_of(service_requests_per_s=2, now_ns=lambda: now[0]) as (_, asker):
        await asker.ask(*[PING] * 20)
        statuses = [one["status"] for one in await asker.answers()]
        burst = 2 * BURST_S
        assert statuses == [404] * burst + [429] * (20 - burst)
        now[0] += 10**9
        await asker.ask(*[PING] * 3)
        assert [one["status"] for one in await asker.answers()] == [404, 404, 429]


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"service": "reboot"},
        {"service": "push", "pubsubTopic": 5, "message": {}},
        {"service": "push", "pubsubTopic": "\ud800", "message": {"contentTopic": "/a"}},
        {"service": "subscribe", "criteria": [["/a"]]},
        {"service": "subscribe", "criteria": [["/a", 5]]},
        {"service": "subscribe", "criteria": [["/a", "/b"]] * 1000},
        {"service": "query", "query": {}},
        {"service": "query", "query": {"pubsubTopic": None, "hashes": ["x"]}},
    ],
)
async def test_a_request_that_cannot_be_read_is_answered(request_: dict[str, object]) -> None:
    async with asker_of() as (_, asker):
        assert (await asker.ask(request_)).status_code == 200
        (found,) = await asker.answers()
        assert found["status"] == 400 and len(found["desc"]) < 200


async def test_items_that_are_none_are_refused() -> None:
    async with asker_of() as (_, asker):
        for items in ([5], [{"kind": "x"}], [PING] * (BATCH_MESSAGES + 1)):
            assert (await asker.ask(*items)).status_code == 400


async def test_the_subscriptions_of_a_joined_node_are_bounded() -> None:
    async with asker_of() as (node, asker):
        for part in range(11):
            criteria = [[SHARD, f"/app/1/{part}/{n}"] for n in range(100)]
            await asker.ask({"service": "subscribe", "criteria": criteria})
        statuses = [one["status"] for one in await asker.answers()]
        assert statuses == [200] * 10 + [503]
        assert len(node.filter.criteria) == 1000


async def test_answers_that_nobody_fetches_are_bounded() -> None:
    query: dict[str, object] = {
        "pubsubTopic": None,
        "contentTopics": [],
        "hashes": [],
        "startTime": None,
    }
    query |= {"startTime": None, "endTime": None}
    rest = {"includeData": True, "ascending": True, "cursor": None}
    asked = {"service": "query", "query": {**query, **rest, "pageSize": 100}}
    async with asker_of(peer_queue_capacity_bytes=MIB) as (node, asker):
        for number in range(4):
            large = replace(message(number), payload=bytes(100_000 - number))
            node.publish(SHARD, large)
        await asker.ask(*[asked] * 20)
        (link,) = node.mesh.links.values()
        assert 1 <= len(link.outbox) <= 2  # type: ignore[attr-defined]
