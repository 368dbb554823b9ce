"""Attack: a node that ours has joined, whose answers swell, never end, or hold too much.

Answers that make no sense: `test_mesh.py`; one that drips: `tests/hostile/test_node.py`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Callable

import anyio.lowlevel
import httpx
import pytest

from tests.waku.node.wires import OPTIONS, TOPIC, Inbox, Wires, message, publish, until
from waku import StoreQuery, WakuMessage
from waku.node import EmbeddedNode, NodeOptions
from waku.node.mesh import MAX_PROTOCOLS, MAX_TEXT
from waku.node.outbox import BATCH_MESSAGES

pytestmark = pytest.mark.anyio

MIB = 1024 * 1024
LIMIT = OPTIONS.body_limit_bytes


class Counted(httpx.AsyncByteStream):
    """An answer without end, and how much of it was read."""

    def __init__(self, part: bytes) -> None:
        self.read = 0
        self._part = part
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while not self._closed:
            await anyio.lowlevel.checkpoint()
            self.read += len(self._part)
            yield self._part

    async def aclose(self) -> None:
        self._closed = True


def sized(size: int, timestamp: int = 0) -> WakuMessage:
    return WakuMessage(bytes(size), TOPIC, timestamp=timestamp)


Answering = Callable[[], httpx.Response]


class Liar(httpx.AsyncBaseTransport):
    """Answers one path in its own way and the rest as an honest node."""

    def __init__(self, wires: Wires, path: str, answer: Answering) -> None:
        self.asked = 0
        self._wires = wires
        self._path = path
        self._answer = answer

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == self._path:
            self.asked += 1
            return self._answer()
        return await self._wires.handle_async_request(request)


def many_values() -> httpx.Response:
    return httpx.Response(200, content=b"[" + b"0," * (LIMIT // 2 - 10) + b"0]")


def many_messages() -> httpx.Response:
    one = {"pubsubTopic": "/waku/2/rs/1/0", "message": {"payload": "", "contentTopic": "/a"}}
    batch = {"messages": [one] * (BATCH_MESSAGES + 1), "last": 1}
    return httpx.Response(200, content=json.dumps(batch).encode())


PATHS = ("/mesh/v1/hello", "/mesh/v1/messages", "/store/v3/messages")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("answer", [many_values, many_messages])
async def test_an_answer_that_swells_costs_the_link_alone(path: str, answer: Answering) -> None:
    wires = Wires()
    liar = Liar(wires, path, answer)
    async with wires.node("a"), EmbeddedNode(OPTIONS, join=["http://a"], transport=liar) as b:
        inbox = Inbox(b)
        await until(lambda: liar.asked > 0)
        publish(b, message(1))
        assert inbox.payloads == [b"message 1"]


@pytest.mark.parametrize("path", PATHS)
async def test_a_compressed_answer_is_not_unpacked(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1.46 MiB of gzip took 4.6 GiB and 52 s."""
    wires = Wires()
    packed = gzip.compress(b" " * (50 * MIB))

    def unpacking(self: object, data: bytes) -> bytes:
        raise AssertionError("unpacked")

    def answer() -> httpx.Response:
        stream = httpx.ByteStream(packed)
        return httpx.Response(200, headers={"content-encoding": "gzip"}, stream=stream)

    monkeypatch.setattr("httpx._decoders.GZipDecoder.decode", unpacking)
    liar = Liar(wires, path, answer)
    async with wires.node("a"), EmbeddedNode(OPTIONS, join=["http://a"], transport=liar):
        await until(lambda: liar.asked > 1)


@pytest.mark.parametrize("path", PATHS)
async def test_an_answer_without_end_is_read_to_the_limit(path: str) -> None:
    wires = Wires()
    streams: list[Counted] = []

    def answer() -> httpx.Response:
        streams.append(Counted(b" " * 65_536))
        return httpx.Response(200, stream=streams[-1])

    small = NodeOptions(max_message_bytes=1_000, redial_min_s=0.001, redial_max_s=0.002)
    liar = Liar(wires, path, answer)
    async with (
        wires.node("a"),
        EmbeddedNode(small, join=["http://a"], transport=liar),
    ):
        await until(lambda: liar.asked > 1)
    assert max(stream.read for stream in streams) <= small.body_limit_bytes + 2 * 65_536


def introduction(**changed: object) -> Answering:
    hello = {
        "peerId": "other",
        "multiaddr": "/ip4/127.0.0.1/tcp/1/http",
        "protocols": [],
        "shards": [0],
        "agent": "other",
        "clusterId": 1,
        **changed,
    }
    return lambda: httpx.Response(200, content=json.dumps(hello).encode())


@pytest.mark.parametrize(
    "changed",
    [
        {"agent": "a" * (MAX_TEXT + 1)},
        {"peerId": "p" * (MAX_TEXT + 1)},
        {"multiaddr": "m" * (MAX_TEXT + 1)},
        {"protocols": ["p"] * (MAX_PROTOCOLS + 1)},
        {"protocols": ["p" * (MAX_TEXT + 1)]},
    ],
)
async def test_an_introduction_is_short(changed: dict[str, object]) -> None:
    wires = Wires()
    liar = Liar(wires, PATHS[0], introduction(**changed))
    async with EmbeddedNode(OPTIONS, join=["http://a"], transport=liar) as b:
        await until(lambda: liar.asked > 1)
        assert not b.mesh.peers()
    liar = Liar(wires, PATHS[0], introduction(shards=list(range(60_000))))
    async with wires.node("a"), EmbeddedNode(OPTIONS, join=["http://a"], transport=liar) as b:
        await until(lambda: bool(b.mesh.peers()))
        assert len(b.mesh.peers()["other"].shards) == 1024


async def test_what_a_store_calls_a_message_is_not_believed() -> None:
    """The joined node's answer named any hash, and ours kept the message under it."""
    forged = "0x" + "ab" * 32
    entry = {
        "messageHash": forged,
        "message": {"payload": "YQ==", "contentTopic": "/a/1/b/proto", "timestamp": 5},
        "pubsubTopic": "/waku/2/rs/1/0",
    }
    page = {"requestId": "", "statusCode": 200, "statusDesc": "OK", "messages": [entry]}
    wires = Wires()
    liar = Liar(wires, PATHS[2], lambda: httpx.Response(200, content=json.dumps(page).encode()))
    options = NodeOptions(redial_min_s=0.001, catch_up_s=10**9)
    async with (
        wires.node("a"),
        EmbeddedNode(options, join=["http://a"], transport=liar) as b,
    ):
        archive = b.archive
        assert archive is not None
        await until(lambda: len(archive) == 1)
        (kept,) = archive.query(StoreQuery()).entries
        assert kept.message_hash.hex() != "ab" * 32


async def test_history_that_nobody_may_publish_is_not_kept() -> None:
    """A first contact filled our store with messages of any size."""
    wires = Wires()
    large = NodeOptions(max_message_bytes=2_000_000)
    async with wires.node("a", options=large) as a:
        publish(a, message(0), sized(200_000))
        async with wires.node("b", "a") as b:
            archive = b.archive
            assert archive is not None
            await until(lambda: len(archive) == 1)
            await until(lambda: len(b.mesh.peers()) == 1)
            assert len(archive) == 1


async def test_a_message_too_large_for_us_does_not_stop_the_others() -> None:
    """The node that dialled asked for the same batch again and again."""
    wires = Wires()
    large = NodeOptions(max_message_bytes=2_000_000)
    async with wires.node("a", options=large) as a, wires.node("b", "a") as b:
        inbox = Inbox(b)
        await until(lambda: len(a.mesh.peers()) == 1 == len(b.mesh.peers()))
        publish(a, sized(1_500_000), message(1))
        await until(lambda: inbox.payloads == [b"message 1"])


async def test_what_waits_for_a_joined_node_is_bounded_in_bytes() -> None:
    options = NodeOptions(peer_queue_capacity_bytes=MIB)
    wires = Wires()
    async with wires.node("b", "a", options=options) as b:
        for number in range(100):
            publish(
                b,
                message(number).__class__(
                    bytes(100_000), "/app/1/chat/proto", timestamp=number + 1
                ),
            )
        (link,) = b.mesh.links.values()
        assert 5 <= len(link.outbox) <= 11  # type: ignore[attr-defined]
