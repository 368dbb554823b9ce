"""Topics of a hub share a node's REST API: counted in requests, on ours, nwaku and go-waku."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from reliable_channel.transport import WakuTransport
from reliable_channel.transport.base import TransportError
from reliable_channel.transport.hub_node import (
    IDLE_LOOKS_PER_S,
    MAX_IDLE_S,
    MAX_SHARD_IDLE_S,
    QUIET_S,
    UNSUBSCRIBE_LIMIT_S,
    UNSUBSCRIBES_EVERY_S,
    HubNode,
    TopicReader,
)
from reliable_channel.transport.polling import CACHE_CAPACITY
from reliable_channel.transport.settings import WakuSettings
from tests.channel.world import now_ns
from tests.slow import slow
from waku import WakuClient
from waku.models import WakuMessage
from waku.node.options import Behaviour
from waku.topics import pubsub_topic_for

from .nodes import STATIC_SHARD, Line, failing, joined, line

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("mode")]

TOPICS = [f"/app/1/room-{number}/proto" for number in range(12)]


@asynccontextmanager
async def hub_node(it: Line) -> AsyncIterator[HubNode]:
    node = HubNode("http://node", WakuClient("http://node", app=it, client_id="ours"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(node.run)
        yield node
        await node.aclose()
        tasks.cancel_scope.cancel()


async def opened(
    stack: AsyncExitStack, it: Line, node: HubNode, topics: list[str], **way: str
) -> list[WakuTransport]:
    transports = []
    for topic in topics:
        settings = WakuSettings(topic, **way)  # type: ignore[arg-type]
        transport = WakuTransport("http://node", settings, shared=node)
        await transport.open()
        stack.push_async_callback(transport.aclose)
        transports.append(transport)
    return transports


async def payload(transport: WakuTransport) -> bytes:
    while not (messages := (await transport.receive()).messages):
        pass
    return messages[0].payload


def there(it: Line, topic: str, payload: bytes, shard: str | None = None) -> None:
    """Publish at the node itself."""
    assert it.node is not None
    it.node.publish(
        shard or pubsub_topic_for(topic), WakuMessage(payload, topic, timestamp=now_ns())
    )


WAYS = [{}, {"service": "light"}, {"pubsub_topic": STATIC_SHARD}]


@pytest.mark.parametrize("way", WAYS, ids=["relay", "filter", "static"])
async def test_every_topic_hears_its_own_messages(way: dict[str, str]) -> None:
    async with line() as it, hub_node(it) as node, AsyncExitStack() as stack:
        transports = await opened(stack, it, node, TOPICS, **way)
        for topic in TOPICS:
            there(it, topic, topic.encode(), way.get("pubsub_topic"))
        for transport, topic in zip(transports, TOPICS, strict=True):
            assert await payload(transport) == topic.encode()
            envelope = transport.envelope(b"own", timestamp_ns=now_ns(), ephemeral=False)
            await transport.publish(envelope)
            assert await payload(transport) == b"own"


async def test_looks_of_idle_topics_are_few(virtual_time: None) -> None:
    async with line() as it, hub_node(it) as node, AsyncExitStack() as stack:
        await opened(stack, it, node, TOPICS)
        await anyio.sleep(20)
        it.forget()
        await anyio.sleep(30)
        assert it.asked("GET", "/relay/v1/") <= 30 * IDLE_LOOKS_PER_S + len(TOPICS)
        assert it.asked("POST", "") == it.asked("DELETE", "") == 0


async def test_a_quiet_topic_wakes_seldom_until_it_publishes(virtual_time: None) -> None:
    async with line() as it, hub_node(it) as node, AsyncExitStack() as stack:
        (transport,) = await opened(stack, it, node, TOPICS[:1])
        woken_s: list[float] = []

        async def receive() -> None:
            while True:
                await transport.receive()
                woken_s.append(anyio.current_time())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            await anyio.sleep(5 * QUIET_S)
            assert len(woken_s) <= 6
            own = transport.envelope(b"own", timestamp_ns=now_ns(), ephemeral=False)
            await transport.publish(own)
            woken_s.clear()
            await anyio.sleep(MAX_SHARD_IDLE_S)
            assert woken_s
            woken_s.clear()
            transport.renew()
            await anyio.sleep(MAX_SHARD_IDLE_S)
            assert woken_s
            tasks.cancel_scope.cancel()


async def test_a_message_after_silence_comes_soon(virtual_time: None) -> None:
    async with line() as it, hub_node(it) as node, AsyncExitStack() as stack:
        transports = await opened(stack, it, node, TOPICS)
        await anyio.sleep(60)
        there(it, TOPICS[7], b"after all")
        begun_s = anyio.current_time()
        assert await payload(transports[7]) == b"after all"
        assert anyio.current_time() - begun_s <= MAX_IDLE_S


async def test_subscriptions_end_together(mode: Behaviour | None) -> None:
    async with line() as it:
        async with hub_node(it) as node, AsyncExitStack() as stack:
            await opened(stack, it, node, TOPICS)
        # nwaku would leave the shard for all its clients.
        assert it.asked("DELETE", "/relay/v1/auto/subscriptions") == (mode != "nwaku")


async def test_a_topic_that_opens_again_keeps_its_subscription() -> None:
    async with line() as it, hub_node(it) as node, AsyncExitStack() as stack:
        for _ in range(3):
            (transport,) = await opened(stack, it, node, TOPICS[:1])
            await transport.aclose()
        (transport,) = await opened(stack, it, node, TOPICS[:1])
        await anyio.wait_all_tasks_blocked()
        there(it, TOPICS[0], b"here")
        assert await payload(transport) == b"here"


async def test_a_burst_of_own_messages_leaves_no_gap() -> None:
    async with line() as it, hub_node(it) as node, AsyncExitStack() as stack:
        transports = await opened(stack, it, node, TOPICS)
        gaps: list[str] = []

        async def listen(transport: WakuTransport) -> None:
            heard = 0
            while heard < 5:
                batch = await transport.receive()
                heard += len(batch.messages)
                gaps.extend(filter(None, [batch.gap]))

        async with anyio.create_task_group() as tasks:
            for transport in transports:
                tasks.start_soon(listen, transport)
            for number in range(5):
                for transport in transports:
                    envelope = transport.envelope(
                        bytes([number]), timestamp_ns=now_ns(), ephemeral=False
                    )
                    await transport.publish(envelope)
        assert gaps == []


async def test_a_topic_that_the_node_forgot_is_subscribed_again(virtual_time: None) -> None:
    async with line() as it, hub_node(it) as node, AsyncExitStack() as stack:
        transports = await opened(stack, it, node, TOPICS)
        listening = await listeners(stack, transports)
        await node.client.relay_auto_unsubscribe([TOPICS[3]])
        await until(lambda: "forgotten" in listening(3), 120)
        there(it, TOPICS[3], b"again")
        await until(lambda: "again" in listening(3), 120)


async def test_a_node_that_restarts_is_one_failure_of_each_topic(virtual_time: None) -> None:
    async with joined(2) as (it, other), hub_node(it) as node, AsyncExitStack() as stack:
        transports = await opened(stack, it, node, TOPICS)
        listening = await listeners(stack, transports)
        it.connect(None)
        await until(lambda: all("nobody" in listening(n) for n in range(len(TOPICS))), 60)
        it.connect(other.node)
        await until(lambda: all("forgotten" in listening(n) for n in range(len(TOPICS))), 60)
        for topic in TOPICS:
            there(it, topic, b"after the restart")
        await until(lambda: all("after" in listening(n) for n in range(len(TOPICS))), 60)


async def test_only_looks_try_to_connect_to_a_node_that_is_away(virtual_time: None) -> None:
    async with line() as it, hub_node(it) as node, AsyncExitStack() as stack:
        transports = await opened(stack, it, node, TOPICS)
        here = it.node
        it.connect(None)
        await anyio.sleep(5)
        it.forget()
        for transport in transports:
            with pytest.raises(TransportError, match="nobody listens") as refused:
                await transport.publish(
                    transport.envelope(b"own", timestamp_ns=now_ns(), ephemeral=False)
                )
            assert refused.value.retryable
        assert it.asked("POST", "") == 0
        it.connect(here)
        await anyio.sleep(5)
        for transport in transports:
            await transport.publish(
                transport.envelope(b"own", timestamp_ns=now_ns(), ephemeral=False)
            )


async def test_beside_another_program_each_topic_is_read_by_itself(virtual_time: None) -> None:
    foreign = "/app/1/another/proto"  # shards are by application
    async with line() as it, hub_node(it) as node, AsyncExitStack() as stack:
        transports = await opened(stack, it, node, TOPICS)
        # On nwaku all programs share a cache; our node keeps them apart by their ids.
        other = WakuClient("http://node", app=it, client_id="ours")
        await other.relay_auto_subscribe([foreign])
        for number in range(3):
            there(it, foreign, b"of another program %d" % number)
            await anyio.sleep(20)
        it.forget()
        await anyio.sleep(20)
        assert not it.asked("GET", "/relay/v1/messages/")
        assert it.asked("GET", "/relay/v1/auto/messages/")
        there(it, TOPICS[0], b"still heard")
        assert await payload(transports[0]) == b"still heard"


async def test_a_node_that_ends_no_subscription_is_read_all_the_same(
    virtual_time: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with line() as it, hub_node(it) as node, AsyncExitStack() as stack:

        async def hangs(topics: object) -> None:
            await anyio.sleep_forever()

        monkeypatch.setattr(node.client, "relay_auto_unsubscribe", hangs)
        left, kept = await opened(stack, it, node, TOPICS[:2])
        await left.aclose()
        await anyio.sleep(UNSUBSCRIBES_EVERY_S + 1)
        there(it, TOPICS[1], b"heard")
        assert await payload(kept) == b"heard"
        begun_s = anyio.current_time()
        (again,) = await opened(stack, it, node, TOPICS[:1])
        assert anyio.current_time() - begun_s <= UNSUBSCRIBE_LIMIT_S
        there(it, TOPICS[0], b"heard again")
        assert await payload(again) == b"heard again"


async def test_a_topic_that_closes_while_it_opens_again_stays_subscribed(
    virtual_time: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with line() as it, hub_node(it) as node, AsyncExitStack() as stack:
        (before,) = await opened(stack, it, node, TOPICS[:1])
        join = node.join

        async def late(*arguments: Any) -> TopicReader:
            await before.aclose()
            return await join(*arguments)

        monkeypatch.setattr(node, "join", late)
        (again,) = await opened(stack, it, node, TOPICS[:1])
        await anyio.sleep(3 * UNSUBSCRIBES_EVERY_S)
        there(it, TOPICS[0], b"here")
        assert await payload(again) == b"here"
        assert it.asked("DELETE", "") == 0


@pytest.mark.parametrize("messages", [1, *slow(5)])
async def test_a_shard_is_read_each_second_beside_many_topics(
    messages: int, virtual_time: None
) -> None:
    async with line() as it, hub_node(it) as node, AsyncExitStack() as stack:
        (whole,) = await opened(stack, it, node, ["/app/1/whole/proto"], pubsub_topic=STATIC_SHARD)
        topics = [f"/app/1/filtered-{number}/proto" for number in range(50)]
        await opened(stack, it, node, topics, service="light")
        for _ in range(messages):
            await anyio.sleep(33)
            there(it, "/app/1/whole/proto", b"after all", STATIC_SHARD)
            begun_s = anyio.current_time()
            assert await payload(whole) == b"after all"
            assert anyio.current_time() - begun_s <= MAX_SHARD_IDLE_S


async def test_an_overflow_is_a_gap_of_its_lane_alone(virtual_time: None) -> None:
    busy, quiet = TOPICS[0], "/another/1/quiet/proto"
    assert pubsub_topic_for(busy) != pubsub_topic_for(quiet)
    async with line() as it, hub_node(it) as node, AsyncExitStack() as stack:
        listening = await listeners(stack, await opened(stack, it, node, [busy, quiet]))
        await anyio.sleep(60)
        for number in range(CACHE_CAPACITY + 10):
            there(it, busy, b"%d" % number)
        await until(lambda: "the cache held" in listening(0), 60)
        there(it, quiet, b"heard")
        await until(lambda: "heard" in listening(1), 60)
        assert "the cache held" not in listening(1)


async def test_one_look_without_an_answer_is_a_gap_and_two_are_a_failure(
    virtual_time: None,
) -> None:
    async with line() as it, hub_node(it) as node, AsyncExitStack() as stack:
        listening = await listeners(stack, await opened(stack, it, node, TOPICS))

        def anywhere(text: str) -> bool:
            return any(text in listening(number) for number in range(len(TOPICS)))

        await anyio.sleep(30)
        it.disturbance = failing(httpx.ReadTimeout("busy"), path="/relay/v1/", times=1)
        await until(lambda: anywhere("busy"), 60)
        assert not anywhere("failed: ")
        it.disturbance = failing(httpx.ReadTimeout("away"), path="/relay/v1/", times=2)
        await until(lambda: anywhere("failed: "), 60)


async def test_own_messages_that_come_back_keep_no_lane_busy(virtual_time: None) -> None:
    async with line() as it, hub_node(it) as node, AsyncExitStack() as stack:
        transports = await opened(stack, it, node, TOPICS[:3])
        await listeners(stack, transports)
        await anyio.sleep(30)
        it.forget()
        for number in range(60):
            way = transports[number % 3]
            await way.publish(way.envelope(b"own", timestamp_ns=now_ns(), ephemeral=True))
            await anyio.sleep(1)
        assert it.asked("GET", "/relay/v1/") <= 60 * IDLE_LOOKS_PER_S * 1.1


@pytest.mark.parametrize("mode", ["nwaku"], indirect=True)
async def test_the_topics_of_a_deaf_shard_are_revived_once(virtual_time: None) -> None:
    async with joined(2) as (it, _), hub_node(it) as node, AsyncExitStack() as stack:
        transports = await opened(stack, it, node, TOPICS)
        listening = await listeners(stack, transports)
        other = WakuClient("http://node", app=it)
        await other.relay_auto_subscribe(["/app/1/another/proto"])
        await other.relay_auto_unsubscribe(["/app/1/another/proto"])  # nwaku leaves the shard
        it.forget()
        for _ in range(2):
            for way in transports:
                await way.publish(way.envelope(b"own", timestamp_ns=now_ns(), ephemeral=False))
            await anyio.sleep(1)
        await until(lambda: all("deaf" in listening(n) for n in range(len(TOPICS))), 120)
        await anyio.sleep(60)
        assert it.asked("DELETE", "/relay") == 1
        for topic in TOPICS:
            there(it, topic, b"heard")
        await until(lambda: all("heard" in listening(n) for n in range(len(TOPICS))), 60)


async def listeners(stack: AsyncExitStack, transports: list[WakuTransport]) -> Callable[[int], str]:
    """Receive at each transport as a pool does; return what one brought so far."""
    heard = ["" for _ in transports]
    tasks = await stack.enter_async_context(anyio.create_task_group())
    stack.callback(tasks.cancel_scope.cancel)

    async def listen(number: int, transport: WakuTransport) -> None:
        while True:
            try:
                batch = await transport.receive()
            except TransportError as error:
                heard[number] += f"failed: {error}"
                await anyio.sleep(1)
            else:
                heard[number] += batch.gap + "".join(m.payload.decode() for m in batch.messages)

    for number, transport in enumerate(transports):
        tasks.start_soon(listen, number, transport)
    return heard.__getitem__


async def until(condition: Callable[[], bool], within_s: float) -> None:
    """Look each virtual second."""
    with anyio.fail_after(within_s):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(1)
