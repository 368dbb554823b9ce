"""`reliable-channel send`: one message from the shell, acknowledged or not."""

import sys
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from ..events import DeliveryFailed, MessageAcknowledged, MessageSent, SendFailed
from ..program import run
from ..terminal_text import printable_name
from .channel_flags import ChannelArguments, with_channel_flags
from .console import err, fail
from .exit_codes import ExitCode
from .personal import personal_channel

if TYPE_CHECKING:
    from ..channel import ReliableChannel, Request

DISPATCH_TIMEOUT_S = 10.0
"""For the node to take the message, where --wait is 0."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(with_channel_flags(send))


def send(
    arguments: ChannelArguments,
    text: Annotated[str, typer.Argument(help="The message; `-` reads standard input.")],
    wait: Annotated[
        float,
        typer.Option(min=0, help="Seconds to wait for an acknowledgement; 0 only dispatches."),
    ] = 0.0,
) -> None:
    """Send one message and print its id.

    The exit status is 1 when it was refused, or not acknowledged within --wait, and 3 when no node
    took it.
    """
    payload = sys.stdin.buffer.read() if text == "-" else text.encode()

    async def main() -> ExitCode:
        async with personal_channel(arguments) as channel:
            request = await channel.send(payload)
            typer.echo(request.message_id)
            return await outcome(channel, request, wait)

    code = run(main)
    raise typer.Exit(ExitCode.TERMINATED if code is None else code)


async def outcome(channel: "ReliableChannel", request: "Request", wait_s: float) -> ExitCode:
    """Wait until the message is dispatched, or acknowledged when there is time for that."""
    is_dispatched = False
    with anyio.move_on_after(wait_s or DISPATCH_TIMEOUT_S):
        async for event in channel.events():
            match event:
                case MessageSent(message_id=request.message_id):
                    is_dispatched = True
                    if not wait_s:
                        return ExitCode.DONE
                case MessageAcknowledged(message_id=request.message_id):
                    by = printable_name(event.acknowledged_by)
                    err.print(f"acknowledged by {by}", style="dim", markup=False)
                    return ExitCode.DONE
                case (
                    SendFailed(message_id=request.message_id, reason=reason)
                    | DeliveryFailed(message_id=request.message_id, reason=reason)
                ):
                    fail(reason)
                    return ExitCode.FAILED
    if not is_dispatched:
        fail("no node took the message in time")
        return ExitCode.NO_NODE
    fail(f"nobody acknowledged the message within {wait_s:g} s; a longer --wait may help")
    return ExitCode.FAILED
