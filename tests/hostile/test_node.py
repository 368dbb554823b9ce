"""Attack: a node whose answers drip, never end, or swell once they are read.

Sockets that are silent, hang up or speak something else: `tests/waku/test_session.py`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import httpx
import pytest
from anyio.abc import SocketStream

from reliable_channel.diagnostics import TransportDegraded
from reliable_channel.transport import PoolTransport
from tests.asgi import Answering
from tests.channel.world import QUICK, listening, make_channel
from tests.transport.nodes import Line, line, over
from tests.waku.nodes import answering, socket_node
from waku import WakuClient
from waku._api.base import REPORTED_ITEMS
from waku._request import MAX_ANSWER_VALUES
from waku.errors import BadAnswer, NodeUnreachable
from waku.node import EmbeddedNode

from .cost import peak_bytes

pytestmark = pytest.mark.anyio

TOPIC = "/waku/2/rs/1/0"
HEAD = b"HTTP/1.1 200 OK\r\n"
MIB = 1024 * 1024
Behaviour = Callable[[SocketStream], Awaitable[None]]


async def drip(stream: SocketStream, what: bytes) -> None:
    while True:
        for byte in what:
            await stream.send(bytes([byte]))
            await anyio.sleep(0.005)


async def dripping_status(stream: SocketStream) -> None:
    await drip(stream, b"HTTP/1.1 200 " + b"O" * 100_000)


async def dripping_headers(stream: SocketStream) -> None:
    await stream.send(HEAD)
    await drip(stream, b"x-y: z\r\n")


async def dripping_body(stream: SocketStream) -> None:
    await stream.send(HEAD + b"content-length: 1000000\r\n\r\n")
    await drip(stream, b" ")


async def dripping_chunks(stream: SocketStream) -> None:
    await stream.send(HEAD + b"transfer-encoding: chunked\r\n\r\n")
    await drip(stream, b"1\r\n \r\n")


async def promises(stream: SocketStream) -> None:
    """Says again and again that the answer is about to come."""
    await drip(stream, b"HTTP/1.1 103 Early Hints\r\n\r\n")


@pytest.mark.parametrize(
    "behave", [dripping_status, dripping_headers, dripping_body, dripping_chunks, promises]
)
async def test_an_answer_that_drips_has_a_deadline_of_its_own(behave: Behaviour) -> None:
    """Each read is quick, so that a timeout for each read never comes."""
    async with (
        socket_node(behave) as url,
        WakuClient(url, timeout_s=0.1, retries=None) as client,
    ):
        with anyio.fail_after(60), pytest.raises(NodeUnreachable, match=r"no whole answer in 0\.2"):
            await client.relay_messages(TOPIC)


async def endless_headers(stream: SocketStream) -> None:
    await stream.send(HEAD)
    while True:
        await stream.send(b"x-y: " + b"z" * 1_000 + b"\r\n")


async def endless_header(stream: SocketStream) -> None:
    await stream.send(HEAD + b"x-y: ")
    while True:
        await stream.send(b"z" * 4_000)


async def endless_chunk_size(stream: SocketStream) -> None:
    await stream.send(HEAD + b"transfer-encoding: chunked\r\n\r\n")
    while True:
        await stream.send(b"0" * 4_000)


async def gzip_bomb(stream: SocketStream) -> None:
    body = gzip.compress(bytes(50 * MIB))
    head = b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body)
    await stream.send(HEAD + head + body)


async def gzip_bomb_unnamed(stream: SocketStream) -> None:
    """As a failure, whose text is read as well."""
    body = gzip.compress(bytes(50 * MIB))
    head = b"content-encoding: gzip, gzip\r\ncontent-length: %d\r\n\r\n" % len(body)
    await stream.send(b"HTTP/1.1 500 No\r\n" + head + body)


@pytest.mark.parametrize(
    "behave",
    [endless_headers, endless_header, endless_chunk_size, gzip_bomb, gzip_bomb_unnamed],
)
async def test_an_answer_that_never_ends_or_swells_is_refused(behave: Behaviour) -> None:
    async with socket_node(behave) as url, WakuClient(url, retries=None) as client:
        with anyio.fail_after(60), pytest.raises(BadAnswer):
            await client.relay_messages(TOPIC)


BOMBS = {
    "lists": (b"[],", 20 * MIB, b"[]]"),
    "numbers": (b"0,", 30 * MIB, b"0]"),
    "objects": (b'{"a":0},', 7 * MIB, b"{}]"),
    "depth": (b"[", 60 * MIB, b""),
}


@pytest.mark.parametrize("bomb", BOMBS)
async def test_json_that_swells_is_refused_unread(bomb: str) -> None:
    """60 MiB on the wire are within the limit of an answer; read, they are gigabytes."""
    item, number, end = BOMBS[bomb]
    async with answering(b"".join((b"[", item * number, end))).client() as client:
        with pytest.raises(BadAnswer, match="JSON values"):
            await client.relay_messages(TOPIC)


def test_as_much_json_as_is_read_stays_small() -> None:
    largest = b"[" + b"[]," * (MAX_ANSWER_VALUES // 2 - 1) + b"[]]"
    assert peak_bytes(lambda: json.loads(largest)) < 64 * MIB


async def test_a_hundred_thousand_unreadable_items_are_not_reported_one_by_one() -> None:
    node = answering([0] * 100_000)
    async with node.client() as client:
        assert await client.relay_messages(TOPIC) == []
    assert len(node.rejected) == REPORTED_ITEMS + 1
    assert node.rejected[-1].reason == f"so are {100_000 - REPORTED_ITEMS} more items"


class Dripping(Answering):
    """A node that answers everything a byte a second."""

    async def answer(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=Drops())


class Drops(httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            await anyio.sleep(1)
            yield b" "


async def test_a_dripping_node_is_named_and_one_beside_it_brings_honest_messages(
    virtual_time: None,
) -> None:
    async with line() as it:
        both = PoolTransport([over(Dripping()), over(it)])
        alice = make_channel(over(it), "alice", options=QUICK)
        bob = make_channel(both, "bob", options=QUICK)
        async with alice, listening(bob) as told:
            await alice.send(b"honest")
            await told.until(lambda: told.contents == [b"honest"])
            await anyio.sleep(15)
            states = [node.state for node in bob.statistics().nodes]
            assert states[1] == "healthy" and states[0] != "healthy"


async def test_a_dripping_node_that_is_alone_is_told_as_an_outage(virtual_time: None) -> None:
    async with line() as it:
        turncoat = Line()
        turncoat.connect(it.node)
        alice = make_channel(over(it), "alice", options=QUICK)
        bob = make_channel(over(turncoat), "bob", options=QUICK)
        async with alice, listening(bob) as told:
            turncoat.disturbance = lambda request: httpx.Response(200, stream=Drops())
            degraded = await told.first(TransportDegraded, within_s=120)
            assert "no whole answer in 10 s" in degraded.reason
            await alice.send(b"honest")
            turncoat.disturbance = None
            await told.until(lambda: told.contents == [b"honest"], within_s=120)


async def test_a_body_that_drips_has_a_deadline(virtual_time: None) -> None:
    """Of a request to an embedded node, whatever serves it."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        await anyio.sleep(1)
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def send(event: Any) -> None:
        sent.append(event)

    scope = {"type": "http", "method": "POST", "raw_path": b"/relay/v1/auto/messages"}
    async with EmbeddedNode() as node:
        started = anyio.current_time()
        await node.app({**scope, "query_string": b"", "headers": []}, receive, send)
        assert anyio.current_time() - started == node.options.request_timeout_s
    assert sent[0]["status"] == 408 and (b"connection", b"close") in sent[0]["headers"]


async def test_a_request_whose_caller_leaves_is_not_acted_upon() -> None:
    """What had come of the body was taken for the whole."""
    parts: list[dict[str, Any]] = [
        {"type": "http.request", "body": b"[", "more_body": True},
        {"type": "http.request", "body": b'"/waku/2/rs/1/0"]', "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> dict[str, Any]:
        return parts.pop(0)

    async def send(event: Any) -> None:
        pass

    headers = [(b"content-type", b"application/json"), (b"waku-client-id", b"gone")]
    scope = {"type": "http", "method": "POST", "raw_path": b"/relay/v1/subscriptions"}
    async with EmbeddedNode() as node:
        await node.app({**scope, "query_string": b"", "headers": headers}, receive, send)
        assert len(node.clients) == 0
