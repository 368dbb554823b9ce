"""Processes of the demo, which are a node, and participants that are driven by JSON lines."""

import json
import os
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

PROGRAM: Final = (sys.executable, "-m", "reliable_channel")
REST: Final = "listening on "
LIBP2P: Final = "libp2p peers reach it at "


class DemoError(RuntimeError):
    """A process of the demo has failed. The text of the error names the process and its output."""


class PeerProcess:
    """Participant of the demo in a separate process, with its output."""

    def __init__(self, name: str, process: Process) -> None:
        self.name = name
        self.sent = 0
        self.received = 0
        self.missing: set[str] = set()
        self.cut_off = False
        self.digest = ""
        self.log_length = 0
        self.statistics: dict[str, Any] = {}
        self.process = process
        self._answers = 0
        self._answered = anyio.Event()
        self.ready = anyio.Event()
        self.stopped = anyio.Event()
        self._is_leaving = False

    async def command(self, op: str, **values: object) -> None:
        """Write a command to the process. If the process has ended, `listen` raises an error with
        the reason."""
        assert self.process.stdin is not None
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self.process.stdin.send((json.dumps({"op": op, **values}) + "\n").encode())

    async def say(self, text: str) -> None:
        """Send a message to the channel."""
        self.sent += 1
        await self.command("send", payload=b64encode(text.encode()).decode())

    async def refresh(self) -> None:
        """Ask the participant for its log and statistics, and wait for both."""
        self._answers = 0
        self._answered = anyio.Event()
        await self.command("log")
        await self.command("statistics")
        await self._answered.wait()

    async def stop(self) -> None:
        """Let the participant leave, and wait until it has left."""
        self._is_leaving = True
        await self.command("stop")
        await self.stopped.wait()

    async def listen(self) -> None:
        """Read the output lines of the participant.

        Raises:
            DemoError: its process ended before `stop`.
        """
        assert self.process.stdout is not None
        rest = ""
        async for chunk in TextReceiveStream(self.process.stdout):
            *lines, rest = (rest + chunk).split("\n")
            for line in lines:
                self._take(json.loads(line))
        self.stopped.set()
        if not self._is_leaving:
            raise DemoError(f"{self.name} {await ending(self.process)}")

    def _take(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "ready":
                self.ready.set()
            case "stopped":
                self.stopped.set()
            case "message_received":
                self.received += 1
                self.missing.discard(event["message_id"])
            case "message_missing":
                self.missing.update(entry["message_id"] for entry in event["missing"])
            case "log":
                self.digest, self.log_length = event["digest"], len(event["entries"])
                self._answer()
            case "statistics":
                self.statistics = event
                self._answer()

    def _answer(self) -> None:
        self._answers += 1
        if self._answers == 2:
            self._answered.set()


@asynccontextmanager
async def started(*arguments: str) -> AsyncIterator[Process]:
    """Run this program with `arguments` until the end of the `async with` block."""
    async with await anyio.open_process(
        [*PROGRAM, *arguments], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            with anyio.move_on_after(3, shield=True):
                if process.returncode is None:
                    # `process.terminate` asks for the exit status first. If the process has just
                    # ended, asyncio's watcher then finds none, and logs that.
                    with suppress(ProcessLookupError):
                        os.kill(process.pid, signal.SIGTERM)
                    await process.wait()
            if process.returncode is None:
                process.kill()


async def node_addresses(process: Process) -> tuple[str, str | None]:
    """Wait until the node listens, and return its REST address and its multiaddress (or None).

    Raises:
        DemoError: it ended instead.
    """
    assert process.stdout is not None
    text = ""
    async for chunk in TextReceiveStream(process.stdout):
        text += chunk
        *lines, _ = text.split("\n")
        if lines and lines[-1].startswith(REST):
            multiaddresses = (line.removeprefix(LIBP2P) for line in lines[:-1])
            return lines[-1].removeprefix(REST), next(multiaddresses, None)
    raise DemoError(f"the node {await ending(process)}")


async def ending(process: Process) -> str:
    """Return the exit status of an ended process, and its last output lines."""
    assert process.stderr is not None
    words = "".join([chunk async for chunk in TextReceiveStream(process.stderr)]).strip()
    return f"ended with exit status {await process.wait()}: {words or 'it printed no reason'}"
