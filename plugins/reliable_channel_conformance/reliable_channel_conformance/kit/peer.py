"""A peer under test: a process that is driven by the JSON lines of docs/peer.md."""

import json
import subprocess
import time
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

BEAT_S: Final = 0.1
"""Pause between two questions to a peer."""
STOPPING_S: Final = 10
MAX_STDERR: Final = 4_000


class PeerFailed(RuntimeError):
    """The peer ended, or wrote what cannot be read: the text says which and what it printed."""


class Peer:
    """One running peer, and all that it emitted."""

    def __init__(
        self, name: str, process: Process, observer: Callable[[dict[str, Any]], None]
    ) -> None:
        self.name = name
        self.events: list[dict[str, Any]] = []
        self._process = process
        self._observer = observer
        self._answers: dict[object, dict[str, Any]] = {}
        self._next_ref = 0
        self._changed = anyio.Event()
        self._ended: str | None = None
        self._stderr = ""

    # -- commands ---------------------------------------------------------------------------------

    async def command(self, op: str, **values: object) -> dict[str, Any]:
        """Give a command and wait for its answer.

        Raises:
            PeerFailed: the peer ended.
        """
        self._next_ref += 1
        ref = self._next_ref
        await self._write({"op": op, "ref": ref, **values})
        while ref not in self._answers:
            await self._next_change()
        return self._answers.pop(ref)

    async def send(self, payload: bytes) -> str:
        """Have it send a message; its id.

        Raises:
            PeerFailed: it refused, or ended.
        """
        answer = await self.command("send", payload=b64encode(payload).decode())
        if answer["event"] != "accepted":
            raise PeerFailed(f"{self.name} did not accept a message: {answer}")
        return str(answer["message_id"])

    async def log(self) -> list[dict[str, Any]]:
        """Its log, in its order."""
        answer = await self.command("log")
        entries: list[dict[str, Any]] = answer.get("entries", [])
        return entries

    # -- what it emitted --------------------------------------------------------------------------

    def named(self, event: str, **fields: object) -> list[dict[str, Any]]:
        """Its events of a name, with these values."""
        return [
            each
            for each in self.events
            if each.get("event") == event and all(each.get(k) == v for k, v in fields.items())
        ]

    def payloads(self) -> list[bytes]:
        """What its application received, in order."""
        return [b64decode(each["payload"]) for each in self.named("message_received")]

    async def until(self, met: Callable[[], bool], beats: int) -> bool:
        """Wait for a condition, for as long as the peer needs to answer `beats` questions.

        A beat is one question answered, after a pause. A machine that is busy answers later, and
        so is given more time: no clock decides.
        """
        for _ in range(beats):
            if met():
                return True
            await anyio.sleep(BEAT_S)
            await self.log()
        return met()

    # -- the process ------------------------------------------------------------------------------

    async def kill(self) -> None:
        """End the process at once."""
        self._ended = "was killed by the kit"
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Have it leave, or end it where it does not."""
        with suppress(PeerFailed):
            await self._write({"op": "stop"})
        with anyio.move_on_after(STOPPING_S, shield=True):
            await self._process.wait()
        with suppress(ProcessLookupError):
            self._process.kill()

    async def ready(self) -> None:
        """Wait until it is ready.

        Raises:
            PeerFailed: it ended instead.
        """
        while not self.named("ready"):
            await self._next_change()

    async def listen(self) -> None:
        """Read its lines until it ends."""
        assert self._process.stdout is not None
        rest = ""
        async for chunk in TextReceiveStream(self._process.stdout, errors="replace"):
            *lines, rest = (rest + chunk).split("\n")
            for line in lines:
                self._take(line)
        self._ended = self._ended or f"ended with exit status {await self._process.wait()}"
        self._change()

    async def keep_errors(self) -> None:
        """Keep the end of what it writes to standard error."""
        assert self._process.stderr is not None
        async for chunk in TextReceiveStream(self._process.stderr, errors="replace"):
            self._stderr = (self._stderr + chunk)[-MAX_STDERR:]

    def _take(self, line: str) -> None:
        if not line.strip():
            return
        try:
            event = json.loads(line)
            name = event["event"]
        except (ValueError, TypeError, KeyError):
            self._observer({"at_ms": _now_ms(), "peer": self.name, "not_json": line[:1000]})
            return
        self._observer({"at_ms": _now_ms(), "peer": self.name, "out": event})
        if event.get("ref") is not None and name in ANSWERS:
            self._answers[event["ref"]] = event
        else:
            self.events.append(event)
        self._change()

    def _change(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def _next_change(self) -> None:
        if self._ended is not None:
            raise PeerFailed(f"{self.name} {self._ended}: {self._stderr.strip() or 'no reason'}")
        await self._changed.wait()

    async def _write(self, command: dict[str, object]) -> None:
        assert self._process.stdin is not None
        self._observer({"at_ms": _now_ms(), "peer": self.name, "in": command})
        try:
            await self._process.stdin.send((json.dumps(command) + "\n").encode())
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            reason = f"{self._ended or 'ended'}: {self._stderr.strip() or 'no reason'}"
            raise PeerFailed(f"{self.name} {reason}") from None


ANSWERS: Final = frozenset({"accepted", "log", "statistics", "confirmed", "error"})


@asynccontextmanager
async def running(
    name: str, command: Sequence[str], observer: Callable[[dict[str, Any]], None]
) -> AsyncIterator[Peer]:
    """Run a peer until the context ends."""
    process = await anyio.open_process(
        [*command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    async with process, anyio.create_task_group() as tasks:
        peer = Peer(name, process, observer)
        tasks.start_soon(peer.listen)
        tasks.start_soon(peer.keep_errors)
        try:
            await peer.ready()
            yield peer
        finally:
            with anyio.CancelScope(shield=True):
                await peer.stop()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
