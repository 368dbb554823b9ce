"""`WakuTransport` on the embedded node: each service, each call, and nodes that misbehave."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from reliable_channel.transport import (
    Batch,
    Received,
    Source,
    StoreUnavailable,
    TransportError,
    WakuTransport,
)
from tests.channel.world import now_ns
from waku.hashing import message_hash
from waku.models import WakuMessage
from waku.node.options import Behaviour
from waku.topics import pubsub_topic_for

from .nodes import CONTENT_TOPIC, STATIC_SHARD, Line, answering, failing, line, over

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("mode")]

SHARD = pubsub_topic_for(CONTENT_TOPIC)
WAYS: list[dict[str, Any]] = [
    {},
    {"service": "relay"},
    {"service": "light"},
    {"pubsub_topic": STATIC_SHARD},
    {"pubsub_topic": STATIC_SHARD, "service": "light"},
]
every_way = pytest.mark.parametrize(
    "way", WAYS, ids=lambda way: "-".join(str(v).strip("/") for v in way.values()) or "auto"
)


@asynccontextmanager
async def opened(it: Line, **way: Any) -> AsyncIterator[WakuTransport]:
    transport = over(it, **way)
    await transport.open()
    try:
        yield transport
    finally:
        await transport.aclose()


async def arrived(transport: WakuTransport, count: int = 1) -> list[Received]:
    received: list[Received] = []
    with anyio.fail_after(5):
        while len(received) < count:
            received += (await transport.receive()).messages
    return received


async def publish(transport: WakuTransport, payload: bytes, *, ephemeral: bool = False) -> bytes:
    envelope = transport.envelope(payload, timestamp_ns=now_ns(), ephemeral=ephemeral)
    await transport.publish(envelope)
    return envelope.message_hash


def there(
    it: Line,
    payload: bytes,
    timestamp_ns: int,
    *,
    pubsub_topic: str | None = None,
    service: str = "relay",
) -> bytes:
    """Publish at the node itself, where a test needs many messages: a request each is dear."""
    message, shard = (
        WakuMessage(payload, CONTENT_TOPIC, timestamp=timestamp_ns),
        pubsub_topic or SHARD,
    )
    assert it.node is not None
    it.node.publish(shard, message)
    return message_hash(shard, message)


# -- sending, receiving, Store ---------------------------------------------------------------------


@every_way
async def test_what_one_publishes_another_receives_under_the_hash_known_before(
    way: dict[str, Any],
) -> None:
    async with line() as it, opened(it, **way) as alice, opened(it, **way) as bob:
        envelope = alice.envelope(b"hello", timestamp_ns=now_ns(), ephemeral=False)
        await alice.publish(envelope)
        expected = Received(b"hello", envelope.message_hash, envelope.timestamp_ns, Source.LIVE)
        assert await arrived(bob) == [expected]
        stored = Received(b"hello", envelope.message_hash, envelope.timestamp_ns, Source.STORE)
        assert await bob.by_hash([envelope.message_hash]) == [stored]


@pytest.mark.parametrize("pubsub_topic", [None, STATIC_SHARD])
async def test_the_hash_is_that_of_the_deterministic_message_hashing(
    pubsub_topic: str | None,
) -> None:
    transport = over(Line(), pubsub_topic=pubsub_topic)
    envelope = transport.envelope(b"hello", timestamp_ns=5, ephemeral=True)
    message = WakuMessage(b"hello", CONTENT_TOPIC, timestamp=5)
    assert envelope.message_hash == message_hash(pubsub_topic or SHARD, message)
    assert (envelope.payload, envelope.timestamp_ns, envelope.ephemeral) == (b"hello", 5, True)
    await transport.aclose()


@every_way
async def test_both_kinds_of_service_reach_each_other(way: dict[str, Any]) -> None:
    other = {**way, "service": "relay" if way.get("service") == "light" else "light"}
    async with line() as it, opened(it, **way) as alice, opened(it, **other) as bob:
        await publish(alice, b"from alice")
        await publish(bob, b"from bob")
        for transport in (alice, bob):
            payloads = {received.payload for received in await arrived(transport, 2)}
            assert payloads == {b"from alice", b"from bob"}


@every_way
async def test_ephemeral_messages_are_not_stored(way: dict[str, Any]) -> None:
    async with line() as it, opened(it, **way) as alice:
        digest = await publish(alice, b"is typing", ephemeral=True)
        assert [received.message_hash for received in await arrived(alice)] == [digest]
        assert await alice.by_hash([digest]) == []


async def test_other_content_topics_on_the_shard_are_left_out() -> None:
    way = {"pubsub_topic": STATIC_SHARD}
    async with line() as it, opened(it, **way) as alice:
        assert it.node is not None
        it.node.publish(STATIC_SHARD, WakuMessage(b"theirs", "/other/1/x/proto", timestamp=1))
        digest = await publish(alice, b"ours")
        assert [received.payload for received in await arrived(alice)] == [b"ours"]
        assert [m.message_hash for page in [await alice.by_hash([digest])] for m in page] == [
            digest
        ]
        assert [m.payload async for page in alice.by_time(1, 2**62) for m in page] == [b"ours"]


@every_way
async def test_many_hashes_are_asked_in_several_queries(way: dict[str, Any]) -> None:
    async with line() as it, opened(it, **way) as alice:
        digests = [await publish(alice, b"first")]
        digests += [there(it, b"%d" % number, now_ns(), **way) for number in range(119)]
        it.forget()
        found = await alice.by_hash([*digests, b"\0" * 32])
        assert sorted(received.message_hash for received in found) == sorted(digests)
        assert it.asked("GET", "/store/v3/messages") == 3
        assert all(len(str(request.url)) < 4_096 for request in it.requests)
        assert await alice.by_hash([]) == []


@every_way
async def test_time_spans_come_in_pages_oldest_first_both_ends_included(
    way: dict[str, Any],
) -> None:
    async with line() as it, opened(it, **way) as alice:
        for number in range(250):
            if number % 50:
                there(it, b"%d" % number, 1_000 + number, **way)
                continue
            envelope = alice.envelope(b"%d" % number, timestamp_ns=1_000 + number, ephemeral=False)
            await alice.publish(envelope)
        pages = [page async for page in alice.by_time(1_010, 1_239)]
        assert [len(page) for page in pages] == [100, 100, 30]
        assert [m.timestamp_ns for page in pages for m in page] == list(range(1_010, 1_240))
        assert [page async for page in alice.by_time(1, 2)] == [[]]


async def test_messages_of_one_timestamp_do_not_end_the_pages() -> None:
    """Anybody may publish them, so time alone is no progress."""
    async with line() as it:
        alice = over(it)  # no subscription, which would stop go-waku
        for number in range(1_300):
            there(it, b"%d" % number, 1_000)
        there(it, b"later", 1_001)
        received = [m.payload async for page in alice.by_time(1, 2_000) for m in page]
        assert received[-1] == b"later"
        assert len(set(received)) == 1_301
        await alice.aclose()


async def test_a_page_is_halved_after_a_timeout_and_the_next_query_begins_with_its_size() -> None:
    async with line() as it, opened(it) as alice:
        for number in range(90):
            there(it, b"%d" % number, 1_000 + number)

        def slow(request: httpx.Request) -> Exception | None:
            size = request.url.params.get("pageSize")
            return httpx.ReadTimeout("too slow") if size and int(size) > 25 else None

        it.disturbance = slow
        it.forget()
        with pytest.raises(StoreUnavailable):
            assert [page async for page in alice.by_time(1, 2_000)]
        received = [m.payload async for page in alice.by_time(1, 2_000) for m in page]
        assert received == [b"%d" % number for number in range(90)]
        sizes = [int(r.url.params["pageSize"]) for r in it.requests if "/store/" in r.url.path]
        assert sizes == [100, 50, 50, 25, 25, 25, 25]


async def test_the_store_peer_is_named_in_every_query() -> None:
    peer = "/ip4/127.0.0.1/tcp/1/p2p/16Uiu2HAm"
    it = Line()

    def answer(request: httpx.Request) -> httpx.Response:
        page = b'{"statusCode":200,"messages":[]}'
        return httpx.Response(200, content=page if "/store/" in request.url.path else b"v0.37.1")

    it.disturbance = answer
    transport = over(it, store_peer=peer)
    await transport.by_hash([b"\1" * 32])
    assert [page async for page in transport.by_time(1, 2)] == [[]]
    queries = [r.url.params for r in it.requests if "/store/" in r.url.path]
    assert [query.get("peerAddr") for query in queries] == [peer, peer]
    await transport.aclose()


# -- which service ---------------------------------------------------------------------------------


async def test_auto_takes_relay_where_the_node_has_it() -> None:
    async with line() as it, opened(it) as alice:
        await publish(alice, b"hello")
        assert it.asked("POST", "/relay/v1/auto/messages") == 1
        assert it.asked("POST", "/filter") == it.asked("POST", "/lightpush") == 0


async def test_auto_takes_light_push_and_filter_where_it_has_not() -> None:
    async with line() as full, line(relay=False, self_service=False) as light:
        assert full.node is not None
        assert light.node is not None
        full.node.join(light.node)
        async with opened(full) as alice, opened(light) as bob:
            assert light.asked("POST", "/filter/v2/subscriptions") == 1
            await publish(alice, b"from alice")
            assert [received.payload for received in await arrived(bob)] == [b"from alice"]


async def test_relay_alone_fails_to_open_where_the_node_has_none() -> None:
    async with line(relay=False) as it:
        transport = over(it, service="relay")
        with pytest.raises(TransportError, match="relay_auto_subscribe"):
            await transport.open()
        await transport.aclose()


async def test_light_push_falls_back_to_its_first_version() -> None:
    async with line() as it, opened(it, service="light") as alice:
        it.disturbance = answering(404, b"404 page not found", path="/lightpush/v3")
        for number in range(3):
            await publish(alice, b"%d" % number)
        assert it.asked("POST", "/lightpush/v3/message") == 1
        assert it.asked("POST", "/lightpush/v1/message") == 3
        assert len(await arrived(alice, 3)) == 3


async def test_a_push_repeated_after_silence_is_taken_where_the_node_has_it() -> None:
    async with line() as it, opened(it, service="light") as alice:
        envelope = alice.envelope(b"hello", timestamp_ns=now_ns(), ephemeral=False)
        it.disturbance = failing(httpx.ReadTimeout("no answer"), path="/lightpush")
        with pytest.raises(TransportError, match="no answer"):
            await alice.publish(envelope)
        no_peers = b'{"statusDesc":"No peers for topic, skipping publish"}'
        it.disturbance = answering(505, no_peers, path="/lightpush")
        await alice.publish(envelope)
        with pytest.raises(TransportError, match="No peers for topic"):
            await publish(alice, b"another")


async def test_a_filter_subscription_is_pinged_and_renewed(virtual_time: None) -> None:
    async with line() as it, opened(it, service="light") as alice:
        await alice.receive()
        assert it.asked("GET", "/filter/v2/subscriptions") == 0
        await anyio.sleep(61)
        await alice.receive()
        assert it.asked("GET", "/filter/v2/subscriptions") == 1
        it.forget()
        it.disturbance = answering(404, b"peer has no subscription", path="/filter/v2/subscr")
        await anyio.sleep(61)
        with pytest.raises(TransportError):
            await alice.receive()
        it.disturbance = None
        it.forget()
        # A look gives nothing away: the node would answer it with an empty list for ever.
        assert "forgotten the subscription" in (await alice.receive()).gap
        assert it.asked("POST", "/filter/v2/subscriptions") == 1
        assert (await alice.receive()).gap == ""
        assert it.asked("POST", "/filter/v2/subscriptions") == 1


async def test_a_ping_that_fails_is_made_again_soon(virtual_time: None) -> None:
    async with line() as it, opened(it, service="light") as alice:
        await anyio.sleep(61)
        it.disturbance = answering(500, b"ping request failed", path="/filter/v2/subscriptions")
        with pytest.raises(TransportError):
            await alice.receive()
        it.disturbance = None
        await alice.receive()
        assert it.asked("GET", "/filter/v2/subscriptions") == 2


async def test_a_service_node_that_was_away_is_asked_for_the_subscription_at_once() -> None:
    async with line() as it, opened(it, service="light") as alice:
        for status, pings in ((429, 0), (503, 1)):
            it.disturbance = answering(status, b"not now", path="/lightpush")
            with pytest.raises(TransportError):
                await publish(alice, b"hello")
            it.disturbance = None
            await alice.receive()
            assert it.asked("GET", "/filter/v2/subscriptions") == pings


async def test_a_subscription_that_the_service_node_refuses_for_now_is_asked_for_again() -> None:
    go_waku = b'{"requestId":"1","statusDesc":"subscription failed"}'
    async with line() as it, opened(it, service="light") as alice:
        alice.renew()
        it.disturbance = answering(400, go_waku, path="/filter/v2/subscriptions")
        with pytest.raises(TransportError, match="subscription failed") as refused:
            await alice.receive()
        assert refused.value.retryable
        it.disturbance = None
        assert "renewed" in (await alice.receive()).gap


@pytest.mark.parametrize(("refusals", "opens"), [(2, True), (3, False)])
async def test_a_subscription_that_is_refused_for_now_does_not_end_the_start(
    virtual_time: None, refusals: int, opens: bool
) -> None:
    refuse = answering(400, b"subscription failed", path="/filter/v2/subscriptions")
    async with line() as it:
        asked = 0

        def some(request: httpx.Request) -> Any:
            nonlocal asked
            asked += "/filter/v2/subscriptions" in request.url.path
            return refuse(request) if asked <= refusals else None

        it.disturbance = some
        alice = over(it, service="light")
        if opens:
            await alice.open()
        else:
            with pytest.raises(TransportError, match="subscription failed"):
                await alice.open()
        assert asked == 3
        await alice.aclose()


# -- the node goes away, comes back, forgets, and misbehaves ---------------------------------------


@every_way
async def test_a_node_that_forgot_the_subscription_is_told_again(way: dict[str, Any]) -> None:
    async with line() as it, line() as other, opened(it, **way) as alice:
        await publish(alice, b"before")
        await arrived(alice)
        it.connect(other.node)
        batch = await alice.receive()
        assert batch.messages == []
        assert "forgotten the subscription" in batch.gap
        await publish(alice, b"after")
        assert [received.payload for received in await arrived(alice)] == [b"after"]


@every_way
async def test_a_node_that_is_away_is_an_error_that_may_pass(
    way: dict[str, Any], virtual_time: None
) -> None:
    async with line() as it, opened(it, **way) as alice:
        node = it.node
        it.connect(None)
        with pytest.raises(TransportError, match="nobody listens") as receiving:
            await alice.receive()
        with pytest.raises(TransportError, match="nobody listens") as sending:
            await publish(alice, b"lost")
        with pytest.raises(StoreUnavailable, match="nobody listens") as asking:
            await alice.by_hash([b"\1" * 32])
        with pytest.raises(StoreUnavailable, match="nobody listens"):
            assert [page async for page in alice.by_time(1, 2)]
        assert receiving.value.retryable and sending.value.retryable and asking.value.retryable
        it.connect(node)
        await publish(alice, b"hello")
        assert [received.payload for received in await arrived(alice)] == [b"hello"]


@every_way
@pytest.mark.parametrize("mode", [None], indirect=True)  # the answers are not a node's
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>welcome</html>"),
        (200, b""),
        (200, b"\xff\xfe"),
        (200, b'{"messages": 5}'),
        (200, b"[[[["),
        (302, b""),
        (404, b"<html>not found</html>"),
        (429, b"slow down"),
        (500, b""),
        (502, b"<html>bad gateway</html>"),
    ],
)
async def test_garbage_is_an_error_that_names_the_call_and_may_pass(
    way: dict[str, Any], status: int, body: bytes, virtual_time: None
) -> None:
    async with line() as it, opened(it, **way) as alice:
        it.disturbance = answering(status, body)
        if status != 200 or b"html" in body:
            with pytest.raises(TransportError, match=r"lightpush|relay.*publish") as sending:
                await publish(alice, b"hello")
            assert sending.value.retryable
        with pytest.raises(TransportError, match=r"messages|subscri|ping") as receiving:
            await alice.receive()
        assert receiving.value.retryable
        with pytest.raises(StoreUnavailable, match=r"store|flavour"):
            await alice.by_hash([b"\1" * 32])
        with pytest.raises(StoreUnavailable, match="store"):
            assert [page async for page in alice.by_time(1, 2)]
        it.disturbance = None
        await publish(alice, b"hello again")
        with anyio.fail_after(5):
            while not any(m.payload == b"hello again" for m in (await alice.receive()).messages):
                pass


@every_way
async def test_an_answer_that_breaks_off_is_an_error_that_may_pass(
    way: dict[str, Any], virtual_time: None
) -> None:
    broken = httpx.RemoteProtocolError("peer closed connection without sending complete body")
    async with line() as it, opened(it, **way) as alice:
        it.disturbance = failing(broken)
        with pytest.raises(TransportError, match="peer closed connection") as receiving:
            await alice.receive()
        assert receiving.value.retryable
        it.disturbance = None
        assert (await alice.receive()) == Batch([])


# go-waku gives no reason: what a limit of its own refuses looks like an outage.
@pytest.mark.parametrize("mode", [None, "nwaku"], indirect=True)
async def test_a_message_that_the_node_will_never_take_is_an_error_for_good() -> None:
    async with line(max_message_bytes=1_000) as it, opened(it) as alice:
        with pytest.raises(TransportError, match="exceeded maximum") as refused:
            await publish(alice, b"x" * 2_000)
        assert not refused.value.retryable


async def test_one_unreadable_message_costs_only_itself() -> None:
    async with line() as it, opened(it) as alice:
        good = {"payload": "aGVsbG8=", "contentTopic": CONTENT_TOPIC, "timestamp": 5}
        it.disturbance = answering(200, json.dumps([7, good, {"payload": "?"}]).encode())
        (received,) = (await alice.receive()).messages
        assert (received.payload, received.timestamp_ns) == (b"hello", 5)


async def test_a_cursor_that_leads_in_circles_ends() -> None:
    it = Line()

    def turn(request: httpx.Request) -> httpx.Response:
        cursor = "0x" + bytes([len(it.requests) % 2 + 1] * 32).hex()
        entry = {"messageHash": "0x" + "11" * 32}
        body = {"statusCode": 200, "messages": [entry], "paginationCursor": cursor}
        return httpx.Response(200, json=body)

    it.disturbance = turn
    transport = over(it)
    with pytest.raises(StoreUnavailable, match="stands still"):
        assert [page async for page in transport.by_time(1, 2)]
    assert len(it.requests) < 10
    await transport.aclose()


async def test_a_cache_that_was_full_is_reported_as_a_gap(mode: Behaviour | None) -> None:
    kept = 60 if mode == "go-waku" else 50
    async with line() as it, opened(it) as alice:
        for number in range(60):
            await publish(alice, b"%d" % number)
        batch = await alice.receive()
        assert (len(batch.messages), batch.gap) == (kept, f"the cache held {kept} messages")


# -- closing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "path", "nodes"),
    [
        ({}, "/relay/v1/auto/subscriptions", [None, "go-waku"]),
        ({"service": "light"}, "/filter/v2/subscriptions", [None, "nwaku", "go-waku"]),
        ({"pubsub_topic": STATIC_SHARD}, "/relay", [None]),
    ],
)
async def test_closing_ends_the_subscription_once_where_that_is_nobody_else_s_loss(
    mode: Behaviour | None, way: dict[str, Any], path: str, nodes: list[Behaviour | None]
) -> None:
    times = int(mode in nodes)
    async with line() as it:
        transport = over(it, **way)
        await transport.open()
        await transport.aclose()
        await transport.aclose()
        assert it.asked("DELETE", path) == times


async def test_closing_does_not_wait_for_a_node_that_is_away(virtual_time: None) -> None:
    async with line() as it:
        transport = over(it)
        await transport.open()
        it.connect(None)
        with anyio.fail_after(2):
            await transport.aclose()
