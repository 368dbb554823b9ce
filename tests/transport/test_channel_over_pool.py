"""Channels over several embedded nodes that are joined: nodes are killed in the middle, and all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import combinations

import httpx
import pytest

from reliable_channel import MessageSent, ReliableChannel, TransportDegraded, TransportRecovered
from reliable_channel.transport import PoolTransport
from tests.channel.world import QUICK, Told, listening, make_channel

from .nodes import Line, line, over

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def joined(count: int) -> AsyncIterator[list[Line]]:
    """Lines to so many nodes, each joined with each."""
    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(line()) for _ in range(count)]
        for one, other in combinations([it.node for it in lines], 2):
            assert one is not None and other is not None
            one.join(other)
        yield lines


def channel(lines: Sequence[Line], sender_id: str) -> ReliableChannel:
    pool = PoolTransport([over(it) for it in lines], retry_s=0.1)
    return make_channel(pool, sender_id, options=QUICK)


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
            states = [node.state for node in alice.statistics().nodes]
            assert (states[0], states[2]) == ("unsubscribed", "healthy")
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


def recovered(told: Told) -> list[TransportRecovered]:
    return told.of(TransportRecovered)


def lies(request: httpx.Request) -> httpx.Response | None:
    if "/store/" not in request.url.path:
        return None
    message = {"payload": "ZmFsc2U=", "contentTopic": "/reliable-channel/1/general/proto"}
    entry = {"messageHash": "0x" + "11" * 32, "message": message}
    return httpx.Response(200, json={"statusCode": 200, "statusDesc": "OK", "messages": [entry]})
