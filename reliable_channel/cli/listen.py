"""Command `reliable-channel listen`, which prints the messages of a channel."""

import json
import time
from typing import Annotated

import typer
from rich.text import Text

from .._program import run
from .._terminal_text import printable, printable_name
from ..events import MessageReceived, record
from .channel_flags import ChannelArguments, with_channel_flags
from .console import show
from .personal import personal_channel


def register(app: typer.Typer) -> None:
    app.command()(with_channel_flags(listen))


def listen(
    arguments: ChannelArguments,
    as_json: Annotated[
        bool, typer.Option("--json", help="Every event as a JSON line, not only messages.")
    ] = False,
    count: Annotated[int, typer.Option(min=0, help="Stop after so many messages (0: never).")] = 0,
) -> None:
    """Print the messages of a channel in causal order as they are delivered, one a line.

    Control characters, newlines and bidirectional overrides are printed as escapes. With `--json`,
    the output has every byte. The command closes the channel in good order at SIGTERM.
    """

    async def main() -> None:
        seen = 0
        async with personal_channel(arguments) as channel:
            async for event in channel.events():
                received = isinstance(event, MessageReceived)
                if as_json:
                    at_ms = time.time_ns() // 1_000_000
                    typer.echo(json.dumps(record(event, at_ms)))
                elif isinstance(event, MessageReceived):
                    text = printable(event.content.decode(errors="replace"))
                    show(Text(f"{printable_name(event.sender_id)}: {text}"))
                seen += received
                if count and seen >= count:
                    return

    run(main)
