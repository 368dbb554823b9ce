"""`make bench-churn`: light clients come and go, and a service node must not grow by it.

    make bench-churn                            # ten minutes, 300 connections, 10 new a second
    make bench-churn ARGS="--seconds 3600"      # an hour

Each client subscribes and pushes; at the end of its time a third of them end their connections, a
third vanish in the middle of a request, and a third vanish with a subscription. Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import deque
from dataclasses import asdict, dataclass
from typing import Final

import anyio
from anyio.abc import TaskStatus

from waku.libp2p import KeyType, Multiaddr, PrivateKey
from waku.libp2p.driver import Host, Stream
from waku.models import WakuMessage
from waku.p2p import codec
from waku.p2p.codec import FilterRequest
from waku.p2p.protocols import FILTER_PUSH, FILTER_SUBSCRIBE, LIGHT_PUSH_3, MAX_ANSWER_BYTES
from waku.topics import pubsub_topic_for

from .service_node import TOPIC, ServiceNode, service_node

MAX_GROWTH_BYTES: Final = 5_000_000
PATIENCE_S: Final = 60
LOOK_S: Final = 0.02
FIRST_TURN: Final = 3
"""Times the connections: measured, memory stops growing between 500 and 750 connects of 300."""
SHARD: Final = pubsub_topic_for(TOPIC)


@dataclass(frozen=True, slots=True)
class Churned:
    """What a service node had before and after."""

    connects: int
    descriptors_before: int
    descriptors_after: int
    memory_before_bytes: int
    memory_after_bytes: int

    @property
    def growth_bytes(self) -> int:
        """Memory that did not come back."""
        return self.memory_after_bytes - self.memory_before_bytes


class Visitor:
    """A light client with a separate key, on one connection; `stay` is its task."""

    def __init__(self, number: int) -> None:
        self.leave = anyio.Event()
        self._number = number

    async def stay(self, address: str, *, task_status: TaskStatus[None]) -> None:
        """Connect, subscribe to a topic, push a message to it, and leave in one of three ways."""
        key = PrivateKey(KeyType.SECP256K1, os.urandom(32))
        async with Host(key, handlers={FILTER_PUSH: self._read}) as host:
            self._link = await host.dial(Multiaddr.parse(address))
            topic = f"/churn/1/{self._number % 50}/proto"
            request = codec.encode_filter_request("1", FilterRequest.SUBSCRIBE, SHARD, [topic])
            await self._ask(FILTER_SUBSCRIBE, request)
            # Not for Store, which is to grow with messages.
            sent = WakuMessage(os.urandom(200), topic, timestamp=self._number, ephemeral=True)
            await self._ask(LIGHT_PUSH_3, codec.encode_light_push("2", sent, SHARD))
            task_status.started()
            await self.leave.wait()
            if self._number % 3 == 1:
                await self._link.open([LIGHT_PUSH_3]).send(b"\xff\x01half of a request")
            elif self._number % 3 == 2:
                self._link.close()

    async def _ask(self, protocol: str, request: bytes) -> None:
        async with self._link.open([protocol]) as stream:
            answer = await stream.request(request, MAX_ANSWER_BYTES)
        if answer is None or codec.decode_answer(answer).status != codec.OK:
            raise RuntimeError(f"{protocol} is refused: {answer!r}")

    async def _read(self, stream: Stream) -> None:
        while await stream.receive():
            pass


async def churn(
    node: ServiceNode, *, connections: int, connects: int, pause_s: float = 0.0
) -> Churned:
    """Have clients come and go; compare the node after it with the node after a first turn."""
    # What a process takes once is no growth: memory for all at once, and for some that leave.
    await _turn(node, connections, FIRST_TURN * connections, 0)
    descriptors, memory = await _settled(node), node.memory_bytes()
    await _turn(node, connections, connects, pause_s)
    after = await _settled(node, descriptors)
    return Churned(connects, descriptors, after, memory, node.memory_bytes())


async def _turn(node: ServiceNode, connections: int, connects: int, pause_s: float) -> None:
    here: deque[Visitor] = deque()
    begun, full = anyio.current_time(), node.descriptors() + connections
    async with anyio.create_task_group() as tasks:
        for number in range(connects):
            await anyio.sleep_until(begun + number * pause_s)
            if len(here) == connections:
                here.popleft().leave.set()
            # On a busy machine the node notices late that a client left: more at once take more
            # memory, which a process keeps.
            while node.descriptors() >= full:  # noqa: ASYNC110 - another process
                await anyio.sleep(LOOK_S)
            visitor = Visitor(number)
            here.append(visitor)
            await tasks.start(visitor.stay, node.addresses[number % 2])
        for visitor in here:
            visitor.leave.set()


async def _settled(node: ServiceNode, expected: int | None = None) -> int:
    """Descriptors once the node has noticed that all are gone."""
    with anyio.move_on_after(PATIENCE_S):
        before = -1
        while (now := node.descriptors()) != before or (expected is not None and now > expected):
            before = now
            await anyio.sleep(1)
    return node.descriptors()


def main() -> int:
    """Run, print, and compare with what is allowed."""
    parser = argparse.ArgumentParser(prog="python -m bench.churn", description=__doc__)
    parser.add_argument("--connections", type=int, default=300)
    parser.add_argument("--per-second", type=float, default=10)
    parser.add_argument("--seconds", type=float, default=600)
    given = parser.parse_args()

    async def run() -> Churned:
        return await churn(
            node,
            connections=given.connections,
            connects=round(given.seconds * given.per_second),
            pause_s=1 / given.per_second,
        )

    with service_node() as node:
        churned = anyio.run(run)
    print(json.dumps({**asdict(churned), "growth_bytes": churned.growth_bytes}))
    left = churned.descriptors_after - churned.descriptors_before
    if left > 0 or churned.growth_bytes >= MAX_GROWTH_BYTES:
        print(f"{left} descriptors are left, {churned.growth_bytes} bytes", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
