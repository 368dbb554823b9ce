"""Runs a page: its files are written, its commands typed into terminals, its output compared.

A block with a title is a file (` ```python title="bot.py" `). A `console` block is a terminal; a
title names another one (` ```console title="terminal 2" `), and blocks of one title continue it.
A line that begins with `$ ` is typed, with the next line after a backslash at its end; `^C` and
`^Z` are keys, and all other lines are output, in which `…` stands for anything, and alone for any
number of lines. A command need not end: the page goes on when its output is there, and at the
end what runs is interrupted; but the last command, if the page shows no output of it, must end.
Output that the page does not show is an error.

No period decides a result: a command that never prints what the page shows ends with the test's
own limit.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from types import MappingProxyType
from typing import Final, NamedTuple, Self

import pexpect

ROOT: Final = Path(__file__).parents[2]
PROMPT: Final = "\x1eready\x1e"
PORTS: Final = ("8645", "8646", "8000", "8080", "5007", "9090")
"""Ports that pages use; each run has others in their place."""
BARE_PATH: Final = ("/usr/local/bin", "/usr/bin", "/bin")
"""Where a page finds `curl` and the like, beside the programs of a bare environment."""


_COMMAND: Final = """#!/bin/sh
[ "$1" = node ] && {{ shift; set -- node --port "$NODE_PORT" "$@"; }}
exec {command} "$@"
"""
"""The command line with another default port, for pages that name none."""


_JOB_NOTICE: Final = re.compile(r"\n?\[\d\][+-]? +(Stopped|Killed|Terminated|Done)[^\n]*\n")
"""What the shell prints of its jobs, before one prompt or the next."""
_LATE_NODE: Final = re.compile(r"(?m)^channel '[^\n]*: (transport|node_health)_\w+ [^\n]*\n")
"""The log of a program whose node answered late, as on a loaded machine."""


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    title: str
    text: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a Markdown page, also those that are indented in a list or tab."""
    fences = re.finditer(
        r'^( *)```(\w+)(?: title="([^"]+)")?[^\n]*\n(.*?)^\1```$', page, re.DOTALL | re.MULTILINE
    )
    return [
        Block(fence[2], fence[3] or "", re.sub(rf"(?m)^{fence[1]}", "", fence[4]))
        for fence in fences
    ]


class Step(NamedTuple):
    """A command or key of a terminal, and the lines that the page shows after it."""

    typed: str
    """Nothing before the first command of a block, where output of an earlier one goes on."""
    is_key: bool
    shown: list[str]


def steps(console: str) -> Iterator[Step]:
    """The steps of a block."""
    step = Step("", False, [])
    for line in console.splitlines():
        if step.typed.endswith("\\") and not step.is_key:
            step = step._replace(typed=step.typed.removesuffix("\\") + line.strip())
        elif typed := re.fullmatch(r"\$ (.*)|\^([CZ])", line):
            yield step
            step = Step(typed[2] or typed[1], bool(typed[2]), [])
        else:
            step.shown.append(line)
    yield step


class Mismatch(AssertionError):
    """A command printed something other than the page shows."""


@dataclass
class Terminal:
    """An interactive shell in the page's folder."""

    folder: Path
    environment: dict[str, str]
    _printed: str = ""
    _running: bool = False
    _rest_is_anything: bool = False
    _command: str = ""
    _shell: "pexpect.spawn[str]" = field(init=False)

    def __post_init__(self) -> None:
        self._shell = pexpect.spawn(
            "bash",
            ["--noprofile", "--norc"],
            cwd=str(self.folder),
            env={**self.environment, "PS1": PROMPT, "PROMPT_COMMAND": ""},
            encoding="utf-8",
            echo=False,
            timeout=None,
            dimensions=(40, 100),
            preexec_fn=_heed_keys,
        )
        self._shell.expect_exact(PROMPT)

    def type(self, command: str) -> None:
        """Run a command, once the one before has ended."""
        self.end()
        self._printed, self._rest_is_anything = "", False
        self._command, self._running = command, True
        self._shell.sendline(command)

    def press(self, key: str) -> None:
        """A key with Ctrl: C interrupts, Z suspends. Between two programs of a line the shell would
        take it, and so would a program that is still the shell's copy: it waits for the next."""
        while self._running and self._is_shell(os.tcgetpgrp(self._shell.child_fd)):
            with suppress(pexpect.TIMEOUT):
                self._read(0.01)
        self._shell.sendcontrol(key.lower())

    def expect(self, lines: list[str]) -> None:
        """Wait for output.

        Raises:
            Mismatch: The command ended and had printed something else.
        """
        pattern = re.compile(_pattern(lines), re.DOTALL)
        exact = all(line.strip() != "…" for line in lines)
        while not (found := pattern.match(self._printed)):
            if not self._running or (exact and self._printed.count("\n") >= len(lines)):
                raise self._mismatch(lines)
            self._read()
        self._printed = self._printed[found.end() :]
        if lines:
            self._rest_is_anything = lines[-1].strip() == "…"

    def end(self) -> None:
        """Wait until the command has ended, and has printed nothing more."""
        while self._running:
            self._read()
        if self._printed.strip() and not self._rest_is_anything:
            raise self._mismatch([])

    def close(self) -> None:
        self._shell.close(force=True)

    def _is_shell(self, process: int) -> bool:
        """Whether a process is the shell, or its copy that becomes a program in a moment."""
        return process == self._shell.pid or _arguments(process) == _arguments(self._shell.pid)

    def _read(self, timeout_s: float | None = None) -> None:
        try:
            text = self._shell.read_nonblocking(4096, timeout_s)
        except pexpect.EOF as error:
            raise Mismatch(f"the terminal closed at: $ {self._command}") from error
        self._printed += text.replace("\r\n", "\n").replace("\r", "")
        self._printed = _LATE_NODE.sub("", _JOB_NOTICE.sub("", self._printed))
        if self._printed.endswith(PROMPT):
            self._printed = self._printed.removesuffix(PROMPT)
            if self._printed and not self._printed.endswith("\n"):
                self._printed += "\n"
            self._running = False

    def _mismatch(self, lines: list[str]) -> Mismatch:
        wanted = "\n".join(lines) or "(nothing more)"
        return Mismatch(
            f"$ {self._command}\n--- the page shows\n{wanted}\n--- printed\n{self._printed}"
        )


def _pattern(lines: list[str]) -> str:
    parts = [
        r"(?:[^\n]*\n)*?" if line.strip() == "…" else re.escape(line).replace("…", "[^\n]*") + "\n"
        for line in lines
    ]
    return "".join(parts)


def _arguments(process: int) -> str:
    """The command line of a process; nothing of one that has ended."""
    command = ["ps", "-o", "args=", "-p", str(process)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _heed_keys() -> None:
    """A job in the background ignores Ctrl-C, and so do all processes that it starts."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(number, signal.SIG_DFL)


class Session:
    """One page in a folder and with ports of its own.

    `programs` is the folder with `python` and `pip` of the environment that the page uses, with
    `settings` as environment variables; without it, that of this Python, where pip installs
    nothing. A command that begins with one of `untyped` is left out, with its output.
    """

    def __init__(
        self,
        folder: Path,
        *,
        programs: Path | None = None,
        settings: Mapping[str, str] = MappingProxyType({}),
        untyped: Collection[str] = (),
    ) -> None:
        self._folder = folder
        self._untyped = tuple(untyped)
        self._must_end: Terminal | None = None
        self._terminals: dict[str, Terminal] = {}
        self._ports = {port: str(_free_port()) for port in PORTS}
        own = folder / ".programs"
        own.mkdir(exist_ok=True)
        path = [str(own), str(programs), *BARE_PATH]
        if programs is None:
            programs = Path(sys.executable).parent
            shutil.copy(Path(__file__).with_name("pip_stand_in.py"), own / "pip")
            (own / "pip").chmod(0o755)
            path = [str(own), str(programs), os.environ["PATH"]]
        command = own / "reliable-channel"
        command.write_text(_COMMAND.format(command=programs / command.name))
        command.chmod(0o755)
        self._environment = {
            **settings,
            "PATH": os.pathsep.join(path),
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "TERM": "dumb",
            "PYTHONUNBUFFERED": "1",
            "PROJECT": str(ROOT),
            "NODE_PORT": self._ports["8645"],
            "RELIABLE_CHANNEL_NODE": f"http://127.0.0.1:{self._ports['8645']}",
        }

    def run(self, page: str) -> None:
        """Run all blocks of a page, in their order.

        Raises:
            Mismatch: The page shows something else than what happens.
        """
        self.play(page)
        self.finish()

    def play(self, text: str) -> None:
        """Run the blocks of a part of the page; its terminals stay for the next part.

        Raises:
            Mismatch: as `run`.
        """
        for block in blocks(text):
            if block.language == "console":
                self._console(block)
            elif block.title:
                file = self._folder / block.title
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(self._with_ports(block.text))

    def finish(self) -> None:
        """Wait for the last command, interrupt what is still running, and close all terminals.

        Raises:
            Mismatch: as `run`.
        """
        if self._must_end is not None:
            self._must_end.end()
        for terminal in self._terminals.values():
            terminal.press("C")
        for terminal in self._terminals.values():
            terminal.close()

    def _console(self, block: Block) -> None:
        terminal = self._terminals.get(block.title)
        if terminal is None:
            terminal = self._terminals[block.title] = Terminal(self._folder, self._environment)
        for step in steps(block.text):
            if step.typed.startswith(self._untyped):
                continue
            if step.is_key:
                terminal.press(step.typed)
            elif step.typed:
                terminal.type(self._with_ports(step.typed))
            terminal.expect([self._with_ports(line) for line in step.shown])
            if step.typed:
                self._must_end = None if step.is_key or step.shown else terminal

    def _with_ports(self, text: str) -> str:
        for port, free in self._ports.items():
            text = re.sub(rf"\b{port}\b", free, text)
        return text

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for terminal in self._terminals.values():
            terminal.close()


def _free_port() -> int:
    """A port below those that the system gives to a test beside this one (Linux: from 32,768)."""
    while True:
        port = SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as listening, suppress(OSError):
            listening.bind(("127.0.0.1", port))
            return port
