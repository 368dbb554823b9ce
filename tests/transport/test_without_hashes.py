"""A Store that refuses or ignores queries by message hash, on every way to it: what was missed is
found by topic and time."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import anyio
import pytest

from reliable_channel import MessageLost
from reliable_channel.diagnostics import NodeHealthChanged, TransportDegraded
from reliable_channel.hub import channel_of
from reliable_channel.transport import Batch, LossyTransport, PoolTransport, Transport
from reliable_channel.transport.connect import light_transport
from reliable_channel.transport.hub import Hub
from reliable_channel.transport.node import NodeTransport
from reliable_channel.transport.settings import WakuSettings
from tests.channel.world import CHANNEL_ID, QUICK, listening, make_channel, now_ns
from waku.node import EmbeddedNode, Listen, NodeOptions

from .nodes import CONTENT_TOPIC, Line, answering, line

pytestmark = pytest.mark.anyio

HOUR_MS: Final = 3_600_000
SEEKING: Final = replace(
    QUICK,
    query_on_connect=False,
    sync_min_interval_ms=0,
    retrieval_strategy="store-only",
    confirm_interval_ms=0,
    retry_interval_ms=HOUR_MS,
    possibly_acknowledged_retry_interval_ms=HOUR_MS,
)
"""Nothing but a query can bring what was missed: no copy, no repair, no confirmation."""

Connect = Callable[[], Transport]
"""Makes a way to the network, for one participant."""
ALONE: Final = {"messaging": True, "rest_apis": ("store",)}
SETTINGS: Final = WakuSettings(CONTENT_TOPIC)


def to(it: Line) -> NodeTransport:
    return NodeTransport(f"http://node-{id(it)}", SETTINGS, app=it)


@asynccontextmanager
async def rest(**options: Any) -> AsyncIterator[Connect]:
    async with line(**options) as it:
        yield lambda: to(it)


@asynccontextmanager
async def status_501(**options: Any) -> AsyncIterator[Connect]:
    """A node in front of whose Store something does not know the parameter."""
    async with line(**options | {"hash_queries": "answer"}) as it:
        said = answering(501, b"not implemented", path="/store")
        it.disturbance = lambda request: said(request) if "hashes" in request.url.params else None
        yield lambda: to(it)


@asynccontextmanager
async def light(**options: Any) -> AsyncIterator[Connect]:
    async with line(rest_apis=("filter", "lightpush", "store"), **options) as it:
        yield lambda: to(it)


@asynccontextmanager
async def messaging(**options: Any) -> AsyncIterator[Connect]:
    options = {**ALONE, **options, "now_ns": now_ns}  # it stamps messages
    async with line(**options) as one, line(**options) as other:
        assert one.node is not None and other.node is not None
        one.node.join(other.node)
        lines = iter((one, other))
        yield lambda: to(next(lines))


@asynccontextmanager
async def hub(**options: Any) -> AsyncIterator[Connect]:
    async with line(**options) as it, AsyncExitStack() as stack:
        hubs = [
            await stack.enter_async_context(Hub(lambda _: PoolTransport([to(it)]), channel_of))
            for _ in range(2)
        ]
        transports = iter([hub.transport(CONTENT_TOPIC, CHANNEL_ID) for hub in hubs])
        yield lambda: next(transports)


@asynccontextmanager
async def pool(**options: Any) -> AsyncIterator[Connect]:
    """Two nodes, of which neither can be asked."""
    async with line(**options) as one, line(**options) as other:
        assert one.node is not None and other.node is not None
        one.node.join(other.node)
        yield lambda: PoolTransport([to(one), to(other)])


@asynccontextmanager
async def libp2p(**options: Any) -> AsyncIterator[Connect]:
    listen = Listen(("/ip4/127.0.0.1/tcp/0",))
    async with EmbeddedNode(NodeOptions(**options), listen=listen) as node:
        yield lambda: light_transport(f"libp2p://{node.libp2p_addresses[0]}", SETTINGS)


WAYS: Final = (rest, status_501, light, messaging, hub, pool, libp2p)


class Deaf(LossyTransport):
    """Misses one message after another."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner, drop_incoming=0, seed=0)
        self._missed = anyio.Event()

    async def receive(self) -> Batch:
        before = self.dropped
        batch = await super().receive()
        if self.dropped > before:
            self._missed.set()
        return batch

    async def misses(self, sending: Awaitable[object]) -> None:
        self.cut_off, self._missed = True, anyio.Event()
        await sending
        await self._missed.wait()
        self.cut_off = False


@pytest.mark.parametrize("hash_queries", ["refuse", "ignore"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_what_was_missed_is_found_by_time(way: Any, hash_queries: str) -> None:
    """Twice, so that nothing that failed at one message stays broken for the next."""
    async with way(hash_queries=hash_queries) as connect:
        alice = make_channel(connect(), "alice", content_topic=CONTENT_TOPIC, options=SEEKING)
        deaf = Deaf(connect())
        bob = make_channel(deaf, "bob", content_topic=CONTENT_TOPIC, options=SEEKING)
        async with listening(alice), listening(bob) as told:
            expected = []
            for number in range(2):
                await deaf.misses(alice.send(b"missed %d" % number))
                await alice.send(b"heard %d" % number)
                expected += [b"missed %d" % number, b"heard %d" % number]
                await told.until(lambda: told.contents == expected)  # noqa: B023
            assert not told.of(MessageLost)
            # Such a Store is asked by time, and is not an outage.
            assert not told.of(TransportDegraded)
            assert [one.state for one in told.of(NodeHealthChanged)] == []
