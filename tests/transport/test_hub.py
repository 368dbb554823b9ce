"""Many channels on few subscriptions."""

from contextlib import AsyncExitStack

import anyio
import pytest

from reliable_channel import ChannelHub, ChannelUnavailable, MessageReceived, ReliableChannel
from reliable_channel._contracts.encryption import EncryptionPair
from reliable_channel.channel import CLOSE_TIMEOUT_S
from reliable_channel.diagnostics import NodeHealthChanged, TransportDegraded
from reliable_channel.errors import ChannelClosed
from reliable_channel.hub import channel_of
from reliable_channel.transport import (
    Batch,
    MemoryNetwork,
    MemoryTransport,
    PoolTransport,
    Transport,
)
from reliable_channel.transport.hub import Hub
from tests.channel.world import QUICK, Told, listening, now_ns
from tests.waku.node.wires import until
from waku.node import EmbeddedNode

from .nodes import joined, over, served

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


async def test_fifty_channels_on_five_topics_are_five_subscriptions() -> None:
    networks = Networks()
    names = [f"channel {number}" for number in range(50)]
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


async def test_a_channel_that_comes_later_hears_nothing_of_others_from_store() -> None:
    networks = Networks()
    async with Hub(networks.connect, channel_of) as hub:
        async with through(hub, "topic", "one", "bot") as one:
            await one.send(b"of one")
            await anyio.sleep(0.01)
        async with listening(through(hub, "topic", "two", "bot")) as two:
            async with through(hub, "topic", "two", "user") as user:
                await user.send(b"of two")
                await two.until(lambda: two.contents == [b"of two"])
            assert not any(e.wire_name == "message_rejected" for e in two.events)


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


async def test_a_look_that_brings_nothing_wakes_no_channel(virtual_time: None) -> None:
    class Lively(MemoryTransport):
        async def receive(self) -> Batch:
            looks.append(1)
            await anyio.sleep(0.1)
            return Batch([])

    network, looks, wakes = MemoryNetwork(), list[int](), list[int]()
    async with Hub(lambda _: Lively(network), channel_of) as hub:
        member = hub.transport("topic", "one")
        await member.open()

        async def listen() -> None:
            while True:
                await member.receive()
                wakes.append(1)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            await anyio.sleep(10)
            tasks.cancel_scope.cancel()
        await member.aclose()
    assert len(looks) >= 100
    assert wakes == []


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


async def test_who_waits_while_the_first_one_fails_to_open_opens_the_topic_itself() -> None:
    networks = Networks()
    network = networks.network("topic")

    class Opening(MemoryTransport):
        async def open(self) -> None:
            network.away = len(networks.connected) == 1
            await anyio.lowlevel.checkpoint()
            await super().open()

    def connect(content_topic: str) -> Transport:
        networks.connected.append(content_topic)
        return Opening(network)

    async with Hub(connect, channel_of) as hub:
        opened: list[str] = []

        async def join(name: str) -> None:
            channel = through(hub, "topic", name, "bot")
            try:
                async with channel:
                    opened.append(name)
                    assert hub.content_topics == ("topic",)
            except ChannelUnavailable:
                assert name not in opened

        async with anyio.create_task_group() as tasks:
            for name in ("one", "two"):
                tasks.start_soon(join, name)
        assert len(opened) == 1
        assert networks.connected == ["topic", "topic"]
        assert hub.content_topics == ()


# -- several nodes ---------------------------------------------------------------------------------


async def test_a_hub_over_several_nodes_loses_nothing_where_one_is_killed() -> None:
    names = ["one", "two", "three"]
    async with joined(2) as lines, AsyncExitStack() as stack:

        def connect(_: str) -> Transport:
            ways = [over(it, url=f"http://{number}") for number, it in enumerate(lines)]
            return PoolTransport(ways, retry_s=0.1)

        hub = await stack.enter_async_context(Hub(connect, channel_of))
        bots = [through(hub, "topic", name, "bot", options=QUICK) for name in names]
        heard = [await stack.enter_async_context(listening(bot)) for bot in bots]
        assert [it.asked("POST", "/subscriptions") for it in lines] == [1, 1]
        far = await stack.enter_async_context(Hub(lambda _: over(lines[1]), channel_of))
        users = [through(far, "topic", name, "user", options=QUICK) for name in names]
        for user in users:
            await stack.enter_async_context(user)
        sent = [b"%d" % number for number in range(10)]
        for payload in sent:
            if payload == b"5":
                lines[0].connect(None)
            for user in users:
                await user.send(payload)
        for told in heard:
            await told.until(lambda: told.contents == sent)  # noqa: B023
            await told.until(lambda: states(told, "http://0")[-1:] == ["unsubscribed"])  # noqa: B023
        assert [it.asked("POST", "/subscriptions") for it in lines] == [1, 2]
        assert not any(told.of(TransportDegraded) for told in heard)


class TestOverHttp:
    """Nodes on real ports, which are what `ChannelHub` takes."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"  # uvicorn knows no other

    async def test_closing_waits_once_for_a_node_that_is_away(self) -> None:
        async with AsyncExitStack() as stack:
            node = await stack.enter_async_context(
                served(await stack.enter_async_context(EmbeddedNode()))
            )
            hub = await stack.enter_async_context(ChannelHub(node.url))
            opened = await stack.enter_async_context(AsyncExitStack())
            rooms = [hub.channel(channel_id=f"room {n}", sender_id="bot") for n in range(20)]
            heard = [await opened.enter_async_context(listening(room)) for room in rooms]
            node.kill()
            for room, told in zip(rooms, heard, strict=True):
                await told.first(TransportDegraded)
                await room.send(b"in vain")
            begun_s = anyio.current_time()
            await opened.aclose()
            assert anyio.current_time() - begun_s < len(rooms) / 2 * CLOSE_TIMEOUT_S

    async def test_a_node_that_goes_is_one_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        async with AsyncExitStack() as stack:
            node = await stack.enter_async_context(
                served(await stack.enter_async_context(EmbeddedNode()))
            )
            hub = await stack.enter_async_context(ChannelHub(node.url))
            heard = [
                await stack.enter_async_context(
                    listening(hub.channel(channel_id=f"room {number}", sender_id="bot"))
                )
                for number in range(10)
            ]
            node.kill()
            for told in heard:
                await told.first(TransportDegraded)
            warnings = [each for each in caplog.records if each.levelname == "WARNING"]
            assert len(warnings) == 1, [each.getMessage() for each in warnings]

    async def test_a_node_that_is_killed_in_the_middle_costs_nothing(self) -> None:
        async with AsyncExitStack() as stack:
            one, other = [await stack.enter_async_context(EmbeddedNode()) for _ in range(2)]
            one.join(other)
            killed = await stack.enter_async_context(served(one))
            stays = await stack.enter_async_context(served(other))
            async with (
                ChannelHub([killed.url, stays.url], redundancy=1) as near,
                ChannelHub(stays.url) as far,
            ):
                alice, bob = (
                    hub.channel(channel_id="ops", sender_id=name, options=QUICK)
                    for hub, name in ((near, "alice"), (far, "bob"))
                )
                async with listening(alice) as said, listening(bob) as told:
                    await until(lambda: listens_through(alice, 2))
                    for number in range(30):
                        if number == 10:
                            killed.kill()
                        await alice.send(b"%d" % number)
                        await bob.send(b"%d back" % number)
                    await told.until(lambda: len(told.contents) == 30)
                    await said.until(lambda: len(said.contents) == 30)
                    assert told.contents == [b"%d" % number for number in range(30)]
                    assert said.contents == [b"%d back" % number for number in range(30)]
                    await said.until(lambda: states(said, killed.url)[-1:] == ["unsubscribed"])
                    assert not said.of(TransportDegraded)


def listens_through(channel: ReliableChannel, count: int) -> bool:
    nodes = channel.statistics().nodes
    return len(nodes) == count and not any(node.is_away for node in nodes)


def states(told: Told, address: str) -> list[str]:
    return [event.state for event in told.of(NodeHealthChanged) if event.address == address]


def test_what_a_hub_cannot_use_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^`node` must be the address of a node"):
        ChannelHub(None)
    with pytest.raises(ValueError, match=r"^`node` must be an http.* \(got 'b'\)"):
        ChannelHub(["http://a", "b"])
    with pytest.raises(ValueError, match=r"^`redundancy` must be at least 1"):
        ChannelHub("http://a", redundancy=0)
    with pytest.raises(TypeError, match="redundancy"):
        ChannelHub("http://a").channel(channel_id="ops", sender_id="bot", redundancy=3)


def test_the_channel_of_garbage_is_unknown() -> None:
    assert channel_of(b"") is None
    assert channel_of(b"\xff\xff") is None


async def test_channels_of_a_hub_are_left_in_any_order() -> None:
    async with ChannelHub("http://127.0.0.1:9", wait_for_node=True) as hub:
        rooms = [AsyncExitStack() for _ in range(3)]
        for number, room in enumerate(rooms):
            await room.enter_async_context(hub.channel(channel_id=f"{number}", sender_id="bot"))
        for room in rooms:
            await room.aclose()
        assert hub.channels == () and hub.content_topics == ()


def test_a_setting_that_a_hub_lacks_is_named() -> None:
    with pytest.raises(
        TypeError, match="a hub has no setting `shard`; its settings are pubsub_topic,"
    ):
        ChannelHub("http://127.0.0.1:9", shard="nonsense")  # type: ignore[call-arg]
    hub = ChannelHub("http://127.0.0.1:9")
    with pytest.raises(TypeError, match="did you mean `history`"):
        hub.channel(channel_id="c", sender_id="s", histry="all")  # type: ignore[call-arg]
