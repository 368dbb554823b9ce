"""`python -m bench.flow`: messages a second of one channel and of twelve through one node.

The node is our own, in a separate process; the channels are in this one and send as fast as they
may. Wall time says little on a busy machine: CPU ms a message of this process stand beside it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Final

import anyio

from reliable_channel import ReliableChannel
from reliable_channel.events import MessageSent

from .machine import this_machine

SMALL: Final = 200
COUNTS: Final = (1, 12)
MESSAGES: Final = 1_200
"""Of all channels together."""
PATIENCE_S: Final = 300


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.flow", description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES, help="of each measurement")
    options = parser.parse_args()
    with node() as (rest, libp2p):
        for name, address in (("REST", rest), ("libp2p", libp2p)):
            for count in COUNTS:
                rate, cpu_ms = anyio.run(flow, address, count, options.messages)
                print(f"{name:<7} {count:>2} channels {rate:>5.0f} a second {cpu_ms:.2f} CPU ms")
    print("load average", this_machine(None).load_average)
    return 0


@contextmanager
def node() -> Iterator[tuple[str, str]]:
    """A node of this run: its REST address, and that for libp2p."""
    code = (
        "import anyio\n"
        "from waku.node import EmbeddedNode, Listen, ListenLimits, NodeOptions, serve_node\n"
        "async def main():\n"
        "    options = NodeOptions(service_requests_per_s=1e6)\n"
        "    listen = Listen(('/ip4/127.0.0.1/tcp/0',), limits=ListenLimits())\n"
        "    async with EmbeddedNode(options, listen=listen) as node:\n"
        "        print(node.libp2p_addresses[-1], flush=True)\n"
        "        await serve_node(node, port=0, started=lambda url: print(url, flush=True))\n"
        "anyio.run(main)\n"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            libp2p = process.stdout.readline().strip()
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None
            yield found[0], libp2p
        finally:
            process.kill()


async def flow(address: str, count: int, messages: int) -> tuple[float, float]:
    """Messages a second, and CPU ms of each, until the node has all of so many channels."""
    each = messages // count
    async with AsyncExitStack() as stack:
        channels = [
            await stack.enter_async_context(
                ReliableChannel(address, channel_id=f"flow-{time.time_ns()}", sender_id="alice")
            )
            for _ in range(count)
        ]

        async def send(channel: ReliableChannel) -> None:
            events = channel.events()
            for _ in range(each):
                await channel.send(bytes(SMALL))
            sent = 0
            async for event in events:
                sent += isinstance(event, MessageSent)
                if sent == each:
                    return

        begun, before = time.perf_counter(), time.process_time()
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as tasks:
                for channel in channels:
                    tasks.start_soon(send, channel)
        spent_s, cpu_s = time.perf_counter() - begun, time.process_time() - before
        return each * count / spent_s, 1000 * cpu_s / (each * count)


if __name__ == "__main__":
    sys.exit(main())
