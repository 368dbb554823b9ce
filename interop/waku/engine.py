"""A Docker engine: one that runs already, or one of our own, as root on Debian.

Ours listens on a separate socket, keeps its images in `DIRECTORY` from run to run, makes no
bridge and touches no firewall: the networks of the bench reach nowhere but their own containers.
"""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import docker
from docker.errors import DockerException

from ..go_build import locked

DIRECTORY: Final = Path(
    os.environ.get("INTEROP_ENGINE_DIR", "/var/lib/reliable-channel-interop-engine")
)
SOCKET: Final = f"unix://{DIRECTORY}/docker.sock"
PIDFILE: Final = DIRECTORY / "dockerd.pid"
LOG: Final = DIRECTORY / "dockerd.log"
START_TIMEOUT_S: Final = 600
STOP_TIMEOUT_S: Final = 30
INSTALL_TIMEOUT_S: Final = 1_800
"""A guard: another apt-get may hold the lock, and the machine may be busy."""
PACKAGES: Final = ("docker.io", "iptables")
ANSWER_TIMEOUT_S: Final = 60


class EngineUnavailable(RuntimeError):
    """There is no engine and none can be had: one line says why and what to do."""


def ensure() -> str:
    """The address of an engine that answers; started, and installed before, if need be.

    Raises:
        EngineUnavailable: none answers, and this is not root on Debian, or starting one failed.
    """
    if (address := _running()) is not None:
        return address
    if not may_start():
        raise EngineUnavailable("no Docker engine answers, and only root can start one: start it")
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    with locked(DIRECTORY / "start.lock"):
        _install()
        if (address := _running()) is not None:  # another run's, or the package's own service
            return address
        _start()
    return SOCKET


def _running() -> str | None:
    candidates = (SOCKET, os.environ.get("DOCKER_HOST", ""), "unix:///var/run/docker.sock")
    return next(filter(answers, filter(None, candidates)), None)


def may_start() -> bool:
    """Whether this process could start an engine of our own."""
    return sys.platform == "linux" and os.geteuid() == 0


def use(address: str) -> None:
    """Make this process's Docker clients talk to this engine."""
    os.environ["DOCKER_HOST"] = address


def answers(address: str) -> bool:
    """Whether an engine listens there."""
    if address.startswith("unix://"):  # docker-py leaves sockets open that do not connect
        try:
            with socket.socket(socket.AF_UNIX) as attempt:
                attempt.connect(address.removeprefix("unix://"))
        except OSError:
            return False
    try:
        client = docker.DockerClient(base_url=address, timeout=ANSWER_TIMEOUT_S)
    except DockerException:
        return False
    try:
        return bool(client.ping())
    except (DockerException, OSError):
        return False
    finally:
        client.close()


def hold() -> IO[str]:
    """Keep our engine from being stopped as long as the answer is open, here or in a child."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    held = (DIRECTORY / "users.lock").open("w")
    fcntl.flock(held, fcntl.LOCK_SH)
    return held


def stop_if_unused(held: IO[str]) -> None:
    """End our engine, unless another run holds it too; another's engine is never touched."""
    with locked(DIRECTORY / "start.lock"):
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        if (pid := _own_pid()) is None:
            return
        os.kill(pid, signal.SIGTERM)
        for _ in range(STOP_TIMEOUT_S * 10):
            if _own_pid() is None:
                break
            time.sleep(0.1)
        else:
            os.kill(pid, signal.SIGKILL)
        PIDFILE.unlink(missing_ok=True)


def install_packages(*names: str) -> None:
    """Install Debian packages.

    Raises:
        EngineUnavailable: this is no Debian, or they cannot be had.
    """
    if shutil.which("apt-get") is None:
        raise EngineUnavailable(f"this is no Debian: install {' and '.join(names)}")
    patience = f"DPkg::Lock::Timeout={INSTALL_TIMEOUT_S}"
    options = ("-y", "-q", "--no-install-recommends", "-o", patience)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = ("apt-get", *options, "install", *names)
    for command in (install, ("apt-get", "-q", "update"), install):
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S
            )
        except subprocess.TimeoutExpired as error:
            raise EngineUnavailable(
                f"{' '.join(command[-2:])} takes more than {INSTALL_TIMEOUT_S} s: does another "
                "apt-get run?"
            ) from error
        if done.returncode == 0 and command is install:
            return
    raise EngineUnavailable(f"apt-get install {' '.join(names)}: {_last_line(done.stderr)}")


def _install() -> None:
    if shutil.which("dockerd") is None or shutil.which("iptables") is None:
        install_packages(*PACKAGES)


def _start() -> None:
    command = [
        *("dockerd", "--host", SOCKET, "--pidfile", str(PIDFILE)),
        *("--data-root", str(DIRECTORY / "data"), "--exec-root", str(DIRECTORY / "exec")),
        *("--bridge", "none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"),
        *("--shutdown-timeout", "5"),
    ]
    with LOG.open("wb") as log, Path(os.devnull).open("rb") as nothing:
        streams = ((nothing, 0), (log, 1), (log, 2))
        actions = [(os.POSIX_SPAWN_DUP2, file.fileno(), number) for file, number in streams]
        # Not a Popen, which would have to be waited for: the engine outlives this process.
        pid = os.posix_spawnp(command[0], command, os.environ, file_actions=actions, setsid=True)
    end = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end and os.waitpid(pid, os.WNOHANG) == (0, 0):
        if answers(SOCKET):
            return
        time.sleep(0.1)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    raise EngineUnavailable(f"dockerd does not start: {_last_line(LOG.read_text())}; see {LOG}")


def _own_pid() -> int | None:
    """The process of our engine; the command line reveals a recycled number."""
    try:
        pid = int(PIDFILE.read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if str(PIDFILE).encode() in command.split(b"\0") else None


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no word why"
