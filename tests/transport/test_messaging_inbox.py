"""`MessagingInbox`: what is taken out of a node reaches each channel, or is known to be missing."""

import anyio
import httpx
import pytest

from reliable_channel.transport.messaging_inbox import (
    TRAY_CAPACITY,
    MessagingInbox,
    Tray,
    shared_inbox,
)
from tests.asgi import app_of
from waku.client import WakuClient
from waku.messaging import MessagingMessage
from waku.models import WakuMessage

pytestmark = pytest.mark.anyio
NODE = "http://node"


def client() -> WakuClient:
    return WakuClient(NODE)


def message(topic: str, number: int) -> MessagingMessage:
    return MessagingMessage(number.to_bytes(32, "big"), WakuMessage(b"%d" % number, topic))


def test_a_tray_that_overflows_says_so() -> None:
    tray = Tray("/a/1/b/proto")
    tray.put([message(tray.content_topic, number) for number in range(TRAY_CAPACITY)])
    assert not tray.gap
    tray.put([message(tray.content_topic, TRAY_CAPACITY)])
    messages, gap = tray.take()
    assert (len(messages), messages[0].message.payload) == (TRAY_CAPACITY, b"1")
    assert "waited for the channel" in gap
    assert tray.take() == ([], "")


def test_an_own_message_reaches_the_other_channels_of_its_topic() -> None:
    inbox = MessagingInbox(WakuClient("http://node"))
    sender, same, other = Tray("/a/1/b/proto"), Tray("/a/1/b/proto"), Tray("/a/1/c/proto")
    for tray in (sender, same, other):
        inbox.add(tray)
    inbox.echo(sender, message("/a/1/b/proto", 1))
    assert [len(tray.messages) for tray in (sender, same, other)] == [0, 1, 0]
    assert not inbox.remove(sender)
    assert inbox.remove(same)


async def test_a_look_that_is_interrupted_is_a_gap_for_all() -> None:
    async def slow(request: httpx.Request) -> httpx.Response:
        await anyio.sleep_forever()
        raise AssertionError

    async with shared_inbox(NODE, lambda: WakuClient(NODE, app=app_of(slow))) as inbox:
        trays = [Tray("/a/1/b/proto"), Tray("/a/1/c/proto")]
        for tray in trays:
            inbox.add(tray)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await inbox.look()
        with anyio.move_on_after(0.01):
            await inbox.look()
        assert [tray.take()[1] for tray in trays] == [
            "a look at the node's messages was interrupted"
        ] * 2


async def test_channels_share_it_until_the_last_one_leaves() -> None:
    async with shared_inbox(NODE, client) as first:
        async with shared_inbox(NODE, client) as second:
            assert first is second
        async with shared_inbox("http://other", client) as other:
            assert other is not first
    async with shared_inbox(NODE, client) as later:
        assert later is not first
