"""`reliable-channel send`: one message from the shell, acknowledged or not."""

import sys
from typing import Annotated

import anyio
import typer

from ..channel import ReliableChannel, Request
from ..events import DeliveryFailed, MessageAcknowledged, MessageSent, SendFailed
from .channel_flags import ChannelArguments, with_channel_flags
from .console import err
from .personal import personal_channel


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
    """Send one message. Exit status 1 when it was refused, or not acknowledged within --wait."""
    payload = sys.stdin.buffer.read() if text == "-" else text.encode()

    async def main() -> bool:
        async with personal_channel(arguments) as channel:
            request = await channel.send(payload)
            typer.echo(request.message_id)
            return await _settled(channel, request, wait)

    if not anyio.run(main):
        raise typer.Exit(1)


async def _settled(channel: ReliableChannel, request: Request, wait_s: float) -> bool:
    """Wait until the message is dispatched, or acknowledged when there is time for that."""
    with anyio.move_on_after(wait_s or 10):
        async for event in channel.events():
            match event:
                case MessageSent(message_id=request.message_id) if not wait_s:
                    return True
                case MessageAcknowledged(message_id=request.message_id):
                    err.print(f"acknowledged by {event.acknowledged_by}", style="dim", markup=False)
                    return True
                case (
                    SendFailed(message_id=request.message_id, reason=reason)
                    | DeliveryFailed(message_id=request.message_id, reason=reason)
                ):
                    err.print(f"failed: {reason}", style="red", markup=False)
                    return False
    err.print("not acknowledged in time" if wait_s else "not dispatched in time", style="red")
    return False
