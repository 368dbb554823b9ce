"""Answers that were seen on live nwaku nodes and are not among the recordings."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.waku.node.wires import TOPIC, message, publish
from waku import StoreQuery, WakuClient, WakuMessage
from waku.errors import BadRequest
from waku.node import EmbeddedNode, NodeOptions

pytestmark = pytest.mark.anyio

JSON = {"content-type": "application/json"}
FILTER = "/filter/v2/subscriptions"
FORMAT = (
    "invalid format: Invalid content topic structure. Expected either"
    " /<application>/<version>/<topic-name>/<encoding> or"
    " /<gen>/<application>/<version>/<topic-name>/<encoding>"
)
PUSHED = {
    "odd": "Invalid content-topic:invalid format: content-topic 'odd' must start with slash",
    "/a/b": f"Invalid content-topic:{FORMAT}",
    "/a//b/c": "Invalid content-topic:missing part: version",
    "/x/a/1/b/c": "Invalid content-topic:invalid format: generation should be a numeric value",
    "/1/a/1/b/c": "Autosharding error: Generation > 0 are not supported yet",
}


@pytest.fixture
async def node() -> AsyncIterator[EmbeddedNode]:
    async with EmbeddedNode() as one:
        yield one


@pytest.fixture
async def http(node: EmbeddedNode) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=node.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:
        yield client


@pytest.mark.parametrize("topic", PUSHED)
async def test_content_topics_without_a_shard(http: httpx.AsyncClient, topic: str) -> None:
    pushed = {"message": {"payload": "YQ==", "contentTopic": topic}}
    answer = await http.post("/lightpush/v3/message", json=pushed)
    assert (answer.status_code, answer.json()) == (500, {"statusDesc": PUSHED[topic]})
    answer = await http.post("/lightpush/v1/message", json=pushed)
    assert answer.status_code == 503
    assert answer.text == f"Failed to request a message push: {PUSHED[topic]}"
    wanted = {"requestId": "r", "contentFilters": [TOPIC, topic]}
    for method in ("POST", "PUT", "DELETE"):
        answer = await http.request(method, FILTER, json=wanted)
        assert answer.status_code == 500
        assert answer.json() == {"requestId": "r", "statusDesc": "BAD_RESPONSE: can't get shard"}


async def test_the_client_does_not_try_them_again(node: EmbeddedNode) -> None:
    """A 500 is worth a repetition, a topic without a shard is not."""
    async with WakuClient("http://node", app=node.app) as client:
        for topic in PUSHED:
            with pytest.raises(BadRequest):
                await client.lightpush(WakuMessage(b"a", topic))
            with pytest.raises(BadRequest):
                await client.filter_subscribe([topic])


async def test_without_a_service_node_that_is_said_first() -> None:
    options = NodeOptions(self_service=False)
    async with EmbeddedNode(options) as node:
        transport = httpx.ASGITransport(app=node.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://node") as http:
            wanted = {"requestId": "r", "contentFilters": ["odd"]}
            assert (await http.post(FILTER, json=wanted)).status_code == 503


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_equal_topics_are_counted(http: httpx.AsyncClient, method: str) -> None:
    for number, status in ((100, 200), (101, 400)):
        wanted = {"requestId": "r", "contentFilters": [TOPIC] * number}
        if method == "DELETE":
            await http.post(FILTER, json={"requestId": "r", "contentFilters": [TOPIC]})
        assert (await http.request(method, FILTER, json=wanted)).status_code == status


@pytest.mark.parametrize("size", [64, 65])
async def test_a_long_meta_is_not_decoded_by_the_service_node(
    http: httpx.AsyncClient, size: int
) -> None:
    meta = base64.b64encode(bytes(size)).decode()
    pushed = {"message": {"payload": "YQ==", "contentTopic": TOPIC, "meta": meta}}
    legacy = await http.post("/lightpush/v1/message", json=pushed)
    newer = await http.post("/lightpush/v3/message", json=pushed)
    if size == 64:
        assert [legacy.status_code, newer.status_code] == [200, 200]
        return
    reason = 'decode_rpc_failure: (kind: InvalidLengthField, field: "meta")'
    assert legacy.status_code == 503
    assert legacy.text == f"Failed to request a message push: {reason}"
    assert newer.status_code == 500
    assert newer.json() == {"statusDesc": "response failure, requestId mismatch"}


async def test_hashes_and_cursors_may_begin_with_a_large_x(
    node: EmbeddedNode, http: httpx.AsyncClient
) -> None:
    publish(node, message(1, timestamp=1), message(2, timestamp=2))
    assert node.archive is not None
    first, second = (e.message_hash.hex() for e in node.archive.query(StoreQuery()).entries)
    for query in (f"cursor=0X{first}", f"hashes=0X{second}", f"cursor=0x{first}"):
        found = (await http.get(f"/store/v3/messages?{query}")).json()["messages"]
        assert [entry["messageHash"] for entry in found] == [f"0x{second}"]


BAD = {
    "includeData": ("maybe", "include data parsing error: cannot interpret as a bool: maybe"),
    "startTime": ("a", "time parsing error: invalid integer: a"),
    "endTime": ("b", "time parsing error: invalid integer: b"),
    "hashes": ("z", "Exception converting hex string to bytes: z is not a hexadecimal character"),
    "cursor": ("y", "Exception converting hex string to bytes: y is not a hexadecimal character"),
    "pageSize": ("c", "page size parsing error: invalid integer: c"),
    "peerAddr": ("bad", "Failed parsing remote peer info"),
}
"""In nwaku's order."""


async def test_of_several_bad_parameters_nwaku_names_the_first(http: httpx.AsyncClient) -> None:
    names = list(BAD)
    for start, name in enumerate(names):
        query = {later: BAD[later][0] for later in reversed(names[start:])}
        answer = await http.get("/store/v3/messages", params=query)
        assert answer.status_code == 400 and answer.text.startswith(BAD[name][1]), name


@pytest.mark.parametrize(
    "body",
    [
        '["/a/1/b/proto",]',
        '["/a/1/b/proto" , ] // the end',
        '/* one */ ["/a/1/b/proto" /* two, ] */ ]',
        '[// ]\n"/a/1/b/proto"]',
    ],
)
async def test_json_as_people_write_it(http: httpx.AsyncClient, body: str) -> None:
    path = "/relay/v1/auto/subscriptions"
    assert (await http.post(path, content=body, headers=JSON)).text == "OK"
    found = await http.get("/relay/v1/auto/messages/%2Fa%2F1%2Fb%2Fproto")
    assert found.status_code == 200


async def test_what_looks_like_a_comment_in_a_text_is_text(
    node: EmbeddedNode, http: httpx.AsyncClient
) -> None:
    topic = '/a//*,]"+5\\/1/b/proto'
    body = (
        '{"payload": "YQ==", "timestamp": +5, /* " */ "contentTopic":'
        ' "/a\\u002f/*,]\\"+5\\\\/1/b/proto",}'
    )
    answer = await http.post(
        "/relay/v1/messages/%2Fwaku%2F2%2Frs%2F1%2F0", content=body, headers=JSON
    )
    assert answer.text == "OK"
    assert node.archive is not None
    (entry,) = node.archive.query(StoreQuery()).entries
    assert entry.message is not None
    assert (entry.message.content_topic, entry.message.timestamp) == (topic, 5)


@pytest.mark.parametrize(
    "body", ["[,]x", "[1+5]", '["a" "b"]', "[1,,2]", "/*", '"', "[+]", "{,,}", "[+-5]"]
)
async def test_not_everything_is_json(http: httpx.AsyncClient, body: str) -> None:
    answer = await http.post("/relay/v1/auto/subscriptions", content=body, headers=JSON)
    assert answer.status_code == 400


@pytest.mark.parametrize("part", ["/*", '\\"', '"', "//", ",", ", ", "*/", "+"])
async def test_reading_it_costs_no_more_than_its_length(http: httpx.AsyncClient, part: str) -> None:
    """Where the cost grows with the square of it, this does not end."""
    body = '["' + part * (200_000 // len(part))
    answer = await http.post("/relay/v1/auto/subscriptions", content=body, headers=JSON)
    assert answer.status_code == 400
