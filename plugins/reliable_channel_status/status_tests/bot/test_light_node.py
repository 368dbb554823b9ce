"""A bot on service peers over libp2p: addresses or a network's name, and no node to run."""

import logging
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskStatus

from reliable_channel.spi import MemoryStateStore
from reliable_channel_status import ChatMessage, Opener, Received, Sealer
from reliable_channel_status.bot import BotOptions, Message, StatusBot
from reliable_channel_status.bot.light_node import LightNode
from reliable_channel_status.bot.memory import BotMemory
from reliable_channel_status.bot.outbox import BotContext
from reliable_channel_status.wire.topics import DEFAULT_SHARD, NON_PROTECTED_SHARD
from status_tests.world import ALICE, BOB, CHAT_ID, COMMUNITY, GENERAL, TOPIC
from tests.waku.p2p.network import ServiceNetwork
from waku import LightClient, StoreQuery
from waku.errors import BadRequest, NodeUnreachable
from waku.node import EmbeddedNode, Listen, NodeOptions

pytestmark = pytest.mark.anyio

SHARD = str(DEFAULT_SHARD)
OLD_SHARD = str(NON_PROTECTED_SHARD)
PEER = "/ip4/127.0.0.1/tcp/1"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def ping_bot(addresses: Sequence[str], **values: Any) -> StatusBot:
    bot = StatusBot(node=addresses, community=COMMUNITY, channels=[GENERAL], **values)

    @bot.command("ping")
    async def ping(message: Message) -> str:
        return "pong"

    return bot


@asynccontextmanager
async def running(bot: StatusBot, store: MemoryStateStore) -> AsyncIterator[None]:
    memory = BotMemory(store, ALICE.public_key, now_ms())
    async with bot._access.opened() as (client, pause), anyio.create_task_group() as tasks:  # noqa: SLF001
        around = BotContext(key=ALICE, memory=memory, client=client, now_ms=now_ms, pause=pause)
        tasks.start_soon(bot.serve, around)
        yield
        bot.stop()
    memory.close()


class User:
    """Somebody who asks, with a light client too."""

    def __init__(self, client: LightClient) -> None:
        self._client = client
        self._opener = Opener([TOPIC])

    async def says(self, text: str) -> None:
        message = ChatMessage(clock=now_ms(), timestamp=now_ms(), text=text, chat_id=CHAT_ID)
        for sealed in Sealer(BOB).seal(message, TOPIC, now_ms()).messages:
            await self._client.light_push(sealed, SHARD)

    async def finds(self, wanted: Callable[[ChatMessage], bool]) -> int:
        """How many such messages Store has."""
        opener = Opener([TOPIC])
        query = StoreQuery(pubsub_topic=SHARD, content_topics=(TOPIC.content_topic,))
        found = 0
        async for entry in self._client.store_all(query):
            for outcome in opener.receive(entry.message, now_ms()) if entry.message else ():
                payload = outcome.payload if isinstance(outcome, Received) else None
                found += isinstance(payload, ChatMessage) and wanted(payload)
        return found

    async def reads(self, messages: Any, wanted: Callable[[ChatMessage], bool]) -> ChatMessage:
        with anyio.fail_after(120):
            async for pushed in messages:
                for outcome in self._opener.receive(pushed.message, now_ms()):
                    payload = outcome.payload if isinstance(outcome, Received) else None
                    if isinstance(payload, ChatMessage) and wanted(payload):
                        return payload
        raise AssertionError("the stream of messages ended")


@asynccontextmanager
async def world(**values: Any) -> AsyncIterator[tuple[ServiceNetwork, list[str], User, Any]]:
    network = ServiceNetwork(2, cluster_id=16, shards=[32, 64])
    async with (
        network.listening() as addresses,
        LightClient(list(addresses), cluster_id=16, shards=[32]) as client,
        client.subscribe(SHARD, [TOPIC.content_topic]) as messages,
    ):
        yield network, list(addresses), User(client), messages


def is_pong(message: ChatMessage) -> bool:
    return message.text == "pong"


async def test_a_bot_answers_through_service_peers_alone() -> None:
    async with world() as (_, addresses, user, messages):
        async with running(ping_bot(addresses), MemoryStateStore()):
            await user.says("!ping")
            await user.reads(messages, is_pong)


@asynccontextmanager
async def python_node(folder: Path, *, port: int = 0) -> AsyncIterator[EmbeddedNode]:
    """Our own service node on Status' shards, with a Store and a key that outlive it."""
    options = NodeOptions(
        cluster_id=16,
        num_shards=65,
        shards=(32, 64),
        static_sharding=True,
        store_path=folder / "store.db",
    )
    listen = Listen((f"/ip4/127.0.0.1/tcp/{port}/ws",), identity=folder / "node.key")
    async with EmbeddedNode(options, listen=listen) as node:
        yield node


async def test_a_bot_and_its_user_meet_at_the_python_service_node(tmp_path: Path) -> None:
    """What is asked while the bot is away is answered from the node's Store, once."""
    store = MemoryStateStore()
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(python_node(tmp_path))
        (address,) = node.libp2p_addresses
        client = LightClient(address, cluster_id=16, shards=[32])
        user = User(await stack.enter_async_context(client))
        topics = [TOPIC.content_topic]
        messages = await stack.enter_async_context(client.subscribe(SHARD, topics))
        async with running(ping_bot([address]), store):
            await user.says("!ping")
            await user.reads(messages, is_pong)
        await user.says("!ping")
        async with running(ping_bot([address]), store):
            await user.reads(messages, is_pong)
            assert await user.finds(is_pong) == 2


async def test_a_bot_outlives_a_restart_of_the_python_service_node(tmp_path: Path) -> None:
    done = anyio.Event()

    async def serve(address: str, *, task_status: TaskStatus[None]) -> None:
        async with running(ping_bot([address]), MemoryStateStore()):
            task_status.started()
            await done.wait()

    async with anyio.create_task_group() as tasks:
        async with python_node(tmp_path) as node:
            (address,) = node.libp2p_addresses
            await tasks.start(serve, address)
        async with python_node(tmp_path, port=int(address.split("/")[4])) as node:
            assert node.libp2p_addresses == (address,)
            async with LightClient(address, cluster_id=16, shards=[32]) as client:
                user = User(client)
                await user.says("!ping")
                with anyio.fail_after(120):
                    while not await user.finds(is_pong):  # noqa: ASYNC110
                        await anyio.sleep(0.05)
                assert await user.finds(is_pong) == 1
            done.set()


async def test_what_was_asked_while_it_was_away_is_answered_from_store() -> None:
    async with world() as (_, addresses, user, messages):
        store = MemoryStateStore()
        async with running(ping_bot(addresses), store):
            await user.says("!ping")
            await user.reads(messages, is_pong)
        await user.says("!ping")
        async with running(ping_bot(addresses), store):
            await user.reads(messages, is_pong)


async def test_peers_that_go_are_replaced_and_nothing_is_missed() -> None:
    async with world() as (network, addresses, user, messages):
        async with running(ping_bot(addresses), MemoryStateStore()):
            await user.says("!ping")
            await user.reads(messages, is_pong)
            for node in network.nodes:
                for link in list(node.host.links):
                    link.close()
            with anyio.fail_after(120):
                while True:
                    try:
                        await user.says("!ping")
                        break
                    except NodeUnreachable:
                        await anyio.sleep(0.05)
                # The user's connections went as well: what passed meanwhile is in Store.
                while await user.finds(is_pong) < 2:  # noqa: ASYNC110
                    await anyio.sleep(0.05)


async def test_a_shard_that_no_peer_serves_is_logged_and_the_other_works(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with world() as (network, addresses, user, messages):
        network.unserved = {OLD_SHARD}
        with caplog.at_level(logging.WARNING):
            async with running(ping_bot(addresses), MemoryStateStore()):
                await user.says("!ping")
                await user.reads(messages, is_pong)
        assert "shard_not_served" in caplog.text and OLD_SHARD in caplog.text


async def test_without_the_shard_where_it_writes_there_is_nothing_to_do() -> None:
    network = ServiceNetwork(1, cluster_id=16, shards=[32, 64])
    network.unserved = {SHARD}
    async with network.listening() as addresses:
        async with LightNode(list(addresses), [DEFAULT_SHARD]) as node:
            with pytest.raises(BadRequest):
                await node.subscribe([SHARD], [TOPIC.content_topic])
            network.unserved = set()
            await node.subscribe([SHARD], [TOPIC.content_topic])


async def test_many_topics_are_several_requests() -> None:
    network = ServiceNetwork(1, cluster_id=16, shards=[32, 64])
    async with network.listening() as addresses:
        async with LightNode(list(addresses), [DEFAULT_SHARD]) as node:
            topics = [f"/waku/1/0x{number:08x}/rfc26" for number in range(250)]
            for _ in range(2):
                await node.subscribe([SHARD], topics)
            assert network.nodes[0].requests == 3
            (known,) = network.nodes[0].filters.values()
            assert known == {(SHARD, topic) for topic in topics}


async def test_it_says_that_nothing_comes_and_then_that_something_is_missing() -> None:
    network = ServiceNetwork(1, cluster_id=16, shards=[32, 64])
    async with network.listening() as addresses:
        async with LightNode(list(addresses), [DEFAULT_SHARD]) as node:
            await node.subscribe([SHARD], [TOPIC.content_topic])
            assert await node.take(SHARD) == [] and node.fill == 0
            (link,) = network.nodes[0].host.links
            link.close()
            failures, gaps = 0, 0
            with anyio.fail_after(120):
                while not gaps:
                    try:
                        await node.take(SHARD)
                    except NodeUnreachable as error:
                        assert f"no peer pushes {SHARD}" in str(error)
                        failures += 1
                    gaps += node.fill == 1
                    await node.wait(0.01)


def test_addresses_networks_and_what_is_neither(tmp_path: Path) -> None:
    for node in (
        PEER,
        [PEER, PEER],
        "enrtree://AOGECG2SPND25EEFMAJ5WF3KSGJNSGV356DSTL2YVLLZWIV6SAYBM@n.example",
    ):
        StatusBot(node=node)
    StatusBot(network="status.prod")
    StatusBot(node=PEER, network="status.prod")
    for wrong in (None, [], 5, "", "node.example", [PEER, "http://a"], ["http://a", "http://b"]):
        with pytest.raises(ValueError, match="`node` must be the address of a Waku node's REST"):
            StatusBot(node=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cannot be dialled"):
        StatusBot(node="/ip4/1.2.3.4/udp/1")
    with pytest.raises(ValueError, match="`network` is for service peers"):
        StatusBot(node="http://a", network="status.prod")
    with pytest.raises(ValueError, match="`network` must be one of"):
        StatusBot(network="status")
    with pytest.raises(ValueError, match="cannot be read"):
        StatusBot(network=str(tmp_path / "none.toml"))
    with pytest.raises(
        ValueError, match=r"`network` logos\.test is cluster 2, and the bot's shard"
    ):
        StatusBot(network="logos.test")


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "waku.discovery", None)
    monkeypatch.setattr("reliable_channel_status.bot.waku_access._EXTRAS", ("waku.discovery",))
    with pytest.raises(ValueError, match=r"pip install 'reliable-channel-status\[libp2p\]'"):
        StatusBot(network="status.prod")


def test_options_may_name_shards_of_another_cluster(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        "cluster_id = 42\nshards = [0, 1]\nmax_message_bytes = 153_600\nrln = false\n"
        f'entry = ["{PEER}"]\n'
    )
    shard = type(DEFAULT_SHARD).parse("/waku/2/rs/42/0")
    StatusBot(network=str(file), options=BotOptions(shard=shard, also_listen=()))
