"""Without the modules of POSIX: cores and client need none, and the rest says what it lacks."""

import subprocess
import sys

import pytest

from reliable_channel import run

POSIX = "fcntl grp pty pwd readline resource syslog termios tty".split()
"""Modules that Python lacks on Windows."""
ELSEWHERE = f"""
import sys
for name in {POSIX}:
    sys.modules[name] = None
"""
ROOMS = ("reliable_channel.sds", "reliable_channel.engine", "reliable_channel.segmentation")
EVERY_MODULE = """
import importlib, pkgutil, sys
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    if hasattr(package, "__path__"):
        for module in pkgutil.walk_packages(package.__path__, name + "."):
            importlib.import_module(module.name)
print("imported")
"""
CLIENT = """
import anyio
from waku import WakuClient
from waku.node import EmbeddedNode

async def main():
    async with EmbeddedNode() as node, WakuClient("http://node", app=node.app) as client:
        print(await client.version())

anyio.run(main)
"""


def elsewhere(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", ELSEWHERE + program, *arguments],
        capture_output=True,
        text=True,
        env={"RELIABLE_CHANNEL_PLUGINS": "none"},
    )


@pytest.mark.parametrize("room", [*ROOMS, "waku.client", "reliable_channel.channel"])
def test_cores_client_and_channel_are_imported_without_posix(room: str) -> None:
    done = elsewhere(EVERY_MODULE, room)
    assert done.stdout == "imported\n", done.stderr


def test_a_client_works_without_posix() -> None:
    done = elsewhere(CLIENT)
    assert done.stdout.startswith("py-waku-"), done.stderr


def test_the_command_line_says_that_it_needs_posix() -> None:
    done = elsewhere("from reliable_channel.cli import run; run()")
    assert done.returncode == 1
    assert done.stderr == (
        "error: the command line needs a POSIX system such as Linux (Python has no termios here); "
        "run it in WSL or a container\n"
    )


def test_run_says_that_it_needs_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        raise AssertionError("it runs")

    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(NotImplementedError, match=r"call `anyio\.run\(main\)`"):
        run(main)
