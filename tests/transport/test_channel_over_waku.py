"""Channels over an embedded node: restarts, garbage, and 200 messages a second."""

import json
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from reliable_channel import (
    ChannelOptions,
    ChannelUnavailable,
    MessageAcknowledged,
    MessageReceived,
    MessageSent,
)
from reliable_channel.diagnostics import (
    MessageRejected,
    RejectionReason,
    TransportDegraded,
    TransportRecovered,
)
from reliable_channel.transport import WakuTransport
from tests.channel.world import QUICK, Told, listening, make_channel, now_ns

from .nodes import STATIC_SHARD, answering, failing, line, over
from .test_waku import every_way

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("mode")]


RARELY: Any = {"poll_max_interval_ms": 1_000}
"""For hours of virtual time, in which a look each 100 ms is what a test costs."""


def channel_over(transport: WakuTransport, sender_id: str, **values: Any) -> Any:
    return make_channel(transport, sender_id, seed=len(sender_id), **values)


def components(told: Told) -> list[str]:
    return sorted(event.component for event in told.of(TransportRecovered))


@every_way
async def test_two_participants_end_with_the_same_log(way: dict[str, Any]) -> None:
    async with line() as it:
        alice, bob = (channel_over(over(it, **way), name) for name in ("alice", "bob"))
        async with listening(alice) as alice_told, listening(bob) as bob_told:
            for number in range(8):
                await alice.send(b"alice %d" % number)
                await bob.send(b"bob %d" % number)
            await alice_told.until(lambda: len(alice_told.of(MessageReceived)) == 8)
            await bob_told.until(lambda: len(bob_told.of(MessageReceived)) == 8)
            await alice_told.until(lambda: len(alice_told.of(MessageAcknowledged)) == 8)
            assert alice.log_digest() == bob.log_digest()


@pytest.mark.parametrize("status", [400, 408, 410, 421, 425, 451, 499])
async def test_a_message_outlives_what_stands_between_channel_and_node(
    virtual_time: None, status: int
) -> None:
    async with line() as it:
        alice = channel_over(over(it, **RARELY), "alice")
        async with listening(alice) as told:
            body = b"<html>come back later</html>" if status == 400 else b""
            it.disturbance = answering(status, body)
            await alice.send(b"hello")
            degraded = await told.first(TransportDegraded)
            assert str(status) in degraded.reason
            await anyio.sleep(3)
            it.disturbance = None
            await told.first(MessageSent, within_s=60)


async def test_store_knows_a_message_by_the_hash_that_is_told() -> None:
    async with line() as it:
        alice = channel_over(over(it), "alice")
        async with listening(alice) as told:
            await alice.send(b"hello")
            sent = await told.first(MessageSent)
            asking = over(it)
            (stored,) = await asking.by_hash([sent.message_hash])
            assert stored.payload
            await asking.aclose()


@pytest.mark.conformance("JS-CONNECT-1")
@every_way
async def test_a_node_that_restarts_costs_nothing(
    way: dict[str, Any], virtual_time: None, tmp_path: Path
) -> None:
    """Its subscriptions are gone; what was stored and what is sent meanwhile is not."""
    store = {"store_path": tmp_path / "store.db"}
    async with line(**store) as it, line(**store) as restarted:
        alice, bob = (
            channel_over(over(it, **way, **RARELY), name, options=ChannelOptions())
            for name in ("alice", "bob")
        )
        async with listening(alice) as alice_told, listening(bob) as bob_told:
            await alice.send(b"before")
            await bob_told.first(MessageReceived)
            it.connect(None)
            for number in range(8):
                await alice.send(b"meanwhile %d" % number)
                await anyio.sleep(1)
            await alice_told.first(TransportDegraded)
            assert len(bob_told.contents) == 1
            it.connect(restarted.node)
            await bob_told.until(lambda: len(bob_told.contents) == 9, within_s=120)
            assert bob_told.contents[1:] == [b"meanwhile %d" % number for number in range(8)]
            for told in (alice_told, bob_told):
                degraded = [event.component for event in told.of(TransportDegraded)]
                assert "receive" in degraded
                is_alone = [e for e in told.of(TransportDegraded) if "relay peer" in e.reason]
                assert len(set(degraded)) == len(degraded) - len(is_alone)
                # Whether sending works is known once something is sent: a sync message.
                await told.until(lambda: components(told) == sorted(degraded), within_s=600)  # noqa: B023
            assert alice.log_digest() == bob.log_digest()
            assert bob.statistics().degraded == ()


@pytest.mark.parametrize(
    "disturbance",
    [
        answering(200, b"<html>502</html>"),
        answering(200, b""),
        answering(500, b"\xff"),
        failing(httpx.RemoteProtocolError("peer closed connection")),
        failing(httpx.ReadTimeout("no answer")),
    ],
)
async def test_a_node_that_talks_nonsense_is_told_and_nothing_is_lost(
    disturbance: Any, virtual_time: None
) -> None:
    async with line() as it:
        alice, bob = (
            channel_over(over(it, **RARELY), name, options=ChannelOptions())
            for name in ("alice", "bob")
        )
        async with listening(alice) as alice_told, listening(bob) as bob_told:
            it.disturbance = disturbance
            for number in range(10):
                await alice.send(b"%d" % number)
            degraded = await bob_told.first(TransportDegraded, within_s=60)
            assert degraded.reason
            await anyio.sleep(20)
            it.disturbance = None
            await bob_told.until(lambda: len(bob_told.contents) == 10, within_s=120)
            assert bob_told.contents == [b"%d" % number for number in range(10)]
            await alice_told.until(
                lambda: len(alice_told.of(MessageAcknowledged)) == 10, within_s=600
            )
            assert alice.log_digest() == bob.log_digest()


async def test_an_answer_that_is_lost_with_messages_in_it_is_made_up_for(
    virtual_time: None,
) -> None:
    """Reading empties the node's cache: what such an answer held is in Store alone."""
    async with line() as it:
        alice, bob = (
            channel_over(over(it), name, options=ChannelOptions(sync_min_interval_ms=0))
            for name in ("alice", "bob")
        )
        async with alice, listening(bob) as told:
            await anyio.sleep(1)
            it.swallows = "/relay/v1/auto/messages/"
            await alice.send(b"hello")
            await anyio.sleep(1)
            assert not told.contents
            it.swallows = None
            received = await told.first(MessageReceived, within_s=60)
            assert received.content == b"hello"
            assert bob.statistics().transport.outages == 1


async def test_a_node_without_relay_and_without_service_cannot_be_used() -> None:
    async with line(relay=False, self_service=False) as it:
        with pytest.raises(ChannelUnavailable, match="filter_subscribe"):
            await channel_over(over(it), "alice").open()


async def test_an_unreadable_message_of_others_on_the_topic_is_no_harm() -> None:
    async with line() as it:
        alice, bob = (channel_over(over(it), name) for name in ("alice", "bob"))
        async with alice, listening(bob) as told:
            stranger = over(it)
            envelope = stranger.envelope(
                json.dumps({"not": "sds"}).encode(), timestamp_ns=now_ns(), ephemeral=True
            )
            await stranger.publish(envelope)
            await alice.send(b"hello")
            await told.first(MessageReceived)
            rejected = await told.first(MessageRejected)
            assert rejected.reason is RejectionReason.MALFORMED
            await stranger.aclose()


@pytest.mark.slow
@pytest.mark.parametrize("mode", [None], indirect=True)
@pytest.mark.parametrize("way", [{}, {"service": "light"}, {"pubsub_topic": STATIC_SHARD}])
async def test_200_messages_a_second_are_all_received_without_store(
    way: dict[str, Any], virtual_time: None
) -> None:
    """From silence, through a cache of 50, with bob's polling alone: Store is not asked."""
    count = 1_000
    options = ChannelOptions(retrieval_strategy="none", sync_min_interval_ms=0)
    async with line() as it:
        alice, bob = (
            channel_over(over(it, **way), name, options=options, causal_history_size=5)
            for name in ("alice", "bob")
        )
        async with alice, listening(bob) as told:
            await anyio.sleep(30)
            for number in range(count):
                await alice.send(b"%d" % number)
                await anyio.sleep(1 / 200)
            await told.until(lambda: len(told.contents) == count)
            assert told.contents == [b"%d" % number for number in range(count)]
            statistics = bob.statistics()
            assert statistics.transport.gaps == 0
            assert statistics.transport.received_live == count
            assert alice.log_digest() == bob.log_digest()


async def test_quick_options_are_quick_over_a_node_too() -> None:
    async with line() as it:
        alice, bob = (channel_over(over(it), name, options=QUICK) for name in ("alice", "bob"))
        async with listening(alice) as told, bob:
            request = await alice.send(b"hello")
            acknowledged = await told.first(MessageAcknowledged)
            assert acknowledged.message_id == request.message_id
