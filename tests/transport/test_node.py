"""`NodeTransport`: which API of a node is used, and that no failure is taken for an answer."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import httpx
import pytest

from reliable_channel import ChannelHub, MessageReceived, ReliableChannel
from reliable_channel.transport import PoolTransport, TransportError
from reliable_channel.transport.node import NodeTransport
from reliable_channel.transport.settings import WakuSettings
from reliable_channel.transport.waku_topic import NotServed
from tests.channel.world import now_ns
from waku.node import EmbeddedNode, NodeOptions

from .nodes import CONTENT_TOPIC, STATIC_SHARD, Disturbance, Line, answering, failing, line, served

pytestmark = pytest.mark.anyio

ALONE: dict[str, Any] = {"messaging": True, "rest_apis": ("store",)}
"""Options of a node that has its messaging layer and Store, and nothing beside them."""
RELAY = "POST /relay/v1/auto/subscriptions"
FILTER = "POST /filter/v2/subscriptions"
MESSAGING = "POST /messaging/v1/subscriptions"


def over(it: Line, **settings: Any) -> NodeTransport:
    return NodeTransport(f"http://node-{id(it)}", WakuSettings(CONTENT_TOPIC, **settings), app=it)


@asynccontextmanager
async def opened(it: Line, **settings: Any) -> AsyncIterator[NodeTransport]:
    transport = over(it, **settings)
    await transport.open()
    try:
        yield transport
    finally:
        await transport.aclose()


def asked(it: Line) -> list[str]:
    return [f"{request.method} {request.url.path}" for request in it.requests]


def each(*disturbances: Disturbance) -> Disturbance:
    def disturb(request: httpx.Request) -> httpx.Response | Exception | None:
        answers = (disturbance(request) for disturbance in disturbances)
        return next((answer for answer in answers if answer is not None), None)

    return disturb


@pytest.mark.parametrize(
    ("options", "api", "requests"),
    [
        ({}, "relay", [RELAY]),
        ({"messaging": True}, "relay", [RELAY]),
        ({"behave_as": "nwaku"}, "relay", [RELAY]),
        ({"behave_as": "go-waku"}, "relay", [RELAY]),
        ({"relay": False}, "filter", [RELAY, FILTER]),
        ({"relay": False, "messaging": True}, "filter", [RELAY, FILTER]),
        (ALONE, "messaging", [RELAY, FILTER, MESSAGING, RELAY, FILTER]),
    ],
)
async def test_relay_comes_first_then_filter_then_the_messaging_layer(
    options: dict[str, Any], api: str, requests: list[str]
) -> None:
    async with line(**options) as it:
        assert over(it).api == ""
        async with opened(it) as transport:
            assert transport.api == api
            assert asked(it) == requests


@pytest.mark.parametrize(
    ("relay", "filter_"),
    [
        ((404, b""), (404, b"")),
        ((404, b"404 page not found"), (501, b'"Not implemented"')),
        (
            (404, b"/relay endpoints are not available. Please check your configuration: --relay"),
            (404, b"/filter endpoints are not available."),
        ),
        ((400, b"Bad request initiated. Invalid path or method used."),) * 2,
    ],
)
async def test_what_nodes_say_of_an_api_that_they_lack(
    relay: tuple[int, bytes], filter_: tuple[int, bytes]
) -> None:
    async with line(messaging=True) as it:
        it.disturbance = each(answering(*relay, path="/relay"), answering(*filter_, path="/filter"))
        async with opened(it) as transport:
            assert transport.api == "messaging"


@pytest.mark.parametrize(
    "messaging",
    [(404, b""), (400, b"Bad request initiated. Invalid path or method used."), (405, b"")],
)
async def test_a_node_that_serves_none_of_them_may_be_starting(
    messaging: tuple[int, bytes],
) -> None:
    async with line(rest_apis=()) as it:
        it.disturbance = answering(*messaging, path="/messaging")
        transport = over(it)
        with pytest.raises(NotServed, match="neither relay nor filter, nor a messaging") as error:
            await transport.open()
        assert error.value.retryable
        assert transport.api == ""
        await transport.aclose()


UNKIND = [
    answering(500, b""),
    answering(500, b"error"),
    answering(502, b"<html>bad gateway</html>"),
    answering(404, b"<html>no such page</html>"),
    answering(200, b"<html>welcome</html>"),
    answering(401, b"token"),
    answering(429, b"rate limit"),
    answering(404, b"/relay endpoints are not available while initializing."),
    failing(httpx.ReadTimeout("no answer")),
    failing(httpx.ConnectError("nothing listens")),
    failing(httpx.RemoteProtocolError("server disconnected")),
]


@pytest.mark.parametrize("unkind", UNKIND)
@pytest.mark.parametrize("path", ["/relay", "/filter"])
async def test_a_failure_decides_nothing(virtual_time: None, path: str, unkind: Any) -> None:
    """One of the two is missing, and the other one fails: the messaging layer is not asked."""
    lacking = "/filter" if path == "/relay" else "/relay"

    def disturb(request: httpx.Request) -> httpx.Response | Exception | None:
        if request.url.path.startswith(lacking):
            return httpx.Response(404)
        return unkind(request) if request.url.path.startswith(path) else None

    async with line(messaging=True) as it:
        it.disturbance = disturb
        transport = over(it)
        with pytest.raises(TransportError):
            await transport.open()
        assert MESSAGING not in asked(it)
        assert transport.api == ""
        it.disturbance = None
        await transport.open()
        assert transport.api == "relay"
        await transport.aclose()


@pytest.mark.parametrize("unkind", UNKIND)
async def test_nor_does_one_of_the_messaging_layer(virtual_time: None, unkind: Any) -> None:
    async with line(**ALONE) as it:
        it.disturbance = lambda request: (
            unkind(request) if request.url.path.startswith("/messaging") else None
        )
        transport = over(it)
        with pytest.raises(TransportError):
            await transport.open()
        assert transport.api == ""
        it.disturbance = None
        await transport.open()
        assert transport.api == "messaging"
        await transport.aclose()


async def test_what_appears_while_the_node_starts_is_used() -> None:
    """It serves its messaging layer last, so relay is asked again once that answers."""
    async with line(messaging=True) as it:

        def starting(request: httpx.Request) -> httpx.Response | None:
            kernel = request.url.path.startswith(("/relay", "/filter"))
            return httpx.Response(404) if kernel and MESSAGING not in asked(it) else None

        it.disturbance = starting
        async with opened(it) as transport:
            assert transport.api == "relay"
        assert "DELETE /messaging/v1/subscriptions" in asked(it)


async def test_a_failure_at_the_second_look_closes_the_messaging_layer() -> None:
    async with line(**ALONE) as it:
        it.disturbance = lambda request: (
            httpx.ReadTimeout("no answer") if asked(it).count(RELAY) > 1 else None
        )
        transport = over(it)
        with pytest.raises(TransportError, match="no answer"):
            await transport.open()
        assert transport.api == ""
        it.disturbance = None
        await transport.open()
        assert transport.api == "messaging"
        await transport.aclose()


async def test_a_static_shard_has_no_messaging_layer() -> None:
    async with line(**ALONE) as it:
        with pytest.raises(NotServed, match=r"a messaging layer cannot replace .*`pubsub_topic`"):
            await over(it, pubsub_topic=STATIC_SHARD).open()
        assert MESSAGING not in asked(it)


@pytest.mark.parametrize("service", ["relay", "light"])
async def test_nor_has_a_service_that_was_named(service: str) -> None:
    async with line(**ALONE) as it:
        with pytest.raises(TransportError, match="answered 404"):
            await over(it, service=service).open()
        assert MESSAGING not in asked(it)


async def test_it_changes_over_when_the_node_comes_back_with_another_api() -> None:
    async with line() as sender, line() as it, line(**ALONE) as later, opened(it) as transport:
        assert sender.node is not None and it.node is not None and later.node is not None
        rest = it.node
        for node, api in ((later.node, "messaging"), (rest, "relay")):
            sender.node.join(node)
            it.connect(node)
            assert await _changed_over(transport, api)
            async with opened(sender) as alice:
                sent = alice.envelope(api.encode(), timestamp_ns=now_ns(), ephemeral=False)
                await alice.publish(sent)
                while not (messages := (await transport.receive()).messages):
                    pass
                assert [message.payload for message in messages] == [api.encode()]


async def _changed_over(transport: NodeTransport, api: str) -> str:
    """Receive until the transport uses an API; return why messages may be missing."""
    gap = ""
    while transport.api != api:
        with suppress(TransportError):
            gap = (await transport.receive()).gap
    return gap


async def test_a_pool_waits_for_a_node_and_then_asks_it(virtual_time: None) -> None:
    async with line(**ALONE) as it:
        node = it.node
        it.connect(None)
        pool = PoolTransport([over(it)], wait_for_node=True)
        await pool.open()
        assert [one.api for one in pool.nodes()] == [""]
        it.connect(node)
        while pool.nodes()[0].api != "messaging":
            with suppress(TransportError):
                await pool.receive()
        await pool.aclose()


async def test_a_channel_reports_what_it_uses(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "reliable_channel")
    async with line(**ALONE) as it, AsyncExitStack() as stack:
        alice, bob = [
            await stack.enter_async_context(
                ReliableChannel(
                    channel_id="general",
                    sender_id=name,
                    content_topic=CONTENT_TOPIC,
                    transport=PoolTransport([over(it)]),
                )
            )
            for name in ("alice", "bob")
        ]
        assert [node.api for node in alice.health().nodes] == ["messaging"]
        assert [node.api for node in alice.statistics().nodes] == ["messaging"]
        await alice.send(b"hello")
        async for event in bob.events():
            if isinstance(event, MessageReceived):
                assert event.content == b"hello"
                break
    assert "its messaging layer is used" in caplog.text
    assert f"opened on {CONTENT_TOPIC} through http://node-{id(it)} (messaging)" in caplog.text


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the server's
async def test_a_hub_and_a_channel_find_it_out_by_the_address_alone() -> None:
    async with (
        EmbeddedNode(NodeOptions(**ALONE)) as one,
        EmbeddedNode(NodeOptions()) as other,
        served(one) as here,
        served(other) as there,
    ):
        one.join(other)
        async with (
            ChannelHub(here.url) as hub,
            hub.channel(channel_id="ops", sender_id="alice") as alice,
            ReliableChannel(there.url, channel_id="ops", sender_id="bob") as bob,
        ):
            assert [node.api for node in alice.health().nodes] == ["messaging"]
            assert [node.api for node in bob.health().nodes] == ["relay"]
            for sender, receiver in ((alice, bob), (bob, alice)):
                await sender.send(sender.sender_id.encode())
                async for event in receiver.events():
                    if isinstance(event, MessageReceived):
                        assert event.content == sender.sender_id.encode()
                        break
