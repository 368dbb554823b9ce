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

START_S = 600
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Plans of small tables run once: what the optimising compiler does would be for nothing."""
HOME = Path(pyspark.__file__).parent
ENVIRONMENT = {
    **os.environ,
    "SPARK_HOME": str(HOME),
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_DAEMON_MEMORY": "1g",
    "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,
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


class Cluster:
    """A master, and workers of one core each, which may be killed and replaced."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self._directory, self._stack = directory, stack
        self._started = 0
        port = free_port()
        self.address = f"spark://127.0.0.1:{port}"
        self._start("master", "master.Master", "--port", port).until("I have been elected leader")
        self.workers = [self._worker(), self._worker()]
        for each in self.workers:
            each.until("Successfully registered with master")

    def kill_a_worker(self) -> None:
        """End one and its executors; another one comes in its place after a while."""
        self.workers.pop(0).kill()
        self.workers.append(self._worker())

    def _worker(self) -> Daemon:
        self._started += 1
        name = f"worker-{self._started}"
        size = ("--cores", 1, "--memory", "1g", "--work-dir", self._directory / name)
        return self._start(name, "worker.Worker", *size, self.address)

    def _start(self, name: str, what: str, *arguments: object) -> Daemon:
        host = ("--host", "127.0.0.1", "--webui-port", "0")
        run = (HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{what}", *host)
        daemon = Daemon(self._directory / f"{name}.log", *run, *map(str, arguments))
        return self._stack.enter_context(daemon)


@contextmanager
def standalone(directory: Path) -> Iterator[Cluster]:
    """A cluster on this machine."""
    with ExitStack() as stack:
        yield Cluster(directory, stack)


@contextmanager
def connect_server(directory: Path) -> Iterator[str]:
    """A server of Spark Connect on a local session; gives its address."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
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
