"""Peer under test, a process that is controlled by the JSON lines of docs/conformance-kit.md."""

import json
import os
import signal
import subprocess
import time
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

BEAT_S: Final = 0.1
"""Pause between two questions to a peer."""
STOPPING_S: Final = 10
MAX_STDERR: Final = 4_000
SILENCE_S: Final = 120.0
"""Maximum time until a peer is ready or answers, before the peer counts as hung."""
MAX_LINE: Final = 32 * 1024 * 1024
"""Maximum length of a line that a peer writes (characters). A line with a log of long payloads
needs a few million characters."""
MAX_EVENTS: Final = 100_000
"""Maximum number of events that a peer may write in a row. A peer that writes more events is
ended."""


class PeerFailed(RuntimeError):
    """Error that the peer could not be started, ended, hung or wrote too much. The text of the
    error gives the reason and the peer's output."""


class Peer:
    """Running peer, with all events that it has written."""

    def __init__(
        self,
        name: str,
        process: Process,
        observer: Callable[[dict[str, Any]], None],
        silence_s: float = SILENCE_S,
    ) -> None:
        self.name = name
        self.events: list[dict[str, Any]] = []
        self._process = process
        self._observer = observer
        self._silence_s = silence_s
        self._answers: dict[object, dict[str, Any]] = {}
        self._next_ref = 0
        self._changed = anyio.Event()
        self._ended: str | None = None
        self._stderr = ""

    # -- commands ---------------------------------------------------------------------------------

    async def command(self, op: str, **values: object) -> dict[str, Any]:
        """Send a command to the peer, and wait for the answer.

        Raises:
            PeerFailed: the peer ended, or does not answer.
        """
        self._next_ref += 1
        ref = self._next_ref
        with self._patience(f"answer {op!r}"):
            await self._write({"op": op, "ref": ref, **values})
            while ref not in self._answers:
                await self._next_change()
        return self._answers.pop(ref)

    async def send(self, payload: bytes) -> str:
        """Let the peer send a message, and return the message's id.

        Raises:
            PeerFailed: the peer refused, or ended.
        """
        answer = await self.command("send", payload=b64encode(payload).decode())
        if answer["event"] != "accepted":
            raise PeerFailed(f"{self.name} did not accept a message: {answer}")
        return str(answer["message_id"])

    async def log(self) -> list[dict[str, Any]]:
        """Return the entries of the peer's log, in order."""
        answer = await self.command("log")
        entries: list[dict[str, Any]] = answer.get("entries", [])
        return entries

    # -- what it emitted --------------------------------------------------------------------------

    def named(self, event: str, **fields: object) -> list[dict[str, Any]]:
        """Return the peer's events with the given name and the given values."""
        return [
            each
            for each in self.events
            if each.get("event") == event and all(each.get(k) == v for k, v in fields.items())
        ]

    def payloads(self) -> list[bytes]:
        """Return the payloads that the peer's application received, in order."""
        return [b64decode(each["payload"]) for each in self.named("message_received")]

    async def until(self, met: Callable[[], bool], beats: int) -> bool:
        """Wait for a condition while the peer answers at most `beats` questions.

        A beat is a pause and one answered question. On a busy machine the peer answers later, and
        so gets more time. No clock decides whether the condition was met in time.
        """
        for _ in range(beats):
            if met():
                return True
            await anyio.sleep(BEAT_S)
            await self.log()
        return met()

    # -- the process ------------------------------------------------------------------------------

    async def kill(self) -> None:
        """Kill the peer's process at once."""
        self._ended = "was killed by the kit"
        self._kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Let the peer leave, or end its process if it does not leave."""
        with anyio.move_on_after(STOPPING_S, shield=True):
            with suppress(PeerFailed):
                await self._write({"op": "stop"})
            await self._process.wait()
        self._kill()

    async def ready(self) -> None:
        """Wait until the peer is ready.

        Raises:
            PeerFailed: the peer ended instead, or hangs.
        """
        with self._patience("emit 'ready'"):
            while not self.named("ready"):
                await self._next_change()

    async def listen(self) -> None:
        """Read the lines that the peer writes, until the peer ends."""
        assert self._process.stdout is not None
        rest = ""
        async for chunk in TextReceiveStream(self._process.stdout, errors="replace"):
            *lines, rest = (rest + chunk).split("\n")
            for line in lines:
                self._take(line)
            if len(rest) > MAX_LINE:
                self._give_up(f"wrote a line of more than {MAX_LINE} characters")
            elif len(self.events) + len(self._answers) > MAX_EVENTS:
                self._give_up(f"wrote more than {MAX_EVENTS} events")
            if self._ended is not None:
                break
        self._ended = self._ended or f"ended with exit status {await self._process.wait()}"
        self._change()

    async def keep_errors(self) -> None:
        """Keep the last lines that the peer wrote to standard error."""
        assert self._process.stderr is not None
        async for chunk in TextReceiveStream(self._process.stderr, errors="replace"):
            self._stderr = (self._stderr + chunk)[-MAX_STDERR:]

    def _take(self, line: str) -> None:
        if not line.strip():
            return
        event = _event_in(line)
        if event is None:
            self._observer({"at_ms": _now_ms(), "peer": self.name, "not_an_event": line[:1000]})
            return
        self._observer({"at_ms": _now_ms(), "peer": self.name, "out": event})
        if isinstance(ref := event.get("ref"), int) and event["event"] in ANSWERS:
            self._answers[ref] = event
        else:
            self.events.append(event)
        self._change()

    def _give_up(self, reason: str) -> None:
        self._ended = reason
        self._kill()

    def _kill(self) -> None:
        """End the process, and those that it started: `npx` and `sh -c` leave theirs behind."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    @contextmanager
    def _patience(self, what: str) -> Iterator[None]:
        """Raise PeerFailed where the peer hangs."""
        try:
            with anyio.fail_after(self._silence_s):
                yield
        except TimeoutError:
            hung = (
                f"{self.name} did not {what} in {self._silence_s:g} s, see docs/conformance-kit.md"
            )
            raise PeerFailed(f"{hung}: {self._stderr.strip() or 'no reason'}") from None

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
    name: str,
    command: Sequence[str],
    observer: Callable[[dict[str, Any]], None],
    silence_s: float = SILENCE_S,
) -> AsyncIterator[Peer]:
    """Start a peer, and yield it until the context ends.

    Raises:
        PeerFailed: the peer cannot be started, ends, or hangs. Once it runs, the error is in an
            exception group.
    """
    pipe = subprocess.PIPE
    try:
        process = await anyio.open_process(
            [*command], stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
    except OSError as error:
        raise PeerFailed(f"{name} cannot be started: {error}") from error
    async with process, anyio.create_task_group() as tasks:
        peer = Peer(name, process, observer, silence_s)
        tasks.start_soon(peer.listen)
        tasks.start_soon(peer.keep_errors)
        try:
            await peer.ready()
            yield peer
        finally:
            with anyio.CancelScope(shield=True):
                await peer.stop()


def _event_in(line: str) -> dict[str, Any] | None:
    """The event of a line; None where it is something else."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
