"""A standalone cluster out of the pip package: processes that a test may kill."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

START_S = 240
HOME = Path(pyspark.__file__).parent
ENVIRONMENT = {
    **os.environ,
    "SPARK_HOME": str(HOME),
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_MEMORY": "1g",
    "SPARK_NO_DAEMONIZE": "1",
}


class Daemon:
    """A process of Spark, in a group of its own so that its children can be ended with it."""

    def __init__(self, log: Path, *command: str | Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                env=ENVIRONMENT,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def until(self, pattern: str, *, within_s: float = START_S) -> None:
        """Wait until its log says something."""
        end_s = time.monotonic() + within_s
        while not re.search(pattern, self._log.read_text(errors="replace")):
            assert self.process.poll() is None, self._log.read_text(errors="replace")[-2_000:]
            assert time.monotonic() < end_s, f"no {pattern!r} within {within_s} s"
            time.sleep(0.2)

    def kill(self) -> None:
        """End it and its executors as a power cut does."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


@contextmanager
def standalone(directory: Path, workers: int = 2) -> Iterator[tuple[str, list[Daemon]]]:
    """A master and workers of one core each; gives the master's address."""
    port, run = free_port(), str(HOME / "bin" / "spark-class")
    address = f"spark://127.0.0.1:{port}"
    host = ("--host", "127.0.0.1", "--webui-port", "0")
    with ExitStack() as stack:
        master = stack.enter_context(
            Daemon(
                directory / "master.log",
                *(run, "org.apache.spark.deploy.master.Master", *host, "--port", str(port)),
            )
        )
        master.until("I have been elected leader")
        group = [
            stack.enter_context(
                Daemon(
                    directory / f"worker-{number}.log",
                    *(run, "org.apache.spark.deploy.worker.Worker", *host),
                    *("--cores", "1", "--memory", "1g"),
                    *("--work-dir", str(directory / f"work-{number}"), address),
                )
            )
            for number in range(workers)
        ]
        for each in group:
            each.until("Successfully registered with master")
        yield address, group


@contextmanager
def connect_server(directory: Path) -> Iterator[str]:
    """A server of Spark Connect on a local session; gives its address."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    flags = [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
    script = str(HOME / "sbin" / "start-connect-server.sh")
    command = ("bash", script, "--master", "local[2]", *flags)
    with Daemon(directory / "connect.log", *command) as server:
        server.until("Spark Connect server started")
        yield f"sc://127.0.0.1:{port}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
