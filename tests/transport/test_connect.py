"""From a channel's arguments to a transport."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskStatus

from reliable_channel import ChannelHub, ChannelUnavailable, MessageReceived, ReliableChannel
from reliable_channel.errors import ContentTooLong
from reliable_channel.transport import WakuSettings
from reliable_channel.transport.addresses import (
    checked_address,
    checked_addresses,
    default_content_topic,
)
from reliable_channel.transport.connect import waku_transport
from reliable_channel.transport.memory import named_transport
from reliable_channel.transport.multicast import MulticastTransport
from waku.node import EmbeddedNode, Listen, NodeOptions, serve_node
from waku.topics import ContentTopic

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("channel_id", "name"),
    [("general", "general"), ("a b/c", "a-b-c"), ("größe", "gr--e"), ("v1.2_x", "v1.2_x")],
)
def test_a_channel_id_makes_a_content_topic_of_waku_s_shape(channel_id: str, name: str) -> None:
    topic = default_content_topic(channel_id)
    assert topic == f"/reliable-channel/1/{name}/proto"
    assert ContentTopic.parse(topic).application == "reliable-channel"


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:8645", "https://node.example/waku/", "http://[::1]:8645"]
)
def test_an_address_is_taken_as_it_is(address: str) -> None:
    assert checked_address(address) == address


@pytest.mark.parametrize("wrong", ["", "localhost:8645", "127.0.0.1", "http://", "//x", " ", 5])
def test_what_is_no_address_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^`node` must be an http or https address"):
        checked_address(wrong)


@pytest.mark.parametrize("wrong", ["http:///x", "waku+https://?a", "ftp://x", "waku://x"])
def test_an_address_that_no_transport_takes_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"^`node` must be (an http or https a|a URL of one)"):
        ReliableChannel(wrong, channel_id="general", sender_id="alice")


def test_an_address_makes_a_transport_to_it() -> None:
    settings = WakuSettings(default_content_topic("general"))
    for address in ("http://127.0.0.1:9", "waku+http://127.0.0.1:9"):
        assert waku_transport(address, settings).url == "http://127.0.0.1:9"
    group = MulticastTransport("udp+multicast://239.1.2.3:5007", settings)
    assert group.group.destination == ("239.1.2.3", 5007)


@pytest.mark.parametrize("wrong", ["///here", "//here/there", "//here?x=1", "//here#x", "//here#"])
def test_a_network_in_memory_has_a_name_alone(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"^`node` must be memory://name \(got"):
        named_transport(f"memory:{wrong}", WakuSettings(default_content_topic("general")))


async def test_a_network_in_memory_is_shared_by_name_and_gone_with_the_last() -> None:
    settings = WakuSettings(default_content_topic("general"))
    here, there = (named_transport("memory://here", settings) for _ in range(2))
    await here.open()
    envelope = here.envelope(b"hello", timestamp_ns=1, ephemeral=False)
    await here.publish(envelope)
    assert [m.payload for m in await there.by_hash([envelope.message_hash])] == [b"hello"]
    await here.aclose()
    del here, there
    again = named_transport("memory://here", settings)
    assert await again.by_hash([envelope.message_hash]) == []


def test_several_addresses_make_a_pool_and_each_counts_once() -> None:
    assert checked_addresses(["http://a", "http://b", "http://a"]) == ("http://a", "http://b")


def test_a_list_of_addresses_has_one_at_least_and_nothing_else() -> None:
    with pytest.raises(ValueError, match=r"^`node` must be at least one address"):
        checked_addresses([])
    with pytest.raises(ValueError, match=r"^`node` must be an http.* \(got 'b'\)"):
        checked_addresses(["http://a", "b"])
    with pytest.raises(ValueError, match=r"^`node` of a hub must be .* \(got 'memory://x'"):
        ChannelHub(["http://a", "memory://x"])


async def test_a_node_that_nobody_serves_is_named_when_opening_fails(virtual_time: None) -> None:
    channel = ReliableChannel("http://127.0.0.1:9", channel_id="general", sender_id="alice")
    with pytest.raises(ChannelUnavailable, match=r"'general' cannot be opened.*relay.*subscribe"):
        await channel.open()


# -- limits of a network ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message_bytes", "segment_bytes"),
    [
        ({}, 148_976, 102_400),
        ({"network": "logos.test"}, 148_976, 102_400),
        ({"network": "status.prod"}, 1_022_976, 699_050),
        ({"network": "status.prod", "max_message_bytes": 148_976}, 148_976, 699_050),
        ({"network": "status.prod", "segment_size_bytes": 102_400}, 1_022_976, 102_400),
    ],
)
def test_a_message_is_as_long_as_its_network_takes(
    given: dict[str, Any], message_bytes: int, segment_bytes: int
) -> None:
    channel = ReliableChannel("http://127.0.0.1:9", channel_id="c", sender_id="alice", **given)
    assert channel.options.max_message_bytes == message_bytes
    assert channel.options.segment_size_bytes == segment_bytes


async def test_a_hub_gives_its_channels_the_limits_of_its_network() -> None:
    hub = ChannelHub("http://127.0.0.1:9", network="status.prod")
    channel = hub.channel(channel_id="c", sender_id="alice")
    assert channel.options.max_message_bytes == 1_022_976
    other = hub.channel(channel_id="c", sender_id="bob", network="logos.test")
    assert other.options.max_message_bytes == 148_976


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the server's
async def test_long_messages_travel_through_a_hub_and_a_messaging_layer(tmp_path: Path) -> None:
    """On a network of 1 MiB that shards by content topic, as a messaging layer needs it."""
    network = tmp_path / "wide.toml"
    network.write_text(
        "cluster_id = 42\nnum_shards = 8\nmax_message_bytes = 1_048_576\nrln = false\n"
    )
    options = NodeOptions.of_network(str(network), messaging=True)
    names: dict[str, Any] = {"channel_id": "c", "network": str(network)}
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(EmbeddedNode(options)) for _ in range(2)]
        nodes[0].join(nodes[1])
        one, other = [await _served(node, stack) for node in nodes]
        hub = await stack.enter_async_context(
            ChannelHub(one.replace("http", "waku+messaging"), network=str(network))
        )
        alice = await stack.enter_async_context(hub.channel(channel_id="c", sender_id="alice"))
        bob = await stack.enter_async_context(ReliableChannel(other, sender_id="bob", **names))
        await alice.send(bytes(900_000))
        async for event in bob.events():
            if isinstance(event, MessageReceived):
                assert event.content == bytes(900_000)
                break


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # the server's
@pytest.mark.parametrize("way", ["rest", "libp2p"])
@pytest.mark.parametrize("profile", ["spec", "nim"])
async def test_long_messages_travel_on_a_network_that_takes_them(way: str, profile: str) -> None:
    """900 kB in one message, and 1.5 MB in three segments where the dialect has them."""
    payloads = [bytes(900_000)] if profile == "spec" else [b"a" * 690_000, b"b" * 1_500_000]
    names: dict[str, Any] = {"channel_id": "c", "network": "status.prod", "wire_profile": profile}
    async with AsyncExitStack() as stack:
        listen = Listen(("/ip4/127.0.0.1/tcp/0",)) if way == "libp2p" else None
        node = await stack.enter_async_context(
            EmbeddedNode(NodeOptions.of_network("status.prod"), listen=listen)
        )
        address = node.libp2p_addresses[0] if way == "libp2p" else await _served(node, stack)
        alice, bob = [
            await stack.enter_async_context(ReliableChannel(address, sender_id=name, **names))
            for name in ("alice", "bob")
        ]
        for payload in payloads:
            await alice.send(payload)
        received = []
        async for event in bob.events():
            if isinstance(event, MessageReceived):
                received.append(event.content)
            if len(received) == len(payloads):
                break
        assert received == payloads


async def test_a_message_beyond_the_default_is_refused_where_no_network_is_named() -> None:
    async with ReliableChannel(channel_id="c", sender_id="alice") as channel:
        with pytest.raises(ContentTooLong, match="max_message_bytes is 148976"):
            await channel.send(bytes(200_000))


async def _served(node: EmbeddedNode, stack: AsyncExitStack) -> str:
    tasks = await stack.enter_async_context(anyio.create_task_group())
    stack.callback(tasks.cancel_scope.cancel)

    async def serve(*, task_status: TaskStatus[str]) -> None:
        await serve_node(node, port=0, started=task_status.started)

    return str(await tasks.start(serve))
