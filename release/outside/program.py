"""A program of a user, type-checked strictly against the installed wheels, and run."""

from collections.abc import Sequence
from typing import assert_type

import waku
from reliable_channel import (
    BlockingReliableChannel,
    LogEntry,
    MessageAcknowledged,
    MessageReceived,
    ReliableChannel,
    Request,
    run,
)
from reliable_channel.events import AnyEvent
from reliable_channel.options import ChannelOptions


async def main() -> None:
    options = ChannelOptions(retry_interval_ms=2_000)
    async with (
        ReliableChannel("memory://outside", channel_id="c", sender_id="alice") as alice,
        ReliableChannel(
            "memory://outside", channel_id="c", sender_id="bob", options=options
        ) as bob,
    ):
        request = await alice.send(b"hello")
        assert_type(request, Request)
        async for event in bob.events():
            assert_type(event, AnyEvent)
            match event:
                case MessageReceived(sender_id=sender, content=content):
                    print(f"{sender}: {content.decode()}")
                    break
                case MessageAcknowledged():
                    pass
                case _:
                    pass
        assert_type(bob.log(), Sequence[LogEntry])


def blocking() -> None:
    with BlockingReliableChannel("memory://outside", channel_id="d", sender_id="carol") as carol:
        carol.send(b"hello")
        print(f"log of carol: {len(carol.log())} message")


run(main)
blocking()
message = waku.WakuMessage(b"hello", "/my-app/1/chat/proto", timestamp=1)
print(f"{len(waku.message_hash('/waku/2/rs/1/0', message))} bytes of message hash")
