"""A container of the bench: started, killed, started again, and spoken to in JSON lines.

All talk with its program goes through standard input and output, over the engine's socket: the
networks of the bench are internal, no port is published, and nothing here sends a packet to them.
"""

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from threading import Condition, Thread
from time import monotonic
from typing import Any, Final, Self

from docker import version as docker_version
from docker.errors import APIError, DockerException
from docker.types import EndpointConfig
from docker.utils.socket import frames_iter
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_fixed
from testcontainers.core.docker_client import DockerClient

from .netfault import NetFaults

PATIENCE_S: Final = 600
"""For an answer, or a start: a guard against hangs, on a busy machine too."""
STDERR: Final = 2
KEPT_LINES: Final = 20
PAUSE_ATTEMPTS: Final = 5

Event = dict[str, Any]


class Died(AssertionError):
    """A program ended that should run; the text has its last words."""


class Container:
    """One program of an image, at a fixed address of a network."""

    def __init__(
        self,
        image: str,
        arguments: Sequence[str],
        *,
        name: str,
        network: str,
        address: str,
        labels: Mapping[str, str],
        entrypoint: list[str] | None = None,
    ) -> None:
        self.name = name
        self.address = address
        self.events: list[Event] = []
        """All its events, over all its lives."""
        self.lives = 0
        self.errors: deque[str] = deque(maxlen=KEPT_LINES)
        self._changed = Condition()
        self._refs = count(1)
        self._is_running = False
        self._faults: NetFaults | None = None
        endpoint = EndpointConfig(docker_version.__version__, ipv4_address=address)
        self._client = DockerClient()
        self._docker: Any = self._client.create(
            image,
            list(arguments),
            labels=dict(labels),
            stdin_open=True,
            network=network,
            networking_config={network: endpoint},
            dns=["127.0.0.1"],
            entrypoint=entrypoint,
        )
        self._network = network

    def start(self) -> Self:
        """Start it and wait until it says that it is ready."""
        self.restart()
        return self

    def kill(self) -> None:
        self._is_running = False
        self._docker.kill()
        self._docker.wait()

    def restart(self) -> None:
        """Start it again, with the files that it has, and wait until it is ready."""
        self._listen()
        self._client.start(self._docker)
        self.wait_ready()

    @retry(
        retry=retry_if_exception_type(APIError),  # runc gives up soon where processes are busy
        stop=stop_after_attempt(PAUSE_ATTEMPTS),
        wait=wait_fixed(1),
        reraise=True,
    )
    def pause(self) -> None:
        """Stop it in the middle of what it does; peers see silence.

        Raises:
            docker.errors.APIError: the engine cannot, time after time.
        """
        self._docker.pause()

    def unpause(self) -> None:
        self._docker.unpause()

    def disconnect(self) -> None:
        self._docker.client.networks.get(self._network).disconnect(self._docker)

    def reconnect(self) -> None:
        """Give the network back, with the same address."""
        self._docker.client.networks.get(self._network).connect(
            self._docker, ipv4_address=self.address
        )

    @property
    def faults(self) -> NetFaults:
        """The faults of its network; they end with a life."""
        self._docker.reload()
        pid = int(self._docker.attrs["State"]["Pid"])
        if self._faults is None or self._faults.pid != pid:
            self._faults = NetFaults(pid)
        return self._faults

    def command(self, op: str, **fields: Any) -> Event:
        """Give an order and return the answer.

        Raises:
            ValueError: it refuses, and says why.
        """
        ref = next(self._refs)
        self._write({"op": op, "ref": ref, **fields})
        answer = self.wait_for(lambda e: e.get("ref") == ref, PATIENCE_S, f"answer to {op}")
        if answer["event"] == "error":
            raise ValueError(f"{self.name} refuses {op}: {answer['reason']}")
        return answer

    def emitted(self, event: str) -> list[Event]:
        """All events of that name."""
        return [each for each in self.events if each["event"] == event]

    def wait_for(self, wanted: Callable[[Event], bool], timeout_s: float, what: str) -> Event:
        """The first event that is wanted, past or within the time."""
        seen = 0
        end = monotonic() + timeout_s
        with self._changed:
            while True:
                for event in self.events[seen:]:
                    if wanted(event):
                        return event
                seen = len(self.events)
                if not self._changed.wait(min(1, max(0, end - monotonic()))):
                    self._check(monotonic() < end, what, timeout_s)

    def wait_until(self, holds: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Wait until a condition holds for its events."""
        end = monotonic() + timeout_s
        with self._changed:
            while not holds():
                self._changed.wait(min(1, max(0, end - monotonic())))
                self._check(monotonic() < end or holds(), what, timeout_s)

    def wait_ready(self) -> None:
        """Wait for this life's first word."""
        self.wait_until(lambda: len(self.emitted("ready")) >= self.lives, PATIENCE_S, "being ready")

    def parse(self, line: bytes) -> Event | None:
        """What a line of its output says; None for what is no event."""
        try:
            event = json.loads(line)
        except ValueError:  # also a line that a kill cut off
            return None
        return event if isinstance(event, dict) and "event" in event else None

    def remove(self) -> None:
        """End it and delete it."""
        self._is_running = False
        with suppress(DockerException):  # the reaper tries again
            self._docker.remove(force=True, v=True)
        self._client.client.close()
        self._reader.join(PATIENCE_S)

    def _listen(self) -> None:
        """Before it starts: what is said between the past and the present of a log is lost."""
        flags = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1, "logs": 0}
        self._socket = self._docker.attach_socket(params=flags)
        self.lives += 1
        self._is_running = True
        self._reader = Thread(target=self._read, args=[self._socket, self.lives], daemon=True)
        self._reader.start()

    def _write(self, command: Event) -> None:
        self._socket._sock.sendall(json.dumps(command).encode() + b"\n")

    def _read(self, socket: Any, life: int) -> None:
        connection = socket._sock
        rest = {1: b"", STDERR: b""}
        for stream, data in frames_iter(socket, tty=False):
            *lines, rest[stream] = (rest[stream] + data).split(b"\n")
            for line in lines:
                self._take(line, stream)
        connection.close()
        socket.close()
        with self._changed:
            if life == self.lives:
                self._is_running = False
            self._changed.notify_all()

    def _take(self, line: bytes, stream: int) -> None:
        event = self.parse(line) if stream != STDERR else None
        if event is None:
            self.errors.append(line.decode(errors="replace"))
            return
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def _check(self, in_time: bool, what: str, timeout_s: float) -> None:
        if not self._is_running:
            raise Died(f"{self.name} ended before {what}: {' | '.join(self.errors)}")
        if not in_time:
            raise TimeoutError(f"{self.name}: no {what} within {timeout_s:.0f} s")
