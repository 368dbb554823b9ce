"""From a channel's arguments to a transport."""

from contextlib import AsyncExitStack
from typing import Any

import pytest

from reliable_channel import ChannelUnavailable, MessageSent, ReliableChannel
from reliable_channel.transport.connect import (
    WakuSettings,
    checked_address,
    checked_addresses,
    connect,
    default_content_topic,
)
from tests.channel.world import listening
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


@pytest.mark.parametrize("wrong", ["", "localhost:8645", "ftp://x", "http://", "http:///x", 5])
def test_what_is_no_address_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^node is .*; allowed is an http or https address"):
        checked_address(wrong)


async def test_an_address_makes_a_transport_to_it() -> None:
    async with AsyncExitStack() as stack:
        settings = WakuSettings(default_content_topic("general"))
        transport = await connect(["http://127.0.0.1:9"], settings, stack)
        assert [node.address for node in transport.nodes()] == ["http://127.0.0.1:9"]
        await transport.aclose()


async def test_several_addresses_make_a_pool_and_each_counts_once() -> None:
    addresses = checked_addresses(["http://a", "http://b", "http://a"])
    assert addresses == ("http://a", "http://b")
    async with AsyncExitStack() as stack:
        settings = WakuSettings(default_content_topic("general"))
        transport = await connect(addresses, settings, stack)
        assert [node.address for node in transport.nodes()] == ["http://a", "http://b"]
        await transport.aclose()


def test_a_list_of_addresses_has_one_at_least_and_nothing_else() -> None:
    with pytest.raises(ValueError, match=r"^node is an empty list"):
        checked_addresses([])
    with pytest.raises(ValueError, match=r"^node is 'b'; allowed is an http"):
        checked_addresses(["http://a", "b"])


async def test_without_an_address_the_channel_brings_a_node_of_its_own() -> None:
    channel = ReliableChannel(channel_id="general", sender_id="alice")
    async with listening(channel) as told:
        await channel.send(b"hello")
        await told.first(MessageSent)
        assert channel.statistics().transport.published == 1


async def test_a_node_that_nobody_serves_is_named_when_opening_fails(virtual_time: None) -> None:
    channel = ReliableChannel("http://127.0.0.1:9", channel_id="general", sender_id="alice")
    with pytest.raises(ChannelUnavailable, match=r"'general' cannot be opened.*relay.*subscribe"):
        await channel.open()
