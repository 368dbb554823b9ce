"""`sudo nsenter -t PID -n tc …`, by which the harness shapes the traffic of a container.

There is no process to enter, so a call of `subprocess.run` with that command goes to the container
with that id. Every other command runs as it always does.
"""

from __future__ import annotations

import logging
import subprocess
from typing import Any

from interop.compat.rest import Engine
from interop.compat.tc import BadCommand

__all__ = ["obey"]

_log = logging.getLogger("interop.compat.tc")


def obey(engine: Engine) -> None:
    """Lead the command to the containers of an engine, for as long as the process lives."""
    run = subprocess.run

    def run_or_shape(command: Any, *arguments: Any, **settings: Any) -> Any:
        match command:
            case ["sudo", "-n", "nsenter", "-t", pid, "-n", "tc", *words]:
                return _shape(engine, pid, command, words)
        return run(command, *arguments, **settings)

    subprocess.run = run_or_shape  # type: ignore[assignment]


def _shape(
    engine: Engine, pid: str, command: list[str], words: list[str]
) -> subprocess.CompletedProcess[str]:
    for container in engine.containers.values():
        if str(container.attrs["State"]["Pid"]) == pid:
            try:
                output = container.tc(words)
            except BadCommand as error:
                return subprocess.CompletedProcess(command, 2, "", f"{error}\n")
            rule = container.tc(["qdisc", "show", "dev", "eth0"]).strip()
            _log.info("container %s: %s", container.short_id, rule)
            return subprocess.CompletedProcess(command, 0, output, "")
    missing = f"nsenter: cannot open /proc/{pid}/ns/net: No such file or directory\n"
    return subprocess.CompletedProcess(command, 1, "", missing)
