"""The embedded node: requests as bytes, of clients and of other nodes."""

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

import anyio
import httpx
import trio.testing

from waku.models import StoreQuery, WakuMessage
from waku.node import EmbeddedNode, NodeOptions
from waku.node.http import HTML, JSON, TEXT
from waku.node.openapi import SCHEMAS, document
from waku.node.protocols import RELAY

from ..target import JSON_WORDS, Target, joined, records
from ..vectors import exchanges, written

BETWEEN: Final = b"\n---\n"
MAX_REQUESTS: Final = 8
OPTIONS: Final = NodeOptions(max_clients=4, cache_capacity=5, store_capacity=10, num_shards=2)
PEER: Final = {
    "peerId": "other",
    "multiaddr": "/ip4/127.0.0.1/tcp/1/http",
    "protocols": [],
    "shards": [0],
    "agent": "other",
    "clusterId": 1,
}
MESSAGE: Final = {"payload": "aGVsbG8=", "contentTopic": "/app/1/chat/proto", "timestamp": 1}


class _NobodyThere(httpx.AsyncBaseTransport):
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("nobody is there")


def _requests(data: bytes) -> None:
    """Each request is a line `METHOD target content-type` and a body. None makes the node fail,
    whatever came before it, and each is answered with a status and a type that a client can read.
    """
    requests = data.split(BETWEEN)[:MAX_REQUESTS]
    trio.run(_ask, requests, clock=trio.testing.MockClock(autojump_threshold=0))


async def _ask(requests: list[bytes]) -> None:
    async with EmbeddedNode(OPTIONS, transport=_NobodyThere()) as node:
        for request in requests:
            line, _, body = request.partition(b"\n")
            method, target, content_type = (*line.split(b" ", 2), b"", b"", b"")[:3]
            path, _, query = target.partition(b"?")
            scope = {
                "type": "http",
                "method": method.decode("latin-1"),
                "raw_path": path,
                "query_string": query,
                "headers": [(b"content-type", content_type)] if content_type else [],
                "client": ("127.0.0.1", 1),
            }
            sent: list[Any] = []

            async def keep(part: Any, sent: list[Any] = sent) -> None:
                sent.append(part)

            await node.app(scope, partial(_body, body), keep)
            _is_answer(*sent)


async def _body(body: bytes) -> dict[str, object]:
    await anyio.lowlevel.checkpoint()
    return {"type": "http.request", "body": body, "more_body": False}


def _is_answer(start: dict[str, Any], end: dict[str, Any]) -> None:
    headers = dict(start["headers"])
    content_type = headers[b"content-type"].decode()
    assert 200 <= start["status"] < 600
    assert content_type in (HTML, JSON, TEXT)
    assert int(headers[b"content-length"]) == len(end["body"])
    end["body"].decode()
    if content_type == JSON:
        json.loads(end["body"])


class _Answers(httpx.AsyncBaseTransport):
    """Another node that says what an input says: to a greeting, as its store, and as messages. Then
    it is silent."""

    def __init__(self, answers: Iterable[bytes]) -> None:
        hello, stored, messages = (*answers, b"", b"", b"")[:3]
        self._by_path = {"hello": hello, "store": stored, "messages": messages}
        self._left = MAX_REQUESTS

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._left -= 1
        if self._left < 0:
            await anyio.sleep_forever()
        path = request.url.path
        what = "store" if path.startswith("/store") else path.rpartition("/")[2]
        return httpx.Response(200, content=self._by_path.get(what, b""))


def _peer_answers(data: bytes) -> None:
    """Whatever a joined node answers, the node goes on, and serves its own clients."""
    trio.run(_join, data, clock=trio.testing.MockClock(autojump_threshold=0))


async def _join(data: bytes) -> None:
    transport = _Answers(records(data, most=3))
    async with EmbeddedNode(OPTIONS, join=["http://other"], transport=transport) as node:
        await anyio.sleep(60)
        topic = str(MESSAGE["contentTopic"])
        node.publish(node.shard_for(topic), WakuMessage(b"ours", topic, timestamp=1))
        assert node.archive is not None
        page = node.archive.query(StoreQuery(page_size=100))
        assert len(page.entries) <= OPTIONS.store_capacity
        json.dumps([entry.message.to_json() for entry in page.entries if entry.message])


def _peer_seeds() -> Iterator[bytes]:
    shared = {"pubsubTopic": "/waku/2/rs/1/0", "message": MESSAGE}
    stored = {
        "requestId": "",
        "statusCode": 200,
        "statusDesc": "OK",
        "messages": [{"messageHash": "0x" + "ab" * 32, **shared}],
    }
    relays = {**PEER, "protocols": [RELAY]}
    for messages in ({"messages": [shared], "last": 1}, {"messages": [], "last": 0}):
        yield joined(json.dumps(answer).encode() for answer in (relays, stored, messages))


def _written(method: str, target: str, content_type: str = "", body: bytes = b"") -> bytes:
    return f"{method} {target} {content_type}".encode() + b"\n" + body


def _seeds() -> Iterator[bytes]:
    for request, _ in exchanges():
        query = f"?{urlencode(request['query'])}" if request["query"] else ""
        yield _written(
            request["method"],
            request["path"] + query,
            request["content-type"] or "",
            written(request["body"]),
        )
    post = partial(_written, "POST", content_type=JSON)
    shard = "/waku/2/rs/1/0".replace("/", "%2F")
    yield BETWEEN.join(
        [
            post("/relay/v1/subscriptions", body=b'["/waku/2/rs/1/0"]'),
            post(f"/relay/v1/messages/{shard}", body=json.dumps(MESSAGE).encode()),
            _written("GET", f"/relay/v1/messages/{shard}"),
            _written("GET", "/store/v3/messages?includeData=true&pageSize=1"),
        ]
    )
    gift = {
        "peerId": "other",
        "messages": [{"pubsubTopic": "/waku/2/rs/1/0", "message": MESSAGE}],
    }
    yield BETWEEN.join(
        [
            post("/mesh/v1/hello", body=json.dumps(PEER).encode()),
            post("/mesh/v1/messages", body=json.dumps(gift).encode()),
            _written("GET", "/mesh/v1/messages?peerId=other&after=0&waitMs=1000"),
            _written("GET", "/admin/v1/peers"),
        ]
    )


def _words() -> Iterator[bytes]:
    """What the node's own description names."""
    for path, operations in document(EmbeddedNode(OPTIONS).app.router.routes, "")["paths"].items():
        yield path.encode()
        for operation in operations.values():
            yield from (f"&{parameter['name']}=".encode() for parameter in operation["parameters"])
    for schema in SCHEMAS.values():
        yield from (f'"{name}":'.encode() for name in schema.get("properties", ()))
    yield BETWEEN


TARGETS: Final = (
    Target("node_requests", _requests, _seeds, (*JSON_WORDS, *dict.fromkeys(_words()))),
    Target("node_peers", _peer_answers, _peer_seeds, JSON_WORDS),
)
