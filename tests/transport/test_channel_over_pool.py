"""Channels over several embedded nodes that are joined: nodes are killed in the middle, and all."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

import anyio
import httpx
import pytest

from reliable_channel import ChannelOptions, MessageSent, ReliableChannel
from reliable_channel.diagnostics import (
    NodeHealthChanged,
    TopicHealthChanged,
    TransportDegraded,
    TransportRecovered,
)
from reliable_channel.transport import PoolTransport, WakuTransport
from reliable_channel.transport.settings import WakuSettings
from tests.channel.world import QUICK, Told, listening, make_channel
from waku.node import EmbeddedNode

from .nodes import CONTENT_TOPIC, Line, answering, joined, line, over, served

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("mode")]


def channel(
    lines: Sequence[Line], sender_id: str, *, options: ChannelOptions = QUICK
) -> ReliableChannel:
    """A channel over the nodes `http://0`, `http://1`, …"""
    ways = [over(it, url=f"http://{number}") for number, it in enumerate(lines)]
    pool = PoolTransport(ways, retry_s=0.1)
    return make_channel(pool, sender_id, options=options, content_topic=CONTENT_TOPIC)


async def heard(told: Told, count: int) -> list[bytes]:
    await told.until(lambda: len(told.contents) >= count)
    return told.contents


async def test_nodes_killed_in_the_middle_are_not_noticed_by_the_application() -> None:
    async with joined(3) as lines:
        alice, bob = channel(lines, "alice"), channel(lines[::-1], "bob")
        async with listening(alice) as alice_told, listening(bob) as bob_told:
            expected = []
            for number in range(30):
                if number in (10, 20):
                    lines[number // 10 - 1].connect(None)
                expected.append(b"%d" % number)
                await alice.send(expected[-1])
            assert sorted(await heard(bob_told, 30)) == sorted(expected)
            assert not alice_told.of(TransportDegraded)
            assert not bob_told.of(TransportDegraded)
            await alice_told.until(lambda: "unsubscribed" in states(alice_told, "http://0"))
            assert alice.statistics().nodes[2].state == "healthy"
            await bob.send(b"and back")
            assert await heard(alice_told, 1) == [b"and back"]
            assert alice.statistics().health == "connected"


async def test_all_nodes_down_is_told_and_nothing_that_was_accepted_is_lost() -> None:
    async with joined(2) as lines:
        alice, bob = channel(lines, "alice"), channel(lines, "bob")
        async with listening(alice) as alice_told, listening(bob) as bob_told:
            nodes = [it.node for it in lines]
            for it in lines:
                it.connect(None)
            await alice.send(b"accepted")
            await alice_told.until(lambda: len(alice_told.of(TransportDegraded)) >= 2)
            assert {"send", "receive"} <= set(alice.statistics().degraded)
            assert alice.statistics().health != "connected"
            assert {node.state for node in alice.statistics().nodes} == {"unsubscribed"}
            lines[1].connect(nodes[1])
            assert await heard(bob_told, 1) == [b"accepted"]
            await alice_told.until(
                lambda: {"send", "receive"} <= {e.component for e in recovered(alice_told)}
            )


async def test_a_node_whose_store_lies_deceives_nobody() -> None:
    """What was said before bob came is with the honest node alone."""
    async with joined(2) as (liar, honest):
        alice = channel([honest], "alice")
        async with listening(alice) as alice_told:
            for number in range(5):
                await alice.send(b"%d" % number)
            await alice_told.until(lambda: len(alice_told.of(MessageSent)) == 5)
            liar.disturbance = lies
            bob = channel([liar, honest], "bob")
            async with listening(bob) as told:
                assert await heard(told, 5) == [b"%d" % number for number in range(5)]
                nodes = bob.statistics().nodes
                assert nodes[0].mislabelled > 0 == nodes[1].mislabelled


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # uvicorn knows no other
@pytest.mark.parametrize(
    ("given", "takers"), [({}, 2), ({"redundancy": 1}, 1), ({"redundancy": 9}, 3)]
)
async def test_the_redundancy_of_the_channel_says_how_many_nodes_take_a_message(
    given: dict[str, int], takers: int
) -> None:
    """The nodes do not know each other: who has it was given it."""
    async with AsyncExitStack() as stack:
        nodes = [
            await stack.enter_async_context(served(await stack.enter_async_context(EmbeddedNode())))
            for _ in range(3)
        ]
        urls = [node.url for node in nodes]
        alice = ReliableChannel(urls, channel_id="general", sender_id="alice", **given)  # type: ignore[arg-type]
        async with listening(alice) as told:
            with anyio.fail_after(20):  # one node is enough to open, and the others join then
                while {node.state for node in alice.statistics().nodes} != {"healthy"}:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
            await alice.send(b"hello")
            sent = await told.first(MessageSent)
        stores = [WakuTransport(url, WakuSettings(CONTENT_TOPIC)) for url in urls]
        having = [len(await store.by_hash([sent.message_hash])) for store in stores]
        assert sum(having) == takers
        for store in stores:
            await store.aclose()


# -- health ----------------------------------------------------------------------------------------


async def test_a_node_that_is_killed_and_comes_back_is_told_with_its_topic() -> None:
    async with joined(2) as lines:
        alice, bob = channel(lines, "alice"), channel(lines[1:], "bob")
        async with listening(alice) as told, bob:
            node = lines[0].node
            lines[0].connect(None)
            await told.until(lambda: topic_health(told) == ["minimally_healthy"])
            lost = told.of(NodeHealthChanged)[-1]
            assert (lost.address, lost.state) == ("http://0", "unsubscribed")
            assert "nobody listens" in lost.reason
            statistics = alice.statistics()
            assert (statistics.topic_health, statistics.health) == (
                "minimally_healthy",
                "connected",
            )
            await bob.send(b"through the other one")
            assert await heard(told, 1) == [b"through the other one"]
            lines[0].connect(node)
            await told.until(lambda: len(topic_health(told)) == 2)
            assert told.of(NodeHealthChanged)[-1] == NodeHealthChanged("http://0", "healthy", "")
            assert topic_health(told)[1] == "sufficiently_healthy"
            assert alice.statistics().topic_health == "sufficiently_healthy"


async def test_the_only_node_killed_is_an_unhealthy_topic_until_it_is_back() -> None:
    async with line() as it:
        async with listening(channel([it], "alice")) as told:
            node = it.node
            it.connect(None)
            await told.until(lambda: topic_health(told) == ["unhealthy"])
            it.connect(node)
            await told.until(lambda: topic_health(told) == ["unhealthy", "sufficiently_healthy"])
            assert states(told, "http://0")[-2:] == ["unsubscribed", "healthy"]


async def test_a_silent_subscription_is_an_unhealthy_topic_though_its_node_answers(
    virtual_time: None,
) -> None:
    options = ChannelOptions(sync_min_interval_ms=0)
    async with joined(2) as (one, other):
        alice = channel([one], "alice", options=options)
        bob = channel([other], "bob", options=options)
        async with listening(alice) as told, bob:
            await anyio.sleep(1)  # beyond the first look, which takes all that is stored
            one.disturbance = answering(200, b"[]", path="/auto/messages/")
            await bob.send(b"hello")
            await told.until(lambda: topic_health(told) == ["unhealthy"], within_s=70)
            assert told.contents == [b"hello"]
            assert not told.of(NodeHealthChanged)
            one.disturbance = None
            await bob.send(b"and again")
            await told.until(lambda: len(topic_health(told)) == 2)
            assert topic_health(told)[1] == "sufficiently_healthy"


def topic_health(told: Told) -> list[str]:
    assert {event.content_topic for event in told.of(TopicHealthChanged)} <= {CONTENT_TOPIC}
    return [event.health for event in told.of(TopicHealthChanged)]


def states(told: Told, address: str) -> list[str]:
    return [event.state for event in told.of(NodeHealthChanged) if event.address == address]


def recovered(told: Told) -> list[TransportRecovered]:
    return told.of(TransportRecovered)


def lies(request: httpx.Request) -> httpx.Response | None:
    if "/store/" not in request.url.path:
        return None
    message = {"payload": "ZmFsc2U=", "contentTopic": "/reliable-channel/1/general/proto"}
    entry = {"messageHash": "0x" + "11" * 32, "message": message}
    return httpx.Response(200, json={"statusCode": 200, "statusDesc": "OK", "messages": [entry]})
