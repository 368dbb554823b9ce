"""The ASGI app beyond the recordings: odd requests, limits, and its description."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import httpx
import pytest

from waku.node import EmbeddedNode, NodeOptions
from waku.node.identity import BadAddress, check_address, is_peer_id, new_peer_id
from waku.node.openapi import SCHEMAS

pytestmark = pytest.mark.anyio

SHARD = "%2Fwaku%2F2%2Frs%2F1%2F0"
PUBLISH = f"/relay/v1/messages/{SHARD}"
AUTO = "/relay/v1/auto/messages"
GOOD = {"payload": "YQ==", "contentTopic": "/a/1/b/proto"}


def caller(node: EmbeddedNode) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=node.app), base_url="http://node")


@pytest.fixture
async def node() -> AsyncIterator[EmbeddedNode]:
    async with EmbeddedNode() as one:
        yield one


@pytest.fixture
async def http(node: EmbeddedNode) -> AsyncIterator[httpx.AsyncClient]:
    async with caller(node) as client:
        yield client


@pytest.mark.parametrize(
    ("changed", "accepted"),
    [
        ({"version": -1}, False),
        ({"version": 2**32 - 1}, True),
        ({"version": 2**32}, False),
        ({"version": True}, False),
        ({"timestamp": 2**63 - 1}, True),
        ({"timestamp": 2**63}, False),
        ({"timestamp": -(2**63)}, True),
        ({"timestamp": None}, False),
        ({"contentTopic": "/a/1/b/\ud800"}, False),
        ({"contentTopic": "/a/1/ä/proto"}, True),
        ({"meta": "***"}, False),
        ({"payload": "YQ==YQ=="}, False),
        ({"payload": "Y"}, False),
        ({"proof": "YQ"}, True),
        ({"ephemeral": 1}, False),
    ],
)
async def test_fields(http: httpx.AsyncClient, changed: dict[str, object], accepted: bool) -> None:
    body = json.dumps({**GOOD, **changed})
    answer = await http.post(PUBLISH, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == (200 if accepted else 400)


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b"\xff", b"NaN", b"1" * 5000, b'{"payload":1e5}', b"null", b"{}"]
)
async def test_bodies_that_are_not_messages(http: httpx.AsyncClient, body: bytes) -> None:
    for path in (PUBLISH, AUTO, "/lightpush/v1/message", "/lightpush/v3/message"):
        answer = await http.post(path, content=body, headers={"content-type": "text/plain"})
        assert answer.status_code == 400, path
        assert "Invalid content body, could not decode" in answer.text


async def test_size_limits(http: httpx.AsyncClient) -> None:
    def of(size: int) -> dict[str, str]:
        return {**GOOD, "payload": base64.b64encode(bytes(size)).decode()}

    assert (await http.post(PUBLISH, json=of(153_500))).status_code == 200
    assert "exceeded" in (await http.post(PUBLISH, json=of(153_600))).text


async def test_a_body_beyond_the_limit_is_not_read(node: EmbeddedNode) -> None:
    parts = [b" " * NodeOptions().body_limit_bytes, b" ", b"not asked for"]
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": parts.pop(0), "more_body": True}

    async def send(event: MutableMapping[str, Any]) -> None:
        sent.append(event)

    scope = {"type": "http", "method": "POST", "raw_path": PUBLISH.encode(), "query_string": b""}
    await node.app({**scope, "headers": []}, receive, send)
    assert sent[0]["status"] == 413 and parts == [b"not asked for"]


async def test_a_message_with_long_meta_is_taken_and_dropped(http: httpx.AsyncClient) -> None:
    for size, arrives in ((64, True), (65, False)):
        meta = base64.b64encode(bytes(size)).decode()
        assert (await http.post(PUBLISH, json={**GOOD, "meta": meta})).text == "OK"
        assert bool((await http.get(PUBLISH)).json()) is arrives


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/relay/v1/messages/%2Fa/"),
        ("GET", "/%2e%2e/info"),
        ("PATCH", "/info"),
        ("HEAD", "/relay/v1/auto/messages/%2Fa%2F1%2Fb%2Fproto"),
    ],
)
async def test_what_no_route_takes(http: httpx.AsyncClient, method: str, path: str) -> None:
    answer = await http.request(method, path)
    assert (answer.status_code, answer.text) == (404, "")
    assert answer.headers["content-type"] == "text/plain"


async def test_the_address_says_what_it_is(http: httpx.AsyncClient) -> None:
    answer = await http.get("/")
    assert answer.status_code == 200
    assert answer.text.startswith("This is a Waku node")


@pytest.mark.parametrize("path", ["/", "/health", "/info", "/version", "/docs", "/metrics"])
async def test_a_head_is_that_of_the_get(http: httpx.AsyncClient, path: str) -> None:
    head, whole = await http.head(path), await http.get(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert int(head.headers["content-length"]) > 0


async def test_client_ids_are_bounded(http: httpx.AsyncClient) -> None:
    assert (await http.get(PUBLISH, headers={"Waku-Client-Id": "x" * 129})).status_code == 400
    assert (await http.get(PUBLISH, headers={"Waku-Client-Id": "x" * 128})).status_code == 404


async def test_topics_without_a_shard(http: httpx.AsyncClient) -> None:
    for topic, text in (
        ("/a/b", "Invalid content topic structure"),
        ("/1/a/1/b/c", "Generation > 0"),
        ("a", "must start with slash"),
    ):
        message = {**GOOD, "contentTopic": topic}
        assert text in (await http.post(AUTO, json=message)).text
        assert text in (await http.post("/lightpush/v3/message", json={"message": message})).text
        wanted = {"requestId": "r", "contentFilters": [topic]}
        answer = await http.post("/filter/v2/subscriptions", json=wanted)
        assert answer.status_code == 500 and "can't get shard" in answer.text
        answer = await http.request("DELETE", "/relay/v1/auto/subscriptions", json=[topic])
        assert answer.text.startswith("Unsubscribe failed:Autosharding error")


async def test_a_lone_node_serves_its_light_clients(http: httpx.AsyncClient) -> None:
    pushed = {"message": {**GOOD, "timestamp": 1}}
    for _ in range(2):
        answer = await http.post("/lightpush/v3/message", json=pushed)
        assert (answer.status_code, answer.json()) == (200, {"relayPeerCount": 1})
    elsewhere = {**pushed, "pubsubTopic": "/waku/2/rs/1/99"}
    assert (await http.post("/lightpush/v3/message", json=elsewhere)).status_code == 505


async def test_filter_limits(http: httpx.AsyncClient) -> None:
    for batch in range(11):
        topics = [f"/a/1/{batch}-{number}/proto" for number in range(100)]
        wanted = {"requestId": "r", "contentFilters": topics}
        answer = await http.post("/filter/v2/subscriptions", json=wanted)
        assert answer.status_code == (200 if batch < 10 else 503)


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_a_filter_request_names_a_hundred_topics_at_most(
    http: httpx.AsyncClient, method: str
) -> None:
    topics = [f"/a/1/{number}/proto" for number in range(101)]
    body = {"requestId": "r", "contentFilters": topics}
    answer = await http.request(method, "/filter/v2/subscriptions", json=body)
    assert answer.status_code == 400
    assert answer.json()["statusDesc"] == "BAD_REQUEST: exceeds maximum content topics: 100"


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("cursor=0x1234", 400, "invalid hash length: 2"),
        (f"cursor={'ab' * 32}", 500, "cursor not found"),
        ("startTime=%2B5_000", 200, ""),
        ("endTime=99999999999999999999", 400, "time parsing error: Parsed integer outside"),
        ("peerAddr=/ip4/127.0.0.1/tcp/1", 400, "no peer id"),
        ("peerAddr=/ip4/127.0.0.1/udp/1", 400, "no IP address and TCP port"),
        ("contentTopics=%252Fa%252F1%252Fb%252Fproto", 200, ""),
    ],
)
async def test_store_parameters(
    http: httpx.AsyncClient, query: str, status: int, text: str
) -> None:
    answer = await http.get(f"/store/v3/messages?{query}")
    assert answer.status_code == status and text in answer.text


async def test_no_store_anywhere() -> None:
    async with EmbeddedNode(NodeOptions(store=False)) as node, caller(node) as http:
        assert (await http.get("/store/v3/messages")).status_code == 412
        health = (await http.get("/health")).json()["protocolsHealth"]
        assert {"Store": "NOT_MOUNTED"} in health


async def test_the_admin_api_joins_nodes(node: EmbeddedNode, http: httpx.AsyncClient) -> None:
    nowhere = "/ip4/127.0.0.1/tcp/1"
    answer = await http.post("/admin/v1/peers", json=[nowhere])
    assert (answer.status_code, answer.text) == (
        400,
        f"Failed to connect to peer at index: 0 - {nowhere}",
    )
    async with EmbeddedNode() as other:
        node.join(other)
        known = (await http.get("/admin/v1/peers")).json()
        assert [peer["multiaddr"] for peer in known] == [f"/p2p/{other.peer_id}"]


async def test_the_log_level_is_set(http: httpx.AsyncClient) -> None:
    logger = logging.getLogger("waku.node")
    before = logger.level
    await http.post("/admin/v1/log-level/warn")
    assert logger.level == logging.WARNING
    logger.setLevel(before)


async def test_any_origin() -> None:
    async with EmbeddedNode(NodeOptions(allow_origins=("*",))) as node, caller(node) as http:
        answer = await http.get("/info", headers={"origin": "http://x"})
        assert answer.headers["access-control-allow-origin"] == "http://x"


async def test_the_description_lists_every_route(
    node: EmbeddedNode, http: httpx.AsyncClient
) -> None:
    answer = await http.get("/openapi.json")
    described = answer.json()
    assert described["openapi"] == "3.1.0"
    listed = {
        (method.upper(), path)
        for path, operations in described["paths"].items()
        for method in operations
    }
    assert listed == {(route.method, route.path) for route in node.app.router.routes}
    ids = [
        operation["operationId"]
        for path in described["paths"].values()
        for operation in path.values()
    ]
    assert len(ids) == len(set(ids))
    references = {part.split('"')[0] for part in answer.text.split("#/components/schemas/")[1:]}
    assert references <= SCHEMAS.keys()
    page = (await http.get("/docs")).text
    assert all(path.replace("&", "&amp;") in page for _, path in listed)
    assert "<script" not in page and "http://" not in page and "https://" not in page


async def test_only_http() -> None:
    async with EmbeddedNode() as node:
        with pytest.raises(RuntimeError, match="lifespan"):
            await node.app({"type": "lifespan"}, None, None)  # type: ignore[arg-type]


async def test_an_exception_leaves_the_node_as_it_is() -> None:
    with pytest.raises(KeyError):
        async with EmbeddedNode():
            raise KeyError


def test_addresses() -> None:
    peer_id = new_peer_id()
    for text in (f"/ip4/127.0.0.1/tcp/5/p2p/{peer_id}", f"/dns4/node/tcp/5/wss/p2p/{peer_id}"):
        assert check_address(text) == peer_id
    assert check_address("/ip6/::1/tcp/5") is None
    for text in (
        "",
        "http://x:5",
        "/ip4/1.2.3.4",
        "/ip4/1.2.3.4/tcp/0",
        "/ip4/1.2.3.4/tcp/5/p2p/x",
    ):
        with pytest.raises(BadAddress):
            check_address(text)


@pytest.mark.parametrize("host", ["127.0.0444.1", "", "a\0b", "[::1"])
async def test_a_host_that_nobody_can_be_asked_at_is_no_address(host: str) -> None:
    """It was a 500 of the node that should have joined it; found by fuzzing."""
    text = f"/ip4/{host}/tcp/5"
    async with EmbeddedNode() as node, caller(node) as client:
        answer = await client.post("/admin/v1/peers", json=[text])
        assert answer.status_code == 400


def test_peer_ids() -> None:
    assert new_peer_id().startswith("16Uiu2HA") and is_peer_id(new_peer_id())
    assert is_peer_id("QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N")
    for text in ("", "bad", "1", "0O", "1" * 200, "16Uiu2HAm"):
        assert not is_peer_id(text), text


@pytest.mark.parametrize(
    "wrong",
    [{"num_shards": 0}, {"cluster_id": 70_000}, {"shards": (70_000,)}, {"client_idle_s": 0}],
)
def test_options_out_of_range(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"must be positive|between 0 and"):
        NodeOptions(**wrong)  # type: ignore[arg-type]
