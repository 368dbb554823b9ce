"""Command `reliable-channel send`, which sends one message."""

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from .._program import run
from .._terminal_text import printable_name
from ..events import DeliveryFailed, MessageAcknowledged, MessageSent, SendFailed
from .channel_flags import ChannelArguments, with_channel_flags
from .console import err, fail, needs_input
from .exit_codes import ExitCode
from .personal import personal_channel

if TYPE_CHECKING:
    from ..channel import ReliableChannel
    from ..conversation import Request

DISPATCH_TIMEOUT_S = 10.0
"""Time (s) in which a node must accept the message."""


def register(app: typer.Typer) -> None:
    app.command()(with_channel_flags(send))


@dataclass
class SendResult:
    """Outcome of sending a message, for `--json` and the exit status."""

    code: ExitCode
    status: str
    """Outcome of the message, out of `sent`, `acknowledged`, `failed`, `not-sent` and
    `not-acknowledged`."""
    detail: str = ""
    """Participant that acknowledged the message, or the reason for a failure."""


def send(
    arguments: ChannelArguments,
    text: Annotated[str, typer.Argument(help="Text of the message. `-` reads standard input.")],
    wait: Annotated[
        float,
        typer.Option(
            min=0,
            help=("Seconds to wait for an acknowledgement after a node accepted it (0: none)."),
        ),
    ] = 0.0,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the id and the outcome as one JSON line."),
    ] = False,
) -> None:
    """Send one message and print its id.

    The exit status is 1 if the message was refused or not acknowledged within --wait. The exit
    status is 3 if no node accepted the message.
    """
    if text == "-":
        needs_input()
    payload = sys.stdin.buffer.read() if text == "-" else text.encode()

    async def main() -> ExitCode:
        async with personal_channel(arguments) as channel:
            request = await channel.send(payload)
            if not as_json:
                typer.echo(request.message_id)
            found = await outcome(channel, request, wait)
        if as_json:
            values = {"message_id": request.message_id, "request_id": request.request_id}
            typer.echo(json.dumps({**values, "status": found.status, "detail": found.detail}))
        elif found.status == "acknowledged":
            by = printable_name(found.detail)
            err.print(f"acknowledged by {by}", style="dim", markup=False)
        elif found.code:
            fail(found.detail)
        return found.code

    code = run(main)
    raise typer.Exit(ExitCode.TERMINATED if code is None else code)


async def outcome(channel: "ReliableChannel", request: "Request", wait_s: float) -> SendResult:
    """Wait until the message is sent, and then up to `wait_s` until it is acknowledged."""
    is_dispatched = False
    with anyio.move_on_after(DISPATCH_TIMEOUT_S) as waiting:
        async for event in channel.events():
            match event:
                case MessageSent(message_id=request.message_id):
                    if not wait_s:
                        return SendResult(ExitCode.DONE, "sent")
                    is_dispatched = True
                    waiting.deadline = anyio.current_time() + wait_s
                case MessageAcknowledged(message_id=request.message_id):
                    return SendResult(ExitCode.DONE, "acknowledged", event.acknowledged_by)
                case (
                    SendFailed(message_id=request.message_id, reason=reason)
                    | DeliveryFailed(message_id=request.message_id, reason=reason)
                ):
                    return SendResult(ExitCode.FAILED, "failed", reason)
    if not is_dispatched:
        return SendResult(ExitCode.NO_NODE, "not-sent", "no node took the message in time")
    late = f"no participant acknowledged the message within {wait_s:g} s; a longer --wait may help"
    return SendResult(ExitCode.FAILED, "not-acknowledged", late)
