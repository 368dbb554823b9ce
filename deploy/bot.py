"""A bot for systemd or a container: settings from the environment, probes and metrics on port 8080.

The settings are those of `ReliableChannel`: RELIABLE_CHANNEL_NODE, RELIABLE_CHANNEL_CHANNEL_ID and
so on. HEALTH_HOST is the address of the probes, in a container 0.0.0.0.
"""

import os
from functools import partial

import anyio

from reliable_channel import MessageReceived, ReliableChannel, run
from reliable_channel.health_server import serve_health
from reliable_channel_metrics import prometheus_text


async def main() -> None:
    """Answer `!shout`, once for each message, also across restarts."""
    async with (
        ReliableChannel.from_config(sender_id="bot", wait_for_node=True) as channel,
        anyio.create_task_group() as tasks,
    ):
        pages = {"/metrics": prometheus_text}
        host = os.environ.get("HEALTH_HOST", "127.0.0.1")
        await tasks.start(partial(serve_health, channel, host=host, port=8080, pages=pages))
        async for event in channel.events():
            match event:
                case MessageReceived(content=content) if content.startswith(b"!shout "):
                    answer = content.removeprefix(b"!shout ").upper()
                    await channel.send(answer, idempotency_key=event.message_id)


run(main)
