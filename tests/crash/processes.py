"""A node and participants in processes of their own, which are killed and started again.

Each life is a process that is forked from one with its libraries loaded: it starts in a fifth of
the CPU time of one that begins with the interpreter, and a killed group has dozens of lives.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.lowlevel
from anyio import to_thread
from anyio.abc import TaskGroup

from tests.cli.forked import Process

CHANNEL: Final = "crash"
QUICK: Final = {
    "sync-min-interval-ms": 1_000,
    "retry-interval-ms": 2_000,
    "possibly-acknowledged-retry-interval-ms": 4_000,
    "max-retry-attempts": 1_000,
    "retrieve-frequency-ms": 500,
    "sweep-in-buf-interval-ms": 500,
    "timeout-for-lost-messages-ms": 1_800_000,
    "repair-t-min-ms": 500,
    "repair-t-max-ms": 2_000,
    "repair-sweep-interval-ms": 500,
    "repair-max-request-attempts": 1_000,
    "causal-history-size": 20,
    "bloom-capacity": 500,
}
"""Periods for a test of minutes, and messages of 4 kB in place of 40."""
SELF_TUNED: Final = {"preset": "auto"} | {
    name: QUICK[name] for name in ("timeout-for-lost-messages-ms", "bloom-capacity")
}
"""All other periods are found by the participants."""
MAX_LINE: Final = 32 * 1024 * 1024
"""Bytes of a line of a participant: a log with long payloads needs a few million."""
LONG: Final = 3_000
"""Bytes of every third message: what the state keeps of those from 2 kB on is another thing."""


class Life:
    """One process, from its start to its end, with pipes that the event loop reads and writes."""

    def __init__(self, *arguments: str) -> None:
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        self._process = Process(*arguments, stdin=pipe, stdout=pipe, stderr=nowhere)
        self._stdout = asyncio.StreamReader(limit=MAX_LINE)
        self._transports: list[asyncio.BaseTransport] = []
        self.pid = self._process.pid
        self.heard = anyio.Event()
        """Set when all that it told was taken."""

    async def connect(self) -> None:
        loop, process = asyncio.get_running_loop(), self._process
        protocol = asyncio.StreamReaderProtocol(self._stdout)
        reading, _ = await loop.connect_read_pipe(lambda: protocol, process.stdout)
        self._stdin, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, process.stdin)
        self._transports += (reading, self._stdin)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()

    async def wait(self) -> None:
        """Wait until it has ended."""
        await to_thread.run_sync(self._process.wait)

    def write(self, line: str) -> None:
        """Write a line to its standard input; nobody reads it where the process has ended."""
        self._stdin.write(f"{line}\n".encode())

    async def read(self) -> str | None:
        """The next line of its standard output; None at the end, where a torn one is left out."""
        line = await self._stdout.readline()
        return line.decode(errors="replace") if line.endswith(b"\n") else None

    def close(self) -> None:
        for transport in self._transports:
            transport.close()


class Killable:
    """A process that is started again in the same place."""

    def __init__(self, *arguments: str, tasks: TaskGroup) -> None:
        self.arguments = arguments
        self._tasks = tasks
        self.process: Life | None = None
        self.lives = 0

    async def start(self) -> None:
        """Start, and listen to what it tells."""
        process = Life(*self.arguments)
        with anyio.CancelScope(shield=True):  # else nobody would know of it, and end it
            await process.connect()
        self.process = process
        self.lives += 1
        self._tasks.start_soon(self._listen, process)

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.is_running

    async def kill(self) -> None:
        """SIGKILL, as the kernel does it when memory runs out. What it told before is taken: heard
        in the next life it would be confirmed before what that life tells."""
        process, self.process = self.process, None
        if process is not None and process.is_running:
            process.kill()
            await process.wait()
            await process.heard.wait()

    async def _listen(self, process: Life) -> None:
        try:
            while (line := await process.read()) is not None:
                self.told(line)
        finally:
            process.close()
            process.heard.set()
        if process is self.process:
            # It ended by itself, as one does that finds no node: a supervisor starts it again.
            await process.wait()
            await anyio.sleep(0.3)
            if process is self.process:
                await self.start()

    def told(self, line: str) -> None:
        """Take a line of its standard output."""


class Node(Killable):
    """An embedded node whose store outlives it."""

    def __init__(self, store: Path, port: int, tasks: TaskGroup) -> None:
        super().__init__("node", "--port", str(port), "--store", str(store), tasks=tasks)
        self.address = f"http://127.0.0.1:{port}"
        self.listens = anyio.Event()

    def told(self, line: str) -> None:
        """Take a line of its standard output."""
        self.listens.set()


class Participant(Killable):
    """A peer whose state outlives it, and what it was asked to send."""

    def __init__(
        self,
        name: str,
        directory: Path,
        address: str,
        tasks: TaskGroup,
        options: Mapping[str, object] = QUICK,
    ) -> None:
        self.name = name
        self.journal = directory / f"{name}.journal"
        flags = [part for flag, value in options.items() for part in (f"--{flag}", str(value))]
        super().__init__(
            *("peer", "--node", address, "--channel", CHANNEL, "--sender", name),
            *("--state", f"sqlite:///{directory}/{name}.db"),
            *("--journal", str(self.journal), "--service", "light", "--manual-confirm", *flags),
            tasks=tasks,
        )
        self.accepted: dict[str, str] = {}
        """Message ids by idempotency key."""
        self.unknown: dict[str, str] = {}
        """What was asked for and not answered yet, by idempotency key."""
        self.handled: list[str] = []
        """Ids of messages that were told and not confirmed yet."""
        self.confirmed: set[str] = set()
        self.owed: set[str] = set()
        """Ids of messages that an earlier life told, and that nobody asked to confirm."""
        self.errors: list[str] = []
        self.log: list[str] | None = None
        """Message ids, once they were asked for and told."""
        self.log_length: int | None = None
        self.asked = 0
        """How many messages."""

    async def start(self) -> None:
        """Start, and ask again for what was not answered in the life before."""
        self.owed.update(self.handled)
        self.handled.clear()
        await super().start()
        for key, text in list(self.unknown.items()):
            await self.ask(key, text)

    async def send(self) -> None:
        """Ask for a message, whether or not the process lives."""
        self.asked += 1
        key = f"{self.name} {self.asked}"
        self.unknown[key] = f"message {key}".ljust(0 if self.asked % 3 else LONG, ".")
        await self.ask(key, self.unknown[key])

    async def confirm(self, count: int) -> None:
        """Confirm the messages that were told longest ago."""
        for _ in range(min(count, len(self.handled))):
            await self._write({"op": "confirm", "message_id": self.handled.pop(0)})

    async def ask_log(self) -> None:
        """Ask for the log; the answer replaces `log`."""
        self.log = None
        await self._write({"op": "log"})

    async def ask_log_length(self) -> None:
        """Ask how long the log is; the answer replaces `log_length`."""
        self.log_length = None
        await self._write({"op": "statistics"})

    def told(self, line: str) -> None:
        """Take a line of its standard output."""
        told = json.loads(line)
        match told["event"]:
            case "accepted":
                key, message_id = told["ref"], told["message_id"]
                if self.accepted.setdefault(key, message_id) != message_id:
                    self.errors.append(f"{key} was accepted as two messages")
                self.unknown.pop(key, None)
            case "message_received":
                message_id = told["message_id"]
                if message_id in self.confirmed:
                    self.errors.append(f"{self.name}: {message_id} was told after its confirmation")
                self.handled.append(message_id)
                self.owed.discard(message_id)
            case "confirmed":
                self.confirmed.add(told["message_id"])
            case "error" | "state_degraded":
                self.errors.append(line)
            case "statistics":
                self.log_length = told["sds"]["log_length"]
            case "log":
                self.log = [entry["message_id"] for entry in told["entries"]]

    async def ask(self, key: str, text: str) -> None:
        payload = b64encode(text.encode()).decode()
        await self._write({"op": "send", "ref": key, "idempotency_key": key, "payload": payload})

    async def _write(self, command: dict[str, Any]) -> None:
        """Give it a command; what dies with the process is asked again in its next life."""
        if self.process is not None:
            self.process.write(json.dumps(command))
            await anyio.lowlevel.checkpoint()
