"""Rows of logos-delivery's unit tests that no other test shows."""

import anyio
import pytest

from reliable_channel import ChannelOptions, MessageReceived, MessageSent, ReliableChannel
from reliable_channel._contracts.encryption import EncryptionPair
from reliable_channel.options import RateLimitOptions
from reliable_channel.transport import Envelope, LossyTransport, MemoryNetwork
from tests.channel.world import listening, make_channel, now_ns

from .world import NIM, mesh, participant

pytestmark = pytest.mark.anyio


@pytest.mark.conformance("LD-LIFECYCLE-2", "LD-TOPIC-1")
async def test_the_topic_is_subscribed_while_the_channel_is_open() -> None:
    async with mesh("alice") as (line,):
        channel = participant(line, "alice")
        assert line.requests == []
        async with channel:
            assert line.asked("POST", "/subscriptions") == 1
            assert line.asked("DELETE", "/subscriptions") == 0
        assert line.asked("DELETE", "/subscriptions") == 1


@pytest.mark.conformance("LD-INGRESS-1")
async def test_of_two_channels_on_one_topic_each_receives_its_own() -> None:
    network = MemoryNetwork()

    def channel(channel_id: str, sender_id: str) -> ReliableChannel:
        return ReliableChannel(
            transport=network.transport(),
            channel_id=channel_id,
            sender_id=sender_id,
            options=NIM,
            now_ns=now_ns,
        )

    one, other = channel("one", "bob"), channel("other", "bob")
    async with listening(one) as told_one, listening(other) as told_other:
        for channel_id in ("one", "other"):
            async with channel(channel_id, "alice") as alice:
                await alice.send(channel_id.encode())
        for told in (told_one, told_other):
            await told.first(MessageReceived)
        assert (told_one.contents, told_other.contents) == ([b"one"], [b"other"])
    assert {stored.meta for stored in network.store.values()} == {b"RELIABLE-CHANNEL-API/1"}


@pytest.mark.conformance("LD-INGRESS-4")
async def test_a_message_that_is_being_opened_while_the_channel_closes_is_not_told() -> None:
    opening = anyio.Event()

    async def plain(content: bytes) -> bytes:
        return content

    async def slow(payload: bytes) -> bytes:
        opening.set()
        await anyio.sleep_forever()
        raise AssertionError

    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice", encryption=EncryptionPair(plain, plain))
    bob = make_channel(network.transport(), "bob", encryption=EncryptionPair(plain, slow))
    async with alice, listening(bob) as told:
        await alice.send(b"hello")
        await opening.wait()
        await bob.aclose()
        assert told.of(MessageReceived) == []


class Holding(LossyTransport):
    """A way into a network that holds back what has a certain content."""

    def __init__(self, network: MemoryNetwork, content: bytes) -> None:
        super().__init__(network.transport(), drop_incoming=0, seed=0)
        self._content = content
        self.released = anyio.Event()

    async def publish(self, envelope: Envelope) -> None:
        if self._content in envelope.payload:
            await self.released.wait()
        await super().publish(envelope)


@pytest.mark.conformance("LD-SEND-4")
async def test_a_message_that_overtakes_another_settles_its_own_request() -> None:
    transport = Holding(MemoryNetwork(), b"slow")
    channel = make_channel(transport, "alice", sync_min_interval_ms=0)
    async with listening(channel) as told:
        slow, quick = await channel.send(b"slow"), await channel.send(b"quick")
        await told.first(MessageSent)
        assert [event.request_id for event in told.of(MessageSent)] == [quick.request_id]
        transport.released.set()
        await told.until(lambda: len(told.of(MessageSent)) == 2)
        assert told.of(MessageSent)[1].request_id == slow.request_id


@pytest.mark.conformance("LD-SDS-4")
async def test_who_closes_and_opens_again_has_the_same_log() -> None:
    network = MemoryNetwork()
    alice = make_channel(network.transport(), "alice")
    async with alice:
        async with listening(make_channel(network.transport(), "bob")) as told:
            for number in range(20):
                await alice.send(b"%d" % number)
            await told.until(lambda: len(told.contents) == 20)
        again = make_channel(network.transport(), "bob")
        async with listening(again) as told:
            await told.until(lambda: again.log_digest() == alice.log_digest())
            assert [entry.content for entry in again.log()] == [b"%d" % n for n in range(20)]


@pytest.mark.conformance("LD-RATE-1")
async def test_without_a_rate_limit_everything_passes() -> None:
    options = ChannelOptions(
        rate_limit=RateLimitOptions(messages_per_epoch=1), sync_min_interval_ms=0
    )
    channel = make_channel(MemoryNetwork().transport(), "alice", options=options)
    async with listening(channel) as told:
        for number in range(20):
            await channel.send(b"%d" % number)
        await told.until(lambda: len(told.of(MessageSent)) == 20)
        assert not channel.explain_budget().enabled
