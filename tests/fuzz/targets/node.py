"""The embedded node: requests of clients as bytes."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

import anyio
import trio.testing

from waku.node import DialFailed, EmbeddedNode, NodeOptions
from waku.node.http import HTML, JSON, TEXT
from waku.node.openapi import SCHEMAS, document

from ..target import JSON_WORDS, Target
from ..vectors import exchanges, written

BETWEEN: Final = b"\n---\n"
MAX_REQUESTS: Final = 8
OPTIONS: Final = NodeOptions(max_clients=4, cache_capacity=5, store_capacity=10, num_shards=2)
MESSAGE: Final = {"payload": "aGVsbG8=", "contentTopic": "/app/1/chat/proto", "timestamp": 1}


class _Alone(EmbeddedNode):
    """A node that dials no address of an input."""

    async def dial(self, address: str, *, stay: bool = True) -> None:
        raise DialFailed(f"cannot join {address}: the fuzzer has no network")


def _requests(data: bytes) -> None:
    """Each request is a line `METHOD target content-type` and a body. None makes the node fail,
    whatever came before it, and each is answered with a status and a type that a client can read.
    """
    requests = data.split(BETWEEN)[:MAX_REQUESTS]
    trio.run(_ask, requests, clock=trio.testing.MockClock(autojump_threshold=0))


async def _ask(requests: list[bytes]) -> None:
    async with _Alone(OPTIONS) as node:
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
    peers = json.dumps(["/ip4/127.0.0.1/tcp/1"]).encode()
    yield BETWEEN.join([post("/admin/v1/peers", body=peers), _written("GET", "/admin/v1/peers")])


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
)
