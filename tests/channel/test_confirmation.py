"""Looking into Store: what was sent is there, and what did not come is found."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from reliable_channel import ChannelOptions, DeliveryFailed, MessageReceived, MessageSent
from reliable_channel.diagnostics import TopicHealthChanged, TransportDegraded, TransportRecovered
from reliable_channel.events import ConnectionStatusChanged, MessageStored
from reliable_channel.transport import (
    Batch,
    MemoryNetwork,
    MemoryTransport,
    Received,
    TransportError,
)

from .world import listening, make_channel

pytestmark = pytest.mark.anyio

OPTIONS = ChannelOptions(sync_min_interval_ms=0, retry_interval_ms=3_600_000)
"""Nothing but looking at Store helps."""


class Deaf(MemoryTransport):
    """A subscription that can die without a word, and a node whose Store can forget."""

    def __init__(self, network: MemoryNetwork) -> None:
        super().__init__(network)
        self.dead = False
        self.forgetful = False
        self.renewed = 0
        self.mends = True
        self.published = 0
        self.refuses = False
        """Receiving fails, as where a node cannot subscribe."""

    async def publish(self, envelope: Any) -> None:
        await super().publish(envelope)
        self.published += 1
        if self.forgetful:
            self._network.store.clear()

    async def receive(self) -> Batch:
        if self.refuses:
            raise TransportError("no subscription")
        with anyio.move_on_after(1):
            return await super().receive()
        return Batch([])

    def arrive(self, received: Received) -> int:
        return 0 if self.dead else super().arrive(received)

    def renew(self) -> None:
        self.renewed += 1
        self.dead = self.dead and not self.mends


def channel(transport: MemoryTransport, sender_id: str = "bob", **values: Any) -> Any:
    return make_channel(transport, sender_id, options=OPTIONS, **values)


async def test_what_store_has_is_told_once(virtual_time: None) -> None:
    it = channel(MemoryNetwork().transport())
    async with listening(it) as told:
        request = await it.send(b"hello")
        stored = await told.first(MessageStored, within_s=61)
        sent = await told.first(MessageSent)
        assert stored == MessageStored(request.message_id, sent.message_hash)
        await anyio.sleep(200)
        assert len(told.of(MessageStored)) == it.statistics().transport.confirmed == 1


async def test_what_store_does_not_have_after_two_looks_is_sent_again(virtual_time: None) -> None:
    transport = Deaf(MemoryNetwork())
    transport.forgetful = True
    it = channel(transport)
    async with listening(it) as told:
        await it.send(b"hello")
        await anyio.sleep(119)
        assert transport.published == 1
        transport.forgetful = False
        await anyio.sleep(2)
        assert transport.published == 2
        await told.first(MessageStored, within_s=61)


async def test_it_is_not_sent_again_for_ever(virtual_time: None) -> None:
    transport = Deaf(MemoryNetwork())
    transport.forgetful = True
    it = channel(transport, max_retry_attempts=3)
    async with listening(it) as told:
        await it.send(b"hello")
        failed = await told.first(DeliveryFailed, within_s=8_000)
        assert failed.attempts == transport.published == 4


async def test_ephemeral_messages_are_not_expected_there(virtual_time: None) -> None:
    transport = Deaf(MemoryNetwork())
    it = channel(transport)
    async with listening(it) as told:
        await it.send_ephemeral(b"is typing")
        await anyio.sleep(300)
        assert transport.published == 1
        assert not told.of(MessageStored)


async def test_a_subscription_that_died_without_a_word_is_found_and_renewed(
    virtual_time: None,
) -> None:
    network = MemoryNetwork()
    deaf = Deaf(network)
    alice, bob = channel(network.transport(), "alice"), channel(deaf)
    async with listening(alice), listening(bob) as told:
        await anyio.sleep(1)  # beyond the first look, which takes all that is stored
        deaf.dead, deaf.mends = True, False
        await alice.send(b"one")
        await alice.send(b"two")
        degraded = await told.first(TransportDegraded, within_s=62)
        assert degraded == TransportDegraded(
            "receive", "the subscription was silent while Store had 2 messages"
        )
        assert told.contents == [b"one", b"two"]
        assert bob.statistics().transport.missed_live == 2
        assert bob.statistics().health == "partially_connected"
        assert bob.statistics().topic_health == "unhealthy"
        await anyio.sleep(100)
        assert not told.of(TransportRecovered)
        deaf.mends = True
        await alice.send(b"three")
        await anyio.sleep(70)
        assert deaf.renewed == 2
        await alice.send(b"four")
        await told.first(TransportRecovered)
        assert bob.statistics().health == "connected"
        assert [event.status for event in told.of(ConnectionStatusChanged)] == [
            "partially_connected", "connected",
        ]  # fmt: skip
        assert [event.health for event in told.of(TopicHealthChanged)] == [
            "unhealthy", "sufficiently_healthy",
        ]  # fmt: skip
        assert len(told.of(MessageReceived)) == 4


async def test_store_is_read_while_receiving_fails(virtual_time: None) -> None:
    """A node that is up and cannot subscribe may stay like that."""
    network = MemoryNetwork()
    deaf = Deaf(network)
    alice, bob = channel(network.transport(), "alice"), channel(deaf)
    async with listening(alice), listening(bob) as told:
        await anyio.sleep(1)
        deaf.dead = deaf.refuses = True
        await alice.send(b"one")
        await told.until(lambda: told.contents == [b"one"], within_s=63)
        assert [event.reason for event in told.of(TransportDegraded)] == ["no subscription"]
        assert deaf.renewed == 0
        deaf.dead = deaf.refuses = False
        await alice.send(b"two")
        await told.until(lambda: told.contents == [b"one", b"two"], within_s=30)
        assert bob.statistics().health == "connected"


async def test_a_quiet_network_is_no_dead_subscription(virtual_time: None) -> None:
    network = MemoryNetwork()
    deaf = Deaf(network)
    alice, bob = channel(network.transport(), "alice"), channel(deaf)
    async with listening(alice), listening(bob) as told:
        await alice.send(b"one")
        await bob.send(b"two")
        await anyio.sleep(1_000)
        assert not told.of(TransportDegraded)
        assert (deaf.renewed, bob.statistics().transport.missed_live) == (0, 0)


async def test_one_loss_among_many_arrivals_is_handed_in_and_no_silence(
    virtual_time: None,
) -> None:
    network = MemoryNetwork()
    deaf = Deaf(network)
    alice, bob = channel(network.transport(), "alice"), channel(deaf)
    async with listening(alice), listening(bob) as told:
        await alice.send(b"one")
        await told.first(MessageReceived)
        deaf.dead = True
        await alice.send(b"two")
        await told.until(lambda: told.contents == [b"one", b"two"], within_s=63)
        assert not told.of(TransportDegraded)
        assert deaf.renewed == 0


async def test_it_can_be_switched_off(virtual_time: None) -> None:
    network = MemoryNetwork()
    it = channel(network.transport(), confirm_interval_ms=0)
    async with listening(it) as told:
        await it.send(b"hello")
        await anyio.sleep(300)
        assert not told.of(MessageStored)
