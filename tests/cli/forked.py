"""Processes of the command line, forked from one that has its libraries loaded.

A process that begins with the interpreter spends 0.4 CPU seconds on imports, mostly before it does
what a test asks of it. Here one process of this module imports them, and forks for each command: a
process with its own environment, arguments, files and exit status, which runs
`python -m reliable_channel`. What depends on the terminal or the environment when it is imported
(consoles, commands) is imported by each command.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Final, Self, TextIO

LIBRARIES: Final = (
    "asyncio",
    "pydantic",
    "rich.console",
    "rich.markup",
    "rich.table",
    "rich.text",
    "typer._adapters",
    "typer.core",
    "typer.main",
    "uvicorn",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.h11_impl",
    "importlib.metadata",
    "sqlite3",
    "reliable_channel.channel",
    "reliable_channel.config",
    "reliable_channel._plugins.hooks",
    "reliable_channel._plugins.loading",
    "reliable_channel._program",
    "reliable_channel.spi",
    "reliable_channel.transport.waku",
    "waku.client",
    "waku.node",
    "waku.node.listening",
    "waku.node.store",
    "waku.p2p",
)
ROOT: Final = Path(__file__).parents[2]


class Process:
    """A `reliable-channel` with these arguments; much as `subprocess.Popen`, and always text."""

    def __init__(
        self,
        *arguments: str,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        env: Mapping[str, str] | None = None,
        start_new_session: bool = False,
    ) -> None:
        self.args = ["reliable-channel", *arguments]
        self.returncode: int | None = None
        self.stdin, theirs_in = _stream(stdin, "w", 0)
        self.stdout, theirs_out = _stream(stdout, "r", 1)
        self.stderr, theirs_err = _stream(stderr, "r", 2)
        self._status, status = os.pipe()
        request, told = os.pipe()
        theirs = [request, status, theirs_in, theirs_out, theirs_err]
        socket.send_fds(_parent(), [b"!"], theirs)
        for fd in theirs:
            if fd > 2 and fd not in (stdin, stdout, stderr):
                os.close(fd)
        with os.fdopen(told, "w") as file:
            environment = dict(os.environ if env is None else env)
            json.dump([arguments, environment, str(Path.cwd()), start_new_session], file)
        pid = os.read(self._status, 8)
        assert pid, "the process that forks has ended"
        self.pid = int(pid)

    def poll(self) -> int | None:
        """The exit status if it ended, as `subprocess.Popen` has it."""
        if self.returncode is None and self._has_ended(0):
            self._ended()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends.

        Raises:
            TimeoutExpired: it did not.
        """
        if self.returncode is None:
            if not self._has_ended(timeout):
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self._ended()
        assert self.returncode is not None
        return self.returncode

    def _has_ended(self, within_s: float | None) -> bool:
        waiting = select.poll()  # `select` knows no more than 1,024 files
        waiting.register(self._status, select.POLLIN)
        return bool(waiting.poll(None if within_s is None else within_s * 1000))

    def _ended(self) -> None:
        code = os.read(self._status, 8)
        os.close(self._status)
        assert code, "the process that forks has ended"
        self.returncode = int(code)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: object, _traceback: TracebackType | None
    ) -> None:
        for stream in (self.stdout, self.stderr, self.stdin):
            if stream is not None:
                stream.close()
        self.wait()


def run(
    *arguments: str, input: str = "", check: bool = False, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `reliable-channel` to its end and return what it printed, and its exit status."""
    with (
        TemporaryFile("w+", encoding="utf-8") as stdin,
        TemporaryFile("w+", encoding="utf-8") as out,
        TemporaryFile("w+", encoding="utf-8") as err,
    ):
        stdin.write(input)
        stdin.seek(0)
        process = Process(
            *arguments, env=env, stdin=stdin.fileno(), stdout=out.fileno(), stderr=err.fileno()
        )
        process.wait()
        out.seek(0), err.seek(0)
        assert process.returncode is not None
        done = subprocess.CompletedProcess(process.args, process.returncode, out.read(), err.read())
    if check:
        done.check_returncode()
    return done


def _stream(given: int | None, mode: str, inherited: int) -> tuple[TextIO | None, int]:
    """Our end of a pipe, if one is wanted, and what the process gets."""
    if given is None:
        return None, inherited
    if given == subprocess.DEVNULL:
        return None, os.open(os.devnull, os.O_RDWR)
    if given != subprocess.PIPE:
        return None, given
    reading, writing = os.pipe()
    ours, theirs = (reading, writing) if mode == "r" else (writing, reading)
    stream: Any = os.fdopen(ours, mode)
    return stream, theirs


@cache
def _parent() -> socket.socket:
    """The process that forks, by the socket that it listens to."""
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-m", __name__, str(theirs.fileno())]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], cwd=ROOT
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _serve(requests: socket.socket) -> list[str] | None:
    """Fork for each request. In a forked process, return its arguments; in this one, None after
    the last."""
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the tests
    running: dict[int, int] = {}
    while True:
        ready, *_ = select.select([requests.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 1024)
            for pid in list(running):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    _report(running.pop(pid), os.waitstatus_to_exitcode(status))
        if requests.fileno() in ready:
            _, given, *_ = socket.recv_fds(requests, 1, 5)
            if not given:
                return None
            request, status_fd, *standard = given
            with os.fdopen(request) as file:
                arguments, environment, folder, is_new_session = json.load(file)
            if not (pid := os.fork()):
                requests.detach()
                if is_new_session:
                    os.setsid()
                _become(standard, environment, folder)
                return list(arguments)
            for fd in standard:
                os.close(fd)
            os.write(status_fd, f"{pid:8}".encode())
            running[pid] = status_fd


def _report(status_fd: int, code: int) -> None:
    try:
        os.write(status_fd, f"{code:8}".encode())
    except BrokenPipeError:
        pass  # the test waits for it no more
    os.close(status_fd)


def _become(standard: list[int], environment: dict[str, str], folder: str) -> None:
    """Have the standard streams, the environment and the folder of a new process."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as a shell starts it
    for number, fd in enumerate(standard):
        os.dup2(fd, number)
    os.closerange(3, max(os.sysconf("SC_OPEN_MAX"), 1024))
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = os.fdopen(  # type: ignore[misc]
        2, "w", buffering=1, errors="backslashreplace", closefd=False
    )


if __name__ == "__main__":
    listening = socket.socket(fileno=int(sys.argv[1]))
    for library in LIBRARIES:
        import_module(library)
    gc.collect()
    gc.freeze()  # a collection in a forked process would copy all pages of memory
    if (command_line := _serve(listening)) is not None:
        sys.argv[1:] = command_line
        sys.path[0] = str(Path.cwd())
        runpy.run_module("reliable_channel", run_name="__main__", alter_sys=True)
