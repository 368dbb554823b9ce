"""A Python node in a separate process, and what it costs.

python -m bench.service_node        # prints its addresses, and serves until its input ends
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from waku import LightClient, WakuMessage
from waku.node import Listen, ListenLimits, NodeOptions, serve
from waku.topics import pubsub_topic_for

TOPIC: Final = "/reliable-channel/1/bench-service/proto"
IN_FLIGHT: Final = 16
PATIENCE_S: Final = 300
SIZE: Final = 200
_OPTIONS: Final = NodeOptions(service_requests_per_s=1e6, cache_capacity=10_000)
_LIMITS: Final = ListenLimits(connections=1_000, connections_by_address=1_000)


class ServiceNode:
    """The node's process, as the system counts it (Linux)."""

    def __init__(self, process: subprocess.Popen[str], addresses: list[str]) -> None:
        *self.addresses, self.url = addresses
        """By TCP and by WebSocket, and of the REST API."""
        self._stat = Path(f"/proc/{process.pid}/stat")

    def cpu_s(self) -> float:
        fields = self._stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def service_node() -> Iterator[ServiceNode]:
    """A service node of this run."""
    command = [sys.executable, "-m", "bench.service_node"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        addresses = process.stdout.readline().split()
        try:
            yield ServiceNode(process, addresses)
        finally:
            process.stdin.close()


async def service_rate(node: ServiceNode, address: str, count: int) -> float:
    """Messages a CPU second of the node: one light push in, one filter push out."""
    shard = pubsub_topic_for(TOPIC)
    async with (
        LightClient(address, cluster_id=1) as sender,
        LightClient(address, cluster_id=1, buffer_messages=count) as reader,
    ):
        async with reader.subscribe(shard, [TOPIC]) as messages:
            await sender.light_push(message(), shard)
            await messages.receive()
            await anyio.sleep(1)  # the node has seen how the reader takes its pushes
            before = node.cpu_s()
            turns = anyio.Semaphore(IN_FLIGHT)

            async def push() -> None:
                async with turns:
                    await sender.light_push(message(), shard)

            with anyio.fail_after(PATIENCE_S):
                async with anyio.create_task_group() as tasks:
                    for _ in range(count):
                        tasks.start_soon(push)
                    for _ in range(count):
                        await messages.receive()
            return count / (node.cpu_s() - before)


def message() -> WakuMessage:
    """A message that was never published."""
    return WakuMessage(os.urandom(SIZE), TOPIC, timestamp=time.time_ns())


async def main() -> None:
    """Serve until the input ends."""
    where = ("/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/tcp/0/ws")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            partial(
                serve,
                _OPTIONS,
                port=0,
                listen=Listen(where, limits=_LIMITS),
                listening=lambda addresses: print(*addresses, end=" "),
                started=lambda url: print(url, flush=True),
            )
        )
        await anyio.to_thread.run_sync(sys.stdin.read)
        signal.raise_signal(signal.SIGTERM)


if __name__ == "__main__":
    anyio.run(main)
