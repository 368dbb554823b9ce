"""A content topic read by no participant, from a real node over REST and over libp2p."""

from functools import partial
from time import time_ns

import anyio
import pytest

from reliable_channel._topic_reader import topic_decryption, topic_transport
from tests.cli.processes import Node
from waku import WakuClient, WakuMessage

TOPIC = "/reliable-channel/1/ops/proto"


async def _read(node: str, publish_to: str) -> tuple[list[bytes], list[bytes]]:
    """What comes live, and then what Store has."""
    transport = topic_transport({"node": [node], "channel_id": "ops"}, "reader")
    live: list[bytes] = []
    stored: list[bytes] = []
    await transport.open()
    try:
        # Over libp2p a subscription may begin after `open`: published again until it is heard.
        async with WakuClient(publish_to) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(_publish, client)
            while not live:
                live += [each.payload for each in (await transport.receive()).messages]
            tasks.cancel_scope.cancel()
        async for page in transport.by_time(1, time_ns()):
            stored += [each.payload for each in page]
    finally:
        await transport.aclose()
    return live, stored


async def _publish(client: WakuClient) -> None:
    number = 0
    while True:
        message = WakuMessage(b"message %d" % number, TOPIC, timestamp=time_ns())
        await client.relay_auto_publish(message)
        number += 1
        await anyio.sleep(1)


@pytest.mark.parametrize("way", ["rest", "native"])
def test_what_passes_and_what_is_stored_is_read(way: str) -> None:
    with Node("--listen", "/ip4/127.0.0.1/tcp/0/ws") as node:
        address = node.address if way == "rest" else node.libp2p_addresses[0]
        live, stored = anyio.run(partial(_read, address, node.address))
    assert live
    assert set(live) <= set(stored)


def test_the_topic_is_that_of_the_channel_unless_given() -> None:
    for given, topic in (
        ({"channel_id": "ops"}, TOPIC),
        ({"channel_id": "ops", "content_topic": "/a/1/b/proto"}, "/a/1/b/proto"),
        ({}, "/reliable-channel/1/general/proto"),
    ):
        transport = topic_transport({"node": "http://127.0.0.1:1"} | given, "reader")
        envelope = transport.envelope(b"", timestamp_ns=1, ephemeral=False)
        other = topic_transport({"node": "http://127.0.0.1:1", "content_topic": topic}, "reader")
        same = other.envelope(b"", timestamp_ns=1, ephemeral=False)
        assert envelope.message_hash == same.message_hash


def test_what_is_no_address_is_said() -> None:
    with pytest.raises(ValueError, match="`node` must be an http or https address"):
        topic_transport({"node": "nowhere"}, "reader")


def test_a_channel_without_encryption_has_no_decryption() -> None:
    assert topic_decryption({"channel_id": "ops"}, "reader") is None
