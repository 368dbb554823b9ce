"""nim-sds as a peer: `python -m reliable_channel_conformance.libsds --library libsds.so …`."""

import argparse
import json
import sys
import time
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import anyio

from waku import WakuClient
from waku.errors import WakuError

from .library import Library, LibraryRefused
from .participant import Participant

PROGRAM: Final = "reliable_channel_conformance.libsds"
TICK_S: Final = 0.05


def main(arguments: Sequence[str] | None = None) -> None:
    """Take part until `stop`, or the end of standard input."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description=__doc__)
    parser.add_argument(
        "--library", required=True, type=Path, help="Path of libsds.so, the library of nim-sds."
    )
    for name in ("node", "channel-id", "sender-id", "content-topic"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--retry-interval-ms", type=int, default=5_000)
    parser.add_argument("--retrieve-frequency-ms", type=int, default=10_000)
    given, _ = parser.parse_known_args(arguments)  # it has nothing for the other periods
    anyio.run(_run, given)


async def _run(given: argparse.Namespace) -> None:
    library = Library(given.library)
    try:
        async with WakuClient(given.node) as node, anyio.create_task_group() as tasks:
            participant = Participant(
                library,
                node,
                given.content_topic,
                given.channel_id,
                given.sender_id,
                given.retry_interval_ms,
                given.retrieve_frequency_ms,
            )
            await participant.start()
            _write({"event": "ready", "sender_id": given.sender_id})
            tasks.start_soon(_live, participant)
            await _obey(participant, tasks.cancel_scope)
    finally:
        library.close()
    _write({"event": "stopped"})


async def _live(participant: Participant) -> None:
    while True:
        try:
            await participant.step()
        except WakuError as error:
            participant.lines.append({"event": "transport_degraded", "reason": str(error)})
        lines, participant.lines = participant.lines, []
        for line in lines:
            _write(line)
        await anyio.sleep(TICK_S)


async def _obey(participant: Participant, scope: anyio.CancelScope) -> None:
    async for text in anyio.wrap_file(sys.stdin):
        command = json.loads(text)
        if command["op"] == "stop":
            break
        _write({**await _answer(participant, command), "ref": command.get("ref")})
    scope.cancel()


async def _answer(participant: Participant, command: dict[str, Any]) -> dict[str, Any]:
    match command["op"]:
        case "send":
            try:
                message_id = await participant.send(b64decode(command["payload"]))
            except LibraryRefused as error:
                return {"event": "error", "reason": str(error)}
            return {"event": "accepted", "message_id": message_id}
        case "log":
            return {"event": "log", "entries": participant.entries}
        case "statistics":
            return {"event": "statistics"}
        case unknown:
            return {"event": "error", "reason": f"unknown op {unknown}"}


def _write(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"at_ms": time.time_ns() // 1_000_000, **line}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
