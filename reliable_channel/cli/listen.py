"""`reliable-channel listen`: what is said in a channel, on standard output."""

import json
import time
from typing import Annotated

import anyio
import typer

from ..events import MessageReceived, record
from .channel_flags import ChannelArguments, with_channel_flags
from .personal import personal_channel


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(with_channel_flags(listen))


def listen(
    arguments: ChannelArguments,
    as_json: Annotated[
        bool, typer.Option("--json", help="Every event as a JSON line, not only messages.")
    ] = False,
    count: Annotated[
        int, typer.Option(min=0, help="Stop after so many messages; 0 for never.")
    ] = 0,
) -> None:
    """Print the messages of a channel in causal order as they are delivered."""

    async def main() -> None:
        seen = 0
        async with personal_channel(arguments) as channel:
            async for event in channel.events():
                received = isinstance(event, MessageReceived)
                if as_json:
                    at_ms = time.time_ns() // 1_000_000
                    typer.echo(json.dumps(record(event, at_ms)))
                elif isinstance(event, MessageReceived):
                    typer.echo(f"{event.sender_id}: {event.content.decode(errors='replace')}")
                seen += received
                if count and seen >= count:
                    return

    anyio.run(main)
