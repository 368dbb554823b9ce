"""Command `reliable-channel peer`, a participant driven by JSON lines, for test harnesses in any
language.

The commands are `{"op":"send","ref":…,"payload":<base64>}` (with `idempotency_key`, if wanted),
`{"op":"send_ephemeral",…}`, `{"op":"log"}`, `{"op":"statistics"}`, `{"op":"cut_off","value":true}`
and `{"op":"stop"}`. With `--manual-confirm`, the command `{"op":"confirm","message_id":…}` confirms
a handled message. The output has one object an event, from `{"event":"ready"}` to
`{"event":"stopped"}`. Each answer (`accepted`, `log`, `statistics`, `confirmed`, `error`) repeats
the `ref` of its command.
"""

import json
import signal
import sys
import time
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from ..errors import ReliableChannelError
from ..events import MessageReceived, record
from .channel_flags import ChannelArguments, with_channel_flags
from .console import needs_input

if TYPE_CHECKING:
    from ..channel import ReliableChannel


def register(app: typer.Typer) -> None:
    app.command()(with_channel_flags(peer))


def peer(
    arguments: ChannelArguments,
    manual_confirm: Annotated[
        bool,
        typer.Option(
            "--manual-confirm",
            help=(
                "With --state: a message counts as handled after a confirm command, not "
                "after its output."
            ),
        ),
    ] = False,
) -> None:
    """Take part in a channel: commands are JSON lines on standard input, events on standard
    output."""
    needs_input()
    anyio.run(_main, arguments, manual_confirm)


async def _main(arguments: ChannelArguments, manual_confirm: bool) -> None:
    channel = arguments.channel(wait_for_node=True)
    unconfirmed: dict[str, MessageReceived] | None = {} if manual_confirm else None
    # The writer outlives the channel: closing it may emit failures.
    async with anyio.create_task_group() as writing, channel, anyio.create_task_group() as tasks:
        await tasks.start(_stop_on_signal, tasks.cancel_scope)
        _say("ready", channel_id=channel.channel_id, sender_id=channel.sender_id, seed=channel.seed)
        writing.start_soon(write_events, channel, unconfirmed)
        await _obey(channel, {} if unconfirmed is None else unconfirmed)
        tasks.cancel_scope.cancel()
    _say("stopped")


async def _obey(channel: "ReliableChannel", unconfirmed: dict[str, MessageReceived]) -> None:
    while line := await anyio.to_thread.run_sync(sys.stdin.buffer.readline, abandon_on_cancel=True):
        if line.strip() and not await obey_line(channel, line, unconfirmed):
            return


async def obey_line(
    channel: "ReliableChannel", line: bytes, unconfirmed: dict[str, MessageReceived]
) -> bool:
    """Execute the command in one input line, and print the answer. Return False after the command
    `stop`."""
    ref: object = None
    try:
        command = _command(line)
        ref = command.get("ref")
        if command["op"] == "stop":
            return False
        await _perform(channel, command, ref, unconfirmed)
    except KeyError as error:
        _say("error", ref=ref, reason=f"the command lacks {error}")
    except (ValueError, TypeError, ReliableChannelError) as error:
        _say("error", ref=ref, reason=str(error))
    return True


async def _perform(
    channel: "ReliableChannel",
    command: dict[str, Any],
    ref: object,
    unconfirmed: dict[str, MessageReceived],
) -> None:
    match command["op"]:
        case "send":
            request = await channel.send(
                _payload(command), idempotency_key=command.get("idempotency_key")
            )
            _say("accepted", ref=ref, message_id=request.message_id, request_id=request.request_id)
        case "send_ephemeral":
            message_id = await channel.send_ephemeral(_payload(command))
            _say("accepted", ref=ref, message_id=message_id)
        case "log":
            _say("log", ref=ref, digest=channel.log_digest(), entries=_entries(channel))
        case "statistics":
            statistics = asdict(channel.statistics())
            _say("statistics", ref=ref, dropped_incoming=channel.dropped_incoming, **statistics)
        case "confirm":
            message_id = command["message_id"]
            if (event := unconfirmed.pop(message_id, None)) is None:
                raise ValueError(
                    f"no message {message_id!r} waits for its confirmation (--manual-confirm)"
                )
            await channel.confirm(event)
            _say("confirmed", ref=ref, message_id=message_id)
        case "cut_off":
            if not isinstance(command["value"], bool):
                raise ValueError(f"`value` must be true or false (got {command['value']!r})")
            channel.cut_off(command["value"])
            _say("accepted", ref=ref)
        case other:
            raise ValueError(
                f"unknown op {other!r}; known ops are send, send_ephemeral, confirm, log, "
                "statistics, cut_off and stop"
            )


def _command(line: bytes) -> dict[str, Any]:
    try:
        command = json.loads(line, parse_float=_finite, parse_constant=_finite)
    except RecursionError:  # a line of brackets only
        raise ValueError("the JSON of the command is nested too deeply") from None
    if not isinstance(command, dict):
        raise ValueError(f"a command must be a JSON object (got {type(command).__name__})")
    return command


def _finite(text: str) -> float:
    """A number that an answer can repeat: JSON has no other, though Python reads them."""
    if isfinite(number := float(text)):
        return number
    raise ValueError(f"{text} is not a JSON number")


def _payload(command: dict[str, Any]) -> bytes:
    try:
        return b64decode(command["payload"], validate=True)
    except (Base64Error, TypeError) as error:
        raise ValueError(f"`payload` is not base64: {error}") from error


def _entries(channel: "ReliableChannel") -> list[dict[str, object]]:
    return [
        {
            "message_id": entry.message_id,
            "sender_id": entry.sender_id,
            "lamport_timestamp": entry.lamport_timestamp,
            "payload": b64encode(entry.content).decode(),
        }
        for entry in channel.log()
    ]


async def write_events(
    channel: "ReliableChannel", unconfirmed: dict[str, MessageReceived] | None
) -> None:
    """Print each event as a line, and confirm it at once if `unconfirmed` is None."""
    async for event in channel.events(confirm=unconfirmed is None):
        # Written first: what a harness did not read before it ended must be emitted again.
        write(record(event, _now_ms()))
        if unconfirmed is not None and isinstance(event, MessageReceived):
            unconfirmed[event.message_id] = event
        elif unconfirmed is not None:
            await channel.confirm(event)


async def _stop_on_signal(
    scope: anyio.CancelScope,
    *,
    task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        async for _ in signals:
            scope.cancel()
            return


def _say(event: str, **values: object) -> None:
    write({"event": event, "at_ms": _now_ms(), **values})


def write(values: dict[str, object]) -> None:
    """Print a JSON object as one line."""
    sys.stdout.write(json.dumps(values, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
