"""Channels within nwaku's limits: many of them, large messages, and a node that left its shard."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import anyio
import httpx
import pytest

from reliable_channel import ReliableChannel
from reliable_channel.diagnostics import NodeHealthChanged, TransportDegraded, TransportRecovered
from reliable_channel.events import DeliveryFailed, MessageSent
from reliable_channel.transport import PoolTransport, WakuTransport
from reliable_channel.transport.addresses import default_content_topic
from reliable_channel.transport.settings import WakuSettings
from tests.asgi import Answering
from tests.channel.world import Told, listening, now_ns
from tests.waku.p2p.nwaku import FILTER_REQUESTS, MESH_BYTES, Mesh, NwakuNetwork
from waku.p2p.protocols import LIGHT_PUSH_3

from .nodes import Line, joined

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("virtual_time")]

LARGE = bytes(1024 * 1024)


def channel(
    *node: Any, sender_id: str = "alice", channel_id: str = "c", **arguments: Any
) -> ReliableChannel:
    return ReliableChannel(
        *node,
        channel_id=channel_id,
        sender_id=sender_id,
        segmentation="nim-segmentation",
        now_ns=now_ns,
        seed=len(sender_id),
        **arguments,
    )


async def test_many_channels_open_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    network = NwakuNetwork(1)
    async with network.in_memory(monkeypatch) as (address,), AsyncExitStack() as stack:
        for number in range(45):
            await stack.enter_async_context(channel(address, channel_id=f"c{number}"))
        assert network.nodes[0].refused["429"]
        assert network.nodes[0].requests >= FILTER_REQUESTS
        assert len(*network.nodes[0].filters.values()) == 45


async def test_many_busy_channels_have_no_failed_push(monkeypatch: pytest.MonkeyPatch) -> None:
    network = NwakuNetwork(1)
    async with network.in_memory(monkeypatch) as (address,), AsyncExitStack() as stack:
        channels = [channel(address, channel_id=f"c{number}") for number in range(12)]
        told = [await stack.enter_async_context(listening(one)) for one in channels]
        for number in range(20):
            for one in channels:
                await one.send(b"%d" % number)
        for each in told:
            await each.until(lambda: len(each.of(MessageSent)) == 20)  # noqa: B023
        (node,) = network.nodes
        assert not node.refused[LIGHT_PUSH_3]
        assert [one.statistics().transport.publish_failures for one in channels] == [0] * 12
        assert not any(one.of(TransportDegraded) for one in told)
        assert node.mesh.breaks == 0


async def exchange_large(alice: ReliableChannel, bob: ReliableChannel) -> None:
    async with listening(alice) as here, listening(bob) as there:
        for number in (b"1", b"2"):
            await alice.send(LARGE + number)
            await bob.send(LARGE + number)
        for told in (here, there):
            await told.until(lambda: len(told.contents) == 2, within_s=120)  # noqa: B023
            assert not told.of(TransportDegraded)
            assert not told.of(DeliveryFailed)


async def test_large_messages_over_libp2p_break_no_mesh(monkeypatch: pytest.MonkeyPatch) -> None:
    network = NwakuNetwork(2)
    async with network.in_memory(monkeypatch) as (here, there):
        await exchange_large(channel(here), channel(there, sender_id="bob"))
        for node in network.nodes:
            assert node.mesh.breaks == 0
            assert 0 < node.mesh.most_bytes < MESH_BYTES


class MeshLine(Answering):
    """A line to a node whose messages pass a mesh that breaks."""

    def __init__(self, line: Line) -> None:
        self.mesh = Mesh()
        self._line = line

    async def answer(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and "messages" in request.url.path:
            await self.mesh.carry(3 * len(request.content) // 4)
        return await self._line.answer(request)


async def test_large_messages_over_rest_break_no_mesh() -> None:
    async with joined(2) as lines:
        ways = [MeshLine(line) for line in lines]
        settings = WakuSettings(default_content_topic("c"))
        alice, bob = (
            channel(
                sender_id=sender_id,
                transport=PoolTransport([WakuTransport(f"http://{sender_id}", settings, app=way)]),
            )
            for sender_id, way in zip(("alice", "bob"), ways, strict=True)
        )
        await exchange_large(alice, bob)
        for way in ways:
            assert way.mesh.breaks == 0
            assert 0 < way.mesh.most_bytes < MESH_BYTES


# A node that left its shard


async def talk(there: ReliableChannel, here: ReliableChannel, seconds: int) -> None:
    for number in range(seconds):
        await there.send(b"%d" % number)
        if number % 4 == 0:
            await here.send(b"mine %d" % number)
        await anyio.sleep(1)


async def heard(told: Told, count: int) -> None:
    await told.until(lambda: len(told.contents) >= count, within_s=300)


async def test_deafness_is_an_event_and_a_state_until_something_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = NwakuNetwork(2)
    async with network.in_memory(monkeypatch) as (a, b):
        here, there = channel(a), channel(b, sender_id="bob")
        async with listening(here) as told, there:
            await there.send(b"before")
            await told.until(lambda: told.contents)
            network.nodes[0].has_left_shard = True
            await talk(there, here, 40)
            assert "is deaf: nothing came for" in told.of(TransportDegraded)[0].reason
            assert told.of(NodeHealthChanged)[0].state == "unsubscribed"
            assert [node.state for node in here.health().nodes] == ["unsubscribed"]
            network.nodes[0].has_left_shard = False
            await talk(there, here, 10)
            await told.first(TransportRecovered)
            assert [node.state for node in here.health().nodes] == ["healthy"]
            await heard(told, 51)


async def test_where_another_peer_hears_all_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    network = NwakuNetwork(2)
    async with network.in_memory(monkeypatch) as (a, b):
        here, there = channel([a, b]), channel(b, sender_id="bob")
        async with listening(here) as told, there:
            network.nodes[0].has_left_shard = True
            await talk(there, here, 40)
            await heard(told, 40)
            assert here.statistics().transport.received_live >= 40
            assert not told.of(TransportDegraded)
