"""From a channel's arguments to a transport."""

from typing import Any

import pytest

from reliable_channel import ChannelHub, ChannelUnavailable, ReliableChannel
from reliable_channel.transport import WakuSettings
from reliable_channel.transport.addresses import (
    checked_address,
    checked_addresses,
    default_content_topic,
)
from reliable_channel.transport.connect import waku_transport
from reliable_channel.transport.memory import named_transport
from reliable_channel.transport.multicast import MulticastTransport
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


@pytest.mark.parametrize("wrong", ["memory:///here", "memory://here/there", "memory://here?x=1"])
def test_a_network_in_memory_has_a_name_alone(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"^`node` must be memory://name \(got"):
        named_transport(wrong, WakuSettings(default_content_topic("general")))


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
    with pytest.raises(ValueError, match=r"^`node` must be .* for a hub \(got 'memory://x'"):
        ChannelHub(["http://a", "memory://x"])


async def test_a_node_that_nobody_serves_is_named_when_opening_fails(virtual_time: None) -> None:
    channel = ReliableChannel("http://127.0.0.1:9", channel_id="general", sender_id="alice")
    with pytest.raises(ChannelUnavailable, match=r"'general' cannot be opened.*relay.*subscribe"):
        await channel.open()
