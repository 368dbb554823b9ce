"""`reliable-channel chat`: type and read in a terminal."""

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import typer
from rich.text import Text

from ..errors import SdsError, StateError
from ..events import (
    DeliveryFailed,
    Event,
    MessageAcknowledged,
    MessageLost,
    MessageReceived,
    SendFailed,
    StateDegraded,
    TransportDegraded,
    TransportRecovered,
)
from ..program import run
from ..terminal_text import printable, printable_name
from .channel_flags import ChannelArguments, with_channel_flags
from .console import out, show, terminal_restored
from .personal import personal_channel

if TYPE_CHECKING:
    from ..channel import ReliableChannel

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "red")
PROMPT = "> "
EARLIER = 10
"""Messages of an earlier session that are shown at the start."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(with_channel_flags(chat))


def chat(arguments: ChannelArguments) -> None:
    """Chat in a terminal. What you type is sent line by line; a tick says that somebody has it."""
    with terminal_restored():
        try:
            run(_main, arguments)
        finally:
            if sys.stdin.isatty() and sys.stdout.isatty():
                print()  # noqa: T201 - the shell's prompt begins a line of its own


async def _main(arguments: ChannelArguments) -> None:
    async with personal_channel(arguments) as channel, anyio.create_task_group() as tasks:
        out.print(
            Text.assemble(
                "channel ",
                (printable(channel.channel_id), "bold"),
                f" on {printable(channel.content_topic)}, you are ",
                (printable_name(channel.sender_id), "bold"),
                "; Ctrl-D leaves",
            ),
            soft_wrap=True,
        )
        for entry in channel.log(last=EARLIER):
            clock = time.strftime("%H:%M", time.localtime(entry.lamport_timestamp / 1000))
            show(Text(f"{clock} {printable_name(entry.sender_id)} {_text(entry.content)}", "dim"))
        texts: dict[str, str] = {}
        tasks.start_soon(_show_events, channel, texts)
        await _read_lines(channel, texts)
        tasks.cancel_scope.cancel()


async def _read_lines(channel: "ReliableChannel", texts: dict[str, str]) -> None:
    with suppress(ImportError):
        import readline  # noqa: F401 - gives `input` its line editing
    prompt = PROMPT if sys.stdin.isatty() else ""
    while True:
        try:
            line = await anyio.to_thread.run_sync(input, prompt, abandon_on_cancel=True)
        except EOFError:
            return
        if not line.strip():
            continue
        try:
            request = await channel.send(line.encode())
        except (SdsError, StateError) as error:
            _print_above(Text(f"not sent: {error}", "red"))
        else:
            texts[request.message_id] = printable(line)


async def _show_events(channel: "ReliableChannel", texts: dict[str, str]) -> None:
    async for event in channel.events():
        if line := _line(event, texts):
            _print_above(line)


def _line(event: Event, texts: dict[str, str]) -> Text | None:
    match event:
        case MessageReceived(sender_id=sender, content=content, missing=missing):
            return Text.assemble(
                (time.strftime("%H:%M"), "dim"),
                " ",
                (printable_name(sender), COLOURS[sum(sender.encode()) % len(COLOURS)]),
                f" {_text(content)}",
                (f" ({len(missing)} earlier message(s) lost)" if missing else "", "dim"),
            )
        case MessageAcknowledged(message_id=message_id, acknowledged_by=by):
            return Text(f"✓ {printable_name(by)} has: {texts.pop(message_id, '')}", "dim")
        case SendFailed(reason=reason) | DeliveryFailed(reason=reason):
            return Text(f"✗ {texts.pop(event.message_id, '')}: {printable(reason)}", "red")
        case MessageLost(sender_id=lost_sender):
            author = printable_name(lost_sender) if lost_sender else "somebody"
            return Text(f"a message of {author} is lost", "red")
        case StateDegraded(reason=reason):
            return Text(f"this chat is kept in memory alone: {printable(reason)}", "yellow")
        case TransportDegraded(component=component, reason=reason):
            return Text(f"{component} does not work: {printable(reason)}", "yellow")
        case TransportRecovered(component=component):
            return Text(f"{component} works again", "green")
    return None


def _text(content: bytes) -> str:
    return printable(content.decode(errors="replace"))


def _print_above(line: Text) -> None:
    """Print without tearing the line that is being typed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        show(line)
        return
    typed = ""
    with suppress(ImportError):
        import readline

        typed = readline.get_line_buffer()
    sys.stdout.write("\r\x1b[K")
    show(line)
    sys.stdout.write(PROMPT + typed)
    sys.stdout.flush()
