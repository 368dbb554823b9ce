"""Many channels on few subscriptions."""

from contextlib import AsyncExitStack

import anyio
import pytest

from reliable_channel import ChannelClosed, ChannelUnavailable, MessageReceived, ReliableChannel
from reliable_channel.encryption import EncryptionPair
from reliable_channel.hub import channel_of
from reliable_channel.transport import MemoryNetwork, Transport
from reliable_channel.transport.hub import Hub
from tests.channel.world import listening, now_ns

pytestmark = pytest.mark.anyio


class Networks:
    """A memory network a content topic, and a count of the transports to it."""

    def __init__(self) -> None:
        self.by_topic: dict[str, MemoryNetwork] = {}
        self.connected: list[str] = []

    def connect(self, content_topic: str) -> Transport:
        self.connected.append(content_topic)
        return self.network(content_topic).transport()

    def network(self, content_topic: str) -> MemoryNetwork:
        return self.by_topic.setdefault(content_topic, MemoryNetwork())


def through(
    hub: Hub, topic: str, channel_id: str, sender_id: str, **more: object
) -> ReliableChannel:
    return ReliableChannel(
        transport=hub.transport(topic, channel_id),
        channel_id=channel_id,
        sender_id=sender_id,
        content_topic=f"/test/1/{topic}/proto",
        now_ns=now_ns,
        **more,  # type: ignore[arg-type]
    )


async def test_two_hundred_channels_on_five_topics_are_five_subscriptions() -> None:
    networks = Networks()
    names = [f"channel {number}" for number in range(200)]
    async with (
        Hub(networks.connect, channel_of) as bots,
        Hub(networks.connect, channel_of) as users,
        AsyncExitStack() as stack,
    ):
        for number, name in enumerate(names):
            bot = through(bots, f"topic {number % 5}", name, "bot")
            await stack.enter_async_context(bot)
        assert len(networks.connected) == 5
        assert bots.content_topics == tuple(f"topic {number}" for number in range(5))
        user = through(users, "topic 3", names[13], "user")
        other = through(users, "topic 3", names[18], "user")
        async with listening(user) as told, listening(other) as elsewhere:
            bot = through(bots, "topic 3", names[13], "another bot")
            async with bot:
                await bot.send(b"hello")
                assert (await told.first(MessageReceived)).content == b"hello"
            assert elsewhere.contents == []
            assert not any(e.wire_name == "message_rejected" for e in elsewhere.events)
    assert bots.content_topics == ()


async def test_the_last_channel_of_a_topic_ends_its_subscription() -> None:
    networks = Networks()
    async with Hub(networks.connect, channel_of) as hub:
        first, second = (through(hub, "topic", name, "bot") for name in ("one", "two"))
        seen = []
        async with first:
            async with second:
                seen.append(hub.content_topics)
            seen.append(hub.content_topics)
        seen.append(hub.content_topics)
        async with through(hub, "topic", "one", "bot"):
            seen.append(hub.content_topics)
        assert seen == [("topic",), ("topic",), (), ("topic",)]
        assert networks.connected == ["topic", "topic"]


async def test_sealed_messages_go_to_all_channels_of_their_topic() -> None:
    async def turn(content: bytes) -> bytes:
        await anyio.lowlevel.checkpoint()
        return bytes(255 - byte for byte in content)

    networks, seal = Networks(), EncryptionPair(turn, turn)
    async with Hub(networks.connect, channel_of) as hub, Hub(networks.connect, channel_of) as far:
        alice = through(far, "topic", "sealed", "alice", encryption=seal)
        bob = through(hub, "topic", "sealed", "bob", encryption=seal)
        async with alice, listening(bob) as told:
            await alice.send(b"secret")
            assert (await told.first(MessageReceived)).content == b"secret"


async def test_a_hub_that_is_not_open_says_so() -> None:
    hub = Hub(Networks().connect, channel_of)
    with pytest.raises(ChannelUnavailable, match="hub is not open"):
        await through(hub, "topic", "one", "bot").open()


async def test_a_node_that_is_away_leaves_no_half_open_topic() -> None:
    networks = Networks()
    networks.network("topic").away = True
    async with Hub(networks.connect, channel_of) as hub:
        with pytest.raises(ChannelUnavailable, match="away"):
            await through(hub, "topic", "one", "bot").open()
        assert hub.content_topics == ()
        networks.network("topic").away = False
        async with through(hub, "topic", "one", "bot") as channel:
            await channel.send(b"now")
        with pytest.raises(ChannelClosed):
            await channel.send(b"late")


def test_the_channel_of_garbage_is_unknown() -> None:
    assert channel_of(b"") is None
    assert channel_of(b"\xff\xff") is None
