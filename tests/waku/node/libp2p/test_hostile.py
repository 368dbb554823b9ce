"""Peers that break rules, or do nothing at all: what they cost is bounded, and the log names them.

In each test an honest client is served meanwhile, or afterwards.
"""

import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.slow import slow
from waku import LightClient, StoreQuery
from waku.libp2p import ConnectionClosed, Libp2pError, Multiaddr, StreamClosed
from waku.libp2p.driver import Link, Stream
from waku.node import EmbeddedNode, ListenLimits, NodeOptions, store
from waku.node.libp2p.guests import Guests
from waku.p2p import codec
from waku.p2p.codec import FilterRequest
from waku.p2p.protocols import (
    FILTER_SUBSCRIBE,
    LIGHT_PUSH_2,
    LIGHT_PUSH_3,
    METADATA,
    PEER_EXCHANGE,
    STORE_3,
)

from .around import KINDS, SHARD, TOPIC, asked, dialled, listening, message, subscribe, until

pytestmark = pytest.mark.anyio

PROTOCOLS = (METADATA, PEER_EXCHANGE, LIGHT_PUSH_2, LIGHT_PUSH_3, FILTER_SUBSCRIBE, STORE_3)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "waku.node.libp2p")


async def serves(node: EmbeddedNode) -> None:
    """An honest client gets what it asks for."""
    with anyio.fail_after(60):
        async with LightClient(node.libp2p_addresses, cluster_id=1, shards=range(8)) as light:
            async with light.subscribe(SHARD, [TOPIC]) as messages:
                sent = message(random.randrange(10**6))
                await light.light_push(sent, SHARD)
                assert (await messages.receive()).message.payload == sent.payload
            assert [e async for e in light.store_all(StoreQuery())]


async def logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    """Wait for a line of the log: a peer sees its end before that."""
    await until(lambda: text in caplog.text)


def guests_of(node: EmbeddedNode) -> Guests:
    assert node.network is not None and node.network.serving is not None
    return node.network.serving.guests


@asynccontextmanager
async def socket_to(node: EmbeddedNode) -> AsyncIterator[anyio.abc.SocketStream]:
    target = Multiaddr.parse(node.libp2p_addresses[0]).dial_target
    async with await anyio.connect_tcp(target.host, target.port) as socket:
        yield socket


async def closed(socket: anyio.abc.SocketStream) -> None:
    """Wait until the node has closed a socket."""
    try:
        while True:
            await socket.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return


@pytest.mark.parametrize("kind", KINDS)
async def test_sockets_that_speak_something_else_or_nothing(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    noise = random.Random(5)
    said = [b"", b"GET / HTTP/1.1\r\n\r\n", b"\x13/multistream/1.0.0\n\x07/noise\n" + bytes(90)]
    said += [noise.randbytes(noise.randrange(2_000)) for _ in range(20)]
    async with listening(KINDS[kind]) as node, anyio.create_task_group() as tasks:

        async def visit(data: bytes) -> None:
            async with socket_to(node) as socket:
                if data:
                    await socket.send(data)
                await closed(socket)  # after 10 s at the latest

        for data in said:
            tasks.start_soon(visit, data)
        await serves(node)
    await logged(caplog, "127.0.0.1: its connection is closed")


async def test_more_connections_from_one_address_than_allowed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = ListenLimits(connections_by_address=2)
    async with listening(limits=limits) as node:
        async with socket_to(node), socket_to(node), socket_to(node) as third:
            await closed(third)
        await logged(caplog, "`connections_by_address` is 2")
        await until(lambda: node.network is not None and not node.network.connections)
        await serves(node)


async def test_more_connections_than_allowed(caplog: pytest.LogCaptureFixture) -> None:
    async with listening(limits=ListenLimits(connections=2)) as node:
        async with dialled(node, 1), dialled(node, 2), socket_to(node) as third:
            await closed(third)
        await logged(caplog, "`connections` is 2")


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_garbage_as_a_request(protocol: str) -> None:
    noise = random.Random(6)
    async with listening() as node, dialled(node) as link:
        for _ in range(30):
            with anyio.fail_after(60):
                answer = await asked(link, protocol, noise.randbytes(noise.randrange(60)))
            if protocol == LIGHT_PUSH_2:
                assert codec.decode_light_push_2_answer(answer)[1] is False
            elif protocol in (LIGHT_PUSH_3, FILTER_SUBSCRIBE):
                assert codec.decode_answer(answer).status == 400
            elif protocol == STORE_3:
                assert codec.decode_store_answer(answer)[0].status == 400
        await serves(node)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_request_without_end(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    async with listening() as node, dialled(node) as link:
        async with link.open([protocol]) as stream:
            with pytest.raises(StreamClosed):
                await stream.send(b"\xff\xff\xff\x7f")  # the length
                while True:
                    await stream.send(bytes(65_536))
        (guest,) = guests_of(node)
        await logged(caplog, f"peer {guest.peer_id}: {protocol}: `")
        await serves(node)


async def test_a_request_that_drips(caplog: pytest.LogCaptureFixture) -> None:
    async with listening() as node, dialled(node) as link:
        async with link.open([LIGHT_PUSH_3]) as stream:
            await stream.send(b"\x20")
            begun = anyio.current_time()
            with pytest.raises((ConnectionClosed, StreamClosed)):
                while True:
                    await anyio.sleep(5)
                    await stream.send(b"\x0a")
            assert anyio.current_time() - begun <= 40
        await logged(caplog, "(`request_ms`)")
        await serves(node)


async def test_streams_that_are_opened_and_left_alone() -> None:
    """js-waku opens streams ahead (T10), a hostile peer without end."""
    async with listening(limits=ListenLimits(streams=50)) as node, dialled(node) as link:
        idle = [link.open([LIGHT_PUSH_3]) for _ in range(49)]
        for stream in idle:
            await stream.agreed()
        refused = 0
        for _ in range(200):
            try:
                await link.open([LIGHT_PUSH_3]).agreed()
            except StreamClosed:
                refused += 1
        assert refused == 199
        await serves(node)
        await asked_on(idle[0])


async def asked_on(stream: Stream) -> None:
    """A stream that idled is served when its request comes."""
    request = codec.encode_light_push("x", message(99), SHARD)
    answer = await stream.request(request, 1_000)
    assert answer is not None and codec.decode_answer(answer).status == 200


async def test_a_peer_that_takes_no_answers(caplog: pytest.LogCaptureFixture) -> None:
    """It asks for pages on many streams, and reads none: the pages are made as they are taken."""
    limits = ListenLimits(requests_at_once=3)
    async with listening(limits=limits) as node, dialled(node) as link:
        for number in range(20):
            node.publish(SHARD, message(number, 100_000))
        stop_reading(link)
        for number in range(100):
            stream = link.open([STORE_3])
            query = codec.encode_store_query(str(number), StoreQuery(page_size=20))
            await stream.send(bytes([len(query)]) + query)
            stream.end()
        most = 0
        for _ in range(100):
            await anyio.sleep(0.1)
            most = max(most, guests_of(node).answering_bytes)
        assert 2_000_000 < most <= 3 * 2_100_000
        await serves(node)
        await anyio.sleep(31)
        await logged(caplog, "(`request_ms`)")
        assert guests_of(node).answering_bytes == 0


def stop_reading(link: Link) -> None:
    """Consume nothing any more, so that the other side gets no credit."""
    link.connection.consumed = lambda stream_id, size_bytes: None  # type: ignore[method-assign]


async def test_answers_that_wait_are_bounded_over_all_peers() -> None:
    limits = ListenLimits(answer_bytes=3_000_000)
    async with listening(limits=limits) as node:
        for number in range(20):
            node.publish(SHARD, message(number, 100_000))
        async with dialled(node, 1) as first, dialled(node, 2) as second:
            stop_reading(first)
            query = codec.encode_store_query("1", StoreQuery(page_size=20))
            for _ in range(2):
                stream = first.open([STORE_3])
                await stream.send(bytes([len(query)]) + query)
                stream.end()
            await anyio.sleep(1)
            answer, _ = codec.decode_store_answer(await asked(second, STORE_3, query))
            assert (answer.status, "ask again later" in answer.text) == (503, True)
            await anyio.sleep(40)
            answer, page = codec.decode_store_answer(await asked(second, STORE_3, query))
            assert (answer.status, len(page.entries)) == (200, 20)


async def test_a_subscriber_that_reads_no_pushes(caplog: pytest.LogCaptureFixture) -> None:
    async def ignore(_: Stream) -> None:
        await anyio.sleep_forever()

    limits = ListenLimits(push_messages=50, push_bytes=1_000_000)
    async with listening(limits=limits) as node, dialled(node, pushes=ignore) as link:
        stop_reading(link)
        assert (await subscribe(link)).status == 200
        for number in range(200):
            node.publish(SHARD, message(number, 19_000))
            await anyio.sleep(0.01)
        (guest,) = guests_of(node)
        assert guest.queued_bytes <= 1_000_000
        await logged(caplog, "messages of its filter subscription are dropped")
        await anyio.sleep(31)
        await logged(caplog, "took no pushed message for 30000 ms (`push_ms`)")
        assert not node.filter.criteria
        await serves(node)


async def test_a_subscriber_that_refuses_every_push(caplog: pytest.LogCaptureFixture) -> None:
    async with listening() as node, dialled(node) as link:  # it does not know the protocol
        assert (await subscribe(link)).status == 200
        for number in range(10):
            node.publish(SHARD, message(number))
        await until(lambda: not node.filter.criteria)
        await logged(caplog, "takes no filter pushes, and is forgotten")
        await serves(node)


async def test_a_flood_of_subscriptions() -> None:
    options = NodeOptions(service_requests_per_s=1_000)
    async with listening(options=options) as node, dialled(node) as link:
        statuses = []
        for number in range(20):
            topics = [f"/app/1/{number}-{n}/proto" for n in range(100)]
            statuses.append((await subscribe(link, topics)).status)
        assert statuses == [200] * 10 + [503] * 10
        assert len(node.filter.criteria) == 1_000
        assert (await subscribe(link, ["/app/1/" + "x" * 300 + "/proto"])).status == 400
        assert (await subscribe(link, [])).status == 400
        assert (await subscribe(link, [TOPIC] * 101)).status == 400
        request = codec.encode_filter_request("1", FilterRequest.UNSUBSCRIBE_ALL)
        answer = codec.decode_answer(await asked(link, FILTER_SUBSCRIBE, request))
        assert (answer.status, len(node.filter.criteria)) == (200, 0)
        await serves(node)


async def test_a_flood_of_requests(caplog: pytest.LogCaptureFixture) -> None:
    now_ns = 10**18
    options = NodeOptions(service_requests_per_s=10, now_ns=lambda: now_ns)
    async with listening(options=options) as node, dialled(node) as link:
        request = codec.encode_filter_request("1", FilterRequest.SUBSCRIBER_PING)
        statuses = [
            codec.decode_answer(await asked(link, FILTER_SUBSCRIBE, request)).status
            for _ in range(200)
        ]
        assert statuses.count(404) == 50 and set(statuses[50:]) == {429}
        assert caplog.text.count("asks too much (`service_requests_per_s`)") == 1
        await serves(node)  # another peer has a budget of its own
        now_ns += 10**9
        answer = codec.decode_answer(await asked(link, FILTER_SUBSCRIBE, request))
        assert answer.status == 404


async def test_hostile_queries() -> None:
    async with listening() as node, dialled(node) as link:
        node.publish(SHARD, message(1))
        many = StoreQuery(content_topics=tuple(f"/a/1/{n}/p" for n in range(101)))
        for request in (
            codec.encode_store_query("1", many),
            b"\xa2\x01\x03abc",  # a hash of three bytes
            b"\x9a\x03\x03abc",  # a cursor
            b"\x5a\x03a,b",  # a topic with a comma
        ):
            answer, page = codec.decode_store_answer(await asked(link, STORE_3, request))
            assert answer.status == 400 and not page.entries
        huge = codec.encode_store_query("1", StoreQuery(page_size=2**63))
        answer, page = codec.decode_store_answer(await asked(link, STORE_3, huge))
        assert (answer.status, len(page.entries)) == (200, 1)
        await serves(node)


async def test_a_query_that_passes_over_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """It wants what no message has, and is given up; the time of queries counts as requests."""
    monkeypatch.setattr(store, "QUERY_STEPS", 1_000)
    cpu_s = iter(range(0, 1_000, 2))
    monkeypatch.setattr("time.thread_time", lambda: next(cpu_s))
    options = NodeOptions(now_ns=lambda: 10**18)
    async with listening(options=options) as node, dialled(node) as link:
        for number in range(3_000):
            node.publish(SHARD, message(number))
        query = codec.encode_store_query("1", StoreQuery(pubsub_topic="/waku/2/rs/1/0"))
        answer, _ = codec.decode_store_answer(await asked(link, STORE_3, query))
        assert (answer.status, "name content topics" in answer.text) == (400, True)
        answer, _ = codec.decode_store_answer(await asked(link, STORE_3, query))
        assert answer.status == 429
        query = codec.encode_store_query("1", StoreQuery(pubsub_topic=SHARD))
        async with dialled(node, 2) as other:
            answer, page = codec.decode_store_answer(await asked(other, STORE_3, query))
        assert (answer.status, len(page.entries)) == (200, 20)
        assert node.archive is not None and node.archive.problem is None


@pytest.mark.parametrize("seed", [0, *slow(1, 2)])
async def test_connections_that_break_off_anywhere(seed: int) -> None:
    """Peers that reset, close and vanish at random places: nothing of them is left."""
    choice = random.Random(seed)
    requests = {
        LIGHT_PUSH_3: codec.encode_light_push("1", message(seed, 3_000), SHARD),
        STORE_3: codec.encode_store_query("1", StoreQuery()),
        FILTER_SUBSCRIBE: codec.encode_filter_request("1", FilterRequest.SUBSCRIBE, SHARD, [TOPIC]),
        METADATA: b"",
    }

    async def read_some(stream: Stream) -> None:
        await stream.receive()
        if choice.random() < 0.5:
            stream.reset()

    async def live(number: int) -> None:
        async with dialled(node, number, pushes=read_some) as link:
            for _ in range(choice.randrange(1, 8)):
                protocol = choice.choice(list(requests))
                data = bytes([len(requests[protocol]) & 127]) + requests[protocol]
                try:
                    stream = link.open([protocol])
                    await stream.send(data[: choice.randrange(len(data) + 1)])
                    choice.choice((stream.end, stream.reset, link.close, lambda: None))()
                except Libp2pError:
                    return
                await anyio.sleep(choice.random())

    async with listening() as node:
        async with anyio.create_task_group() as tasks:
            for number in range(1, 12):
                tasks.start_soon(live, number)
        await until(lambda: node.network is not None and not node.network.connections)
        assert not len(guests_of(node)) and not node.filter.criteria
        assert guests_of(node).answering_bytes == 0
        await serves(node)


async def test_a_fault_of_ours_ends_one_stream(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening() as node, dialled(node) as link:
        with monkeypatch.context() as patch:
            patch.setattr(node, "check_size", lambda _: 1 / 0)
            with pytest.raises(StreamClosed):
                await asked(link, LIGHT_PUSH_3, codec.encode_light_push("1", message(1), SHARD))
        await logged(caplog, "ZeroDivisionError")
        await serves(node)
