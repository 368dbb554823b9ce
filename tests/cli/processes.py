"""Real processes of the command line, driven as a test harness would."""

import codecs
import json
import os
import pty
import queue
import select
import sys
import termios
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from subprocess import DEVNULL, PIPE
from typing import Any, Self

from .forked import Process

PROGRAM = [sys.executable, "-m", "reliable_channel"]
LIBP2P = "libp2p peers reach it at "
TIMEOUT_S = 600
"""A guard against hangs; no result depends on it."""


class Peer:
    """A `reliable-channel peer` in a process of its own."""

    def __init__(self, *flags: str) -> None:
        self.process = Process("peer", *flags, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        self.told: list[dict[str, Any]] = []
        self._lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def write(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def command(self, op: str, **values: object) -> None:
        self.write(json.dumps({"op": op, **values}))

    def send(self, text: str, ref: object = None) -> None:
        self.command("send", ref=ref, payload=b64encode(text.encode()).decode())

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read on until a line that is wanted; what was read before counts too."""
        for told in self.told:
            if wanted(told):
                return told
        while True:
            told_next = self._lines.get(timeout=TIMEOUT_S)
            if told_next is None:
                assert self.process.stderr is not None
                raise AssertionError(f"the peer ended: {self.process.stderr.read()}")
            self.told.append(told_next)
            if wanted(told_next):
                return told_next

    def event(self, name: str, **values: object) -> dict[str, Any]:
        return self.until(
            lambda told: told["event"] == name and all(told.get(k) == v for k, v in values.items())
        )

    def ask(self, op: str, ref: object) -> dict[str, Any]:
        self.command(op, ref=ref)
        return self.event(op, ref=ref)

    def finish(self) -> None:
        """Read all that is left."""
        while (told := self._lines.get(timeout=TIMEOUT_S)) is not None:
            self.told.append(told)
        self.process.wait(TIMEOUT_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


class Node:
    """A `reliable-channel node`, on a free port unless told which."""

    def __init__(self, *flags: str, port: int = 0) -> None:
        self.process = Process("node", "--port", str(port), *flags, stdout=PIPE, stderr=DEVNULL)
        assert self.process.stdout is not None
        self.libp2p_addresses: list[str] = []
        while (line := self.process.stdout.readline()).startswith(LIBP2P):
            self.libp2p_addresses.append(line.removeprefix(LIBP2P).strip())
        self.address = line.removeprefix("listening on ").strip()
        self.port = int(self.address.rsplit(":", 1)[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(TIMEOUT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


class Terminal:
    """A `reliable-channel` in a separate terminal, and a person that types."""

    def __init__(
        self, *arguments: str, columns: int = 80, env: Mapping[str, str] | None = None
    ) -> None:
        self._ours, self.theirs = pty.openpty()
        termios.tcsetwinsize(self.theirs, (25, columns))
        fd = self.theirs
        self.process = Process(*arguments, env=env, stdin=fd, stdout=fd, stderr=fd)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._shown = ""
        self.screen = ""
        """All that was written to it, byte for byte."""

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def until(self, wanted: str) -> None:
        """Read on until the screen shows what is wanted after what was wanted last."""
        while wanted not in self._shown:
            self._read(f"the terminal shows {self._shown!r}, not {wanted!r}")
        self._shown = self._shown.split(wanted, 1)[1]

    def _read(self, problem: str) -> None:
        """Read what is written next, for up to a second."""
        if not select.select([self._ours], [], [], 1)[0]:
            assert self.process.poll() is None, problem
            return
        written = self._decoder.decode(os.read(self._ours, 4096))
        self._shown += written
        self.screen += written

    def echoes(self) -> bool:
        """Whether what is typed would be shown, as a shell expects it."""
        local_modes: int = termios.tcgetattr(self.theirs)[3]
        return bool(local_modes & termios.ECHO) and bool(local_modes & termios.ICANON)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)
        os.close(self.theirs)


@contextmanager
def peers(*flag_lists: list[str]) -> Iterator[list[Peer]]:
    found: list[Peer] = []
    try:
        for flags in flag_lists:
            found.append(Peer(*flags))  # noqa: PERF401 - those started must be closed if one fails
        yield found
    finally:
        for peer in found:
            peer.close()


def payload(text: str) -> str:
    return b64encode(text.encode()).decode()
