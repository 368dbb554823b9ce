"""Takes away what a run has started, however the run ends.

A separate process, which waits for the end of its standard input: the run holds the other end of
that pipe, and the kernel closes it after Ctrl-C and after SIGKILL alike.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final

import docker
from docker.errors import DockerException

from . import engine

LABEL: Final = "reliable-channel.interop"
"""On every container and network; its value names the run."""
WAIT_S: Final = 600


def run_id() -> str:
    """The name of this run: a process, and when it began, as process ids are used again."""
    return f"{os.getpid()}-{_began(os.getpid())}"


class Reaper:
    """The process that will clean up behind this one."""

    def __init__(self, address: str, run: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "interop.waku.reaper", address, run],
            stdin=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )

    def close(self) -> None:
        """Let it clean up, and wait until it has."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(WAIT_S)


def sweep(address: str, is_over: Sequence[str] | None = None) -> None:
    """Remove containers and networks: of the runs named, or else of all that are over."""
    client = docker.DockerClient(base_url=address)
    found = {"filters": {"label": LABEL}}
    try:
        for container in client.containers.list(all=True, ignore_removed=True, **found):
            if _is_over(container.labels[LABEL], is_over):
                with suppress(DockerException):
                    container.remove(force=True, v=True)
        for network in client.networks.list(**found):
            if _is_over(network.attrs["Labels"][LABEL], is_over):
                with suppress(DockerException):
                    network.remove()
    finally:
        client.close()


def _is_over(run: str, named: Sequence[str] | None) -> bool:
    if named is not None:
        return run in named
    pid, _, began = run.partition("-")
    return _began(int(pid)) != began


def _began(pid: int) -> str:
    """When a process began, in the kernel's words; empty where there is none, or no /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except OSError:
        return ""


def main() -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    address, run = sys.argv[1:]
    with engine.hold() if address == engine.SOCKET else nullcontext() as held:
        sys.stdin.buffer.read()
        with suppress(DockerException, OSError):
            sweep(address, [run])
        if held is not None:
            engine.stop_if_unused(held)


if __name__ == "__main__":
    main()
