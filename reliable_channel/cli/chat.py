"""`reliable-channel chat`: type and read in a terminal."""

import sys
import time
from contextlib import suppress

import anyio
import typer
from rich.markup import escape

from ..channel import ReliableChannel
from ..errors import SdsError
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
from .channel_flags import ChannelArguments, with_channel_flags
from .console import out, terminal_restored
from .personal import personal_channel

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
        anyio.run(_main, arguments)


async def _main(arguments: ChannelArguments) -> None:
    async with personal_channel(arguments) as channel, anyio.create_task_group() as tasks:
        out.print(
            f"channel [bold]{escape(channel.channel_id)}[/] on {escape(channel.content_topic)}, "
            f"you are [bold]{escape(channel.sender_id)}[/]; Ctrl-D leaves"
        )
        for entry in channel.log(last=EARLIER):
            clock = time.strftime("%H:%M", time.localtime(entry.lamport_timestamp / 1000))
            text = escape(entry.content.decode(errors="replace"))
            out.print(f"[dim]{clock} {escape(entry.sender_id)} {text}[/]")
        texts: dict[str, str] = {}
        tasks.start_soon(_show_events, channel, texts)
        await _read_lines(channel, texts)
        tasks.cancel_scope.cancel()


async def _read_lines(channel: ReliableChannel, texts: dict[str, str]) -> None:
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
        except SdsError as error:
            _print_above(f"[red]not sent: {escape(str(error))}[/]")
        else:
            texts[request.message_id] = line


async def _show_events(channel: ReliableChannel, texts: dict[str, str]) -> None:
    async for event in channel.events():
        if line := _line(event, texts):
            _print_above(line)


def _line(event: Event, texts: dict[str, str]) -> str | None:
    match event:
        case MessageReceived(sender_id=sender, content=content, missing=missing):
            colour = COLOURS[sum(sender.encode()) % len(COLOURS)]
            gap = f" [dim]({len(missing)} earlier message(s) lost)[/]" if missing else ""
            text = escape(content.decode(errors="replace"))
            return f"[dim]{time.strftime('%H:%M')}[/] [{colour}]{escape(sender)}[/] {text}{gap}"
        case MessageAcknowledged(message_id=message_id, acknowledged_by=by):
            return f"[dim]✓ {escape(by)} has: {escape(texts.pop(message_id, ''))}[/]"
        case SendFailed(reason=reason) | DeliveryFailed(reason=reason):
            return f"[red]✗ {escape(texts.pop(event.message_id, ''))}: {escape(reason)}[/]"
        case MessageLost(sender_id=lost_sender):
            return f"[red]a message of {escape(lost_sender or 'somebody')} is lost[/]"
        case StateDegraded(reason=reason):
            return f"[yellow]this chat is kept in memory alone: {escape(reason)}[/]"
        case TransportDegraded(component=component, reason=reason):
            return f"[yellow]{component} does not work: {escape(reason)}[/]"
        case TransportRecovered(component=component):
            return f"[green]{component} works again[/]"
    return None


def _print_above(line: str) -> None:
    """Print without tearing the line that is being typed."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        out.print(line)
        return
    typed = ""
    with suppress(ImportError):
        import readline

        typed = readline.get_line_buffer()
    sys.stdout.write("\r\x1b[K")
    out.print(line)
    sys.stdout.write(PROMPT + typed)
    sys.stdout.flush()
