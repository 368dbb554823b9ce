"""A shard that its node leaves: never by our doing, noticed where others did it, and revived."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from reliable_channel import ReliableChannel
from reliable_channel.diagnostics import NodeHealthChanged, TransportDegraded, TransportRecovered
from reliable_channel.transport import PoolTransport, TransportError, WakuTransport
from reliable_channel.transport.addresses import default_content_topic
from reliable_channel.transport.settings import WakuSettings
from tests.channel.world import Told, listening, now_ns
from waku import StoreQuery, WakuClient
from waku.client import CLIENT_ID_HEADER
from waku.node.options import Behaviour

from .nodes import STATIC_SHARD, Line, answering, joined, line

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("mode")]

MESSAGES = [b"%d" % number for number in range(40)]
X, Y = default_content_topic("x"), default_content_topic("y")
WHAT_WAS_FOUND_AND_DONE = {
    None: ("the subscription is deaf: nothing came for", "subscribed anew"),
    STATIC_SHARD: ("Node not subscribed to topic", "subscribes to the shard again"),
}
every_service = pytest.mark.parametrize("service", ["relay", "light"])
every_sharding = pytest.mark.parametrize("pubsub_topic", [None, STATIC_SHARD])


def channel_on(
    *lines: Line, channel_id: str = "y", sender_id: str = "alice", **settings: Any
) -> ReliableChannel:
    quietly = {"poll_max_interval_ms": 1_000} | settings
    topic = WakuSettings(default_content_topic(channel_id), **quietly)
    ways = [WakuTransport(f"http://{number}", topic, app=it) for number, it in enumerate(lines)]
    return ReliableChannel(
        transport=PoolTransport(ways),
        channel_id=channel_id,
        sender_id=sender_id,
        now_ns=now_ns,
        seed=1,
    )


@asynccontextmanager
async def application_on(it: Line) -> AsyncIterator[WakuClient]:
    async with WakuClient("http://node", app=it) as client:
        yield client


async def stored(it: Line) -> int:
    async with application_on(it) as client:
        return len((await client.store(StoreQuery(content_topics=(Y,), page_size=100))).entries)


async def silence(it: Line, pubsub_topic: str | None) -> None:
    """What another application does with a topic of its own, or with the shard."""
    async with application_on(it) as client:
        if pubsub_topic is None:
            await client.relay_auto_subscribe([X])
            await client.relay_auto_unsubscribe([X])
        else:
            await client.relay_unsubscribe([pubsub_topic])


async def all_received(told: Told, *, within_s: float) -> None:
    await told.until(lambda: len(told.contents) >= len(MESSAGES), within_s=within_s)
    assert sorted(told.contents) == sorted(MESSAGES)


@every_service
@every_sharding
async def test_closing_a_channel_takes_nothing_from_another_on_the_same_node(
    virtual_time: None, service: str, pubsub_topic: str | None
) -> None:
    way: dict[str, Any] = {"service": service, "pubsub_topic": pubsub_topic}
    async with joined(2) as (a, b):
        x = channel_on(a, channel_id="x", **way)
        here, there = channel_on(a, **way), channel_on(b, sender_id="bob", **way)
        async with listening(here) as told, there:
            async with x:
                await x.send(b"bye")
            before = await stored(a)
            for payload in MESSAGES:
                await there.send(payload)
            await all_received(told, within_s=10)
            assert here.statistics().transport.received_live >= len(MESSAGES)
            assert await stored(a) >= before + len(MESSAGES)
            assert not told.of(TransportDegraded)


@every_sharding
async def test_another_application_s_delete_is_noticed_and_undone(
    virtual_time: None, mode: Behaviour | None, pubsub_topic: str | None
) -> None:
    way: dict[str, Any] = {"pubsub_topic": pubsub_topic}
    async with joined(2) as (a, b):
        here, there = channel_on(a, **way), channel_on(b, sender_id="bob", **way)
        async with listening(here) as told, there:
            await there.send(b"before")
            await told.until(lambda: told.contents == [b"before"])
            told.events.clear()
            await silence(a, pubsub_topic)
            for payload in MESSAGES:
                await there.send(payload)
            await all_received(told, within_s=300)
            if mode == "nwaku":
                degraded = told.of(TransportDegraded)[0]
                assert degraded.component == ("send" if pubsub_topic else "receive")
                for reason in WHAT_WAS_FOUND_AND_DONE[pubsub_topic]:
                    assert reason in degraded.reason
                changed = told.of(NodeHealthChanged)[0]
                assert changed.address == "http://0"
                assert changed.state == ("failing" if pubsub_topic else "unsubscribed")
                await told.first(TransportRecovered, within_s=120)
            else:
                assert not told.of(TransportDegraded)
            live = here.statistics().transport.received_live
            await there.send(b"after")
            await told.until(lambda: told.contents[-1] == b"after", within_s=2)
            assert here.statistics().transport.received_live > live


@pytest.mark.parametrize("mode", ["nwaku"], indirect=True)
async def test_a_node_that_had_left_the_shard_before_the_start_is_revived(
    virtual_time: None,
) -> None:
    async with joined(2) as (a, b):
        async with application_on(a) as client:  # our own earlier life: the node knows the topic
            await client.relay_auto_subscribe([Y])
        await silence(a, None)
        here, there = channel_on(a), channel_on(b, sender_id="bob")
        async with listening(here) as told, there:
            for payload in MESSAGES:
                await there.send(payload)
            await all_received(told, within_s=300)


@pytest.mark.parametrize("mode", ["nwaku"], indirect=True)
async def test_a_cache_that_another_program_empties_is_no_deafness(virtual_time: None) -> None:
    """Renewing the subscription would make the node leave the shard for everybody."""

    def unnamed(request: httpx.Request) -> None:
        request.headers.pop(CLIENT_ID_HEADER, None)  # nwaku has one cache for all its clients

    async with joined(2) as (it, _):
        it.disturbance = unnamed
        here = WakuTransport("http://0", WakuSettings(Y), app=it)
        await here.open()
        async with application_on(it) as program:
            for number in range(20):
                envelope = here.envelope(b"%d" % number, timestamp_ns=now_ns(), ephemeral=False)
                await here.publish(envelope)
                assert await program.relay_auto_messages(Y)
                await anyio.sleep(5)
                assert not (await here.receive()).messages
            it.disturbance = None
        assert it.asked("DELETE", "/relay") == 0
        await here.aclose()


@pytest.mark.parametrize("mode", ["nwaku"], indirect=True)
@pytest.mark.parametrize("has_store", [True, False])
async def test_a_deaf_node_is_revived_whether_or_not_it_has_a_store(
    virtual_time: None, has_store: bool
) -> None:
    async with line(store=has_store) as it, line() as other:
        assert it.node is not None and other.node is not None
        it.node.join(other.node)  # whose Store has what the deaf node sends, and proves nothing
        here = WakuTransport("http://0", WakuSettings(Y), app=it)
        await here.open()
        await silence(it, None)
        for number in range(2):
            envelope = here.envelope(b"%d" % number, timestamp_ns=now_ns(), ephemeral=False)
            await here.publish(envelope)
        await anyio.sleep(16)
        with pytest.raises(TransportError, match="deaf"):
            await here.receive()
        assert it.asked("DELETE", "/relay") == 2  # the one that silenced the node, and ours
        await here.aclose()


@pytest.mark.parametrize("mode", ["nwaku"], indirect=True)
async def test_where_another_node_hears_the_topic_stays_healthy(virtual_time: None) -> None:
    async with joined(2) as (a, b):
        here, there = channel_on(a, b), channel_on(b, sender_id="bob")
        async with listening(here) as told, there:
            await silence(a, None)
            for payload in MESSAGES:
                await there.send(payload)
            await all_received(told, within_s=10)
            await told.until(lambda: told.of(NodeHealthChanged), within_s=300)
            assert "deaf" in told.of(NodeHealthChanged)[0].reason
            assert not told.of(TransportDegraded)


@pytest.mark.parametrize("mode", ["nwaku"], indirect=True)
async def test_what_cannot_be_revived_is_tried_ever_more_rarely(virtual_time: None) -> None:
    way = WakuTransport("http://0", WakuSettings(Y), app=(it := Line()))
    async with line() as node:
        it.connect(node.node)
        await way.open()
        failures = set()
        for number in range(180):
            await silence(node, None)  # again and again
            envelope = way.envelope(b"%d" % number, timestamp_ns=now_ns(), ephemeral=True)
            await way.publish(envelope)
            try:
                await way.receive()
            except TransportError as error:
                if "deaf" in str(error):
                    failures.add(str(error))
            await anyio.sleep(20)
        assert 5 <= len(failures) <= 10  # after 15, 30, 60 … 600 s, in an hour
        assert it.asked("DELETE", "/relay") == len(failures)
        await way.aclose()


async def test_a_quiet_channel_asks_for_relay_peers_once_a_minute_beside_its_looks(
    virtual_time: None,
) -> None:
    async with joined(2) as (it, _):
        async with listening(channel_on(it)) as told:
            await anyio.sleep(5)
            it.forget()
            await anyio.sleep(150)
            beside = [
                request.url.path
                for request in it.requests
                if "/relay/v1/auto/messages" not in request.url.path
                and "/store/" not in request.url.path
            ]
            assert len(beside) <= 4
            assert {path.split("/")[1] for path in beside} <= {"version", "admin"}
            assert not told.of(TransportDegraded)


async def test_a_node_that_loses_its_relay_peers_is_named_until_it_has_one(
    virtual_time: None,
) -> None:
    """It gives own messages back, and its Store has them: nothing else shows it."""
    async with joined(2) as (a, b):
        assert a.node is not None and b.node is not None
        here, there = channel_on(a), channel_on(b, sender_id="bob")
        async with listening(here) as told, there:
            await there.send(b"before")
            await told.until(lambda: told.contents == [b"before"])
            await anyio.sleep(1)
            a.node.leave(b.node)
            await here.send(b"hello?")
            degraded = await told.first(TransportDegraded, within_s=300)
            assert "no relay peer in its mesh on /waku/2/rs/1/" in degraded.reason
            assert "it had 1" in degraded.reason
            await anyio.sleep(120)
            assert not told.of(TransportRecovered)
            a.node.join(b.node)
            await there.send(b"after")
            await told.first(TransportRecovered, within_s=120)
            await told.until(lambda: b"after" in told.contents, within_s=120)


@pytest.mark.parametrize("mode", ["nwaku"], indirect=True)
async def test_a_node_whose_mesh_breaks_down_is_named_though_its_peers_are_connected(
    virtual_time: None,
) -> None:
    async with joined(2) as (a, b):
        here, there = channel_on(a), channel_on(b, sender_id="bob")
        async with listening(here) as told, there:
            await there.send(b"before")
            await told.until(lambda: told.contents == [b"before"])
            await anyio.sleep(1)
            a.disturbance = answering(200, b'{"shard": 0, "peers": []}', path="/peers/mesh/")
            degraded = await told.first(TransportDegraded, within_s=300)
            assert "no relay peer in its mesh" in degraded.reason


@pytest.mark.parametrize("mode", ["nwaku"], indirect=True)
async def test_a_node_without_relay_peers_says_so_until_it_has_one(virtual_time: None) -> None:
    async with line() as it, line() as other:
        assert it.node is not None and other.node is not None
        here, there = channel_on(it), channel_on(other, sender_id="bob")
        async with listening(here) as told, there:
            for number in range(5):
                await here.send(b"hello? %d" % number)
            degraded = await told.first(TransportDegraded, within_s=60)
            assert "no other node hears what is published here" in degraded.reason
            await anyio.sleep(60)
            assert not told.of(TransportRecovered)
            it.node.join(other.node)
            await there.send(b"hello")
            await told.first(TransportRecovered, within_s=120)
            await told.until(lambda: b"hello" in told.contents, within_s=120)


async def test_a_lone_node_and_a_busy_channel_are_hardly_asked_for_relay_peers(
    virtual_time: None, mode: Behaviour | None
) -> None:
    async with line() as it:
        here = channel_on(it)
        async with listening(here) as told:
            async with channel_on(it, sender_id="bob") as there:
                for number in range(30):
                    await there.send(b"%d" % number)
                    await anyio.sleep(1)
            await anyio.sleep(150)  # bob left; the silence is nobody's fault
            # One for each of the two, and while bob heard nobody, some to see whether he can.
            assert it.asked("GET", "/admin/v1/peers") <= (8 if mode else 2)
            assert not told.of(TransportDegraded)
