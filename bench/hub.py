"""`make bench WHAT=hub`: many channels of one process over one node, through a `ChannelHub`.

The node is a separate process. The channels are opened one after another, settle, idle, send one
message each, settle, are silent, and are closed one after another. CPU time is that of this
process, or of the node (Linux).
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Final

import anyio

from bench.machine import this_machine
from bench.memory import resident_bytes
from bench.service_node import ServiceNode, service_node
from reliable_channel import ChannelHub, ReliableChannel
from reliable_channel.diagnostics import TransportDegraded
from reliable_channel.events import MessageSent

RESULTS: Final = Path(__file__).parent / "results" / "hub.json"
TOPIC: Final = "/reliable-channel/1/bench-hub-{}/proto"
PAYLOAD: Final = bytes(64)
PATIENCE_S: Final = 300
"""Longest wait for the messages of a burst."""


class Meter:
    """Figures of one phase after another."""

    def __init__(self, node: ServiceNode) -> None:
        self.figures = {"memory_before_mb": resident_bytes() / 1e6}
        self._node = node

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begun, cpu, node_cpu = time.perf_counter(), time.process_time(), self._node.cpu_s()
        yield
        self.figures |= {
            f"{name}_s": time.perf_counter() - begun,
            f"{name}_cpu_s": time.process_time() - cpu,
            f"{name}_node_cpu_s": self._node.cpu_s() - node_cpu,
            f"{name}_memory_mb": resident_bytes() / 1e6,
        }


async def measure(plan: argparse.Namespace, node: ServiceNode) -> dict[str, float]:
    """Open, idle, send and close."""
    meter, seen, all_sent = Meter(node), Counter[type](), anyio.Event()

    async def read(channel: ReliableChannel) -> None:
        async for event in channel.events():
            seen[type(event)] += 1
            if seen[MessageSent] == plan.channels:
                all_sent.set()

    url = node.url if plan.transport == "rest" else node.addresses[0]
    async with ChannelHub(url) as hub, anyio.create_task_group() as readers:
        async with AsyncExitStack() as opened:
            channels = [
                hub.channel(
                    channel_id=f"bench-{number}",
                    sender_id="bench",
                    content_topic=TOPIC.format(number if plan.topics == "each" else "all"),
                    preset=plan.preset,
                )
                for number in range(plan.channels)
            ]
            with meter.phase("open"):
                for channel in channels:
                    await opened.enter_async_context(channel)
            for channel in channels:
                readers.start_soon(read, channel)
            await anyio.sleep(plan.settle)
            with meter.phase("idle"):
                await anyio.sleep(plan.seconds)
            with meter.phase("burst"), anyio.move_on_after(PATIENCE_S):
                for channel in channels:
                    await channel.send(PAYLOAD)
                await all_sent.wait()
            await anyio.sleep(plan.settle)
            with meter.phase("silent"):
                await anyio.sleep(plan.seconds)
            with meter.phase("close"):
                await opened.aclose()
    shares = {
        f"{name}_percent_of_a_core": 100 * meter.figures[f"{name}_cpu_s"] / plan.seconds
        for name in ("idle", "silent")
        if plan.seconds
    }
    counts = {"sent": seen[MessageSent], "transport_degraded": seen[TransportDegraded]}
    return meter.figures | shares | counts


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="make bench WHAT=hub", description=__doc__)
    parser.add_argument("--channels", type=int, default=200)
    parser.add_argument("--settle", type=float, default=60, help="seconds before each silence")
    parser.add_argument("--seconds", type=float, default=60, help="of each silence")
    parser.add_argument("--transport", choices=["rest", "libp2p"], default="rest")
    parser.add_argument("--preset", choices=["documented", "auto"], default="documented")
    parser.add_argument("--topics", choices=["one", "each"], default="one", help="for all, or each")
    plan = parser.parse_args(arguments)
    with service_node() as node:
        figures = anyio.run(measure, plan, node)
    load = this_machine(None).load_average
    written = {
        **vars(plan),
        **{name: round(value, 3) for name, value in figures.items()},
        "load_average": load,
    }
    RESULTS.write_text(json.dumps(written, indent=1) + "\n")
    for name, value in written.items():
        print(f"{name:<24} {value}")


if __name__ == "__main__":
    logging.getLogger("reliable_channel").setLevel(logging.ERROR)  # because events are counted
    main()
