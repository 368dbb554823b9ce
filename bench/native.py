"""`make bench WHAT=native`: light clients and channels over libp2p, and over REST, in one run.

Against go-waku in a separate process (`interop/waku/node`, without rate limits); for REST each
participant has a second one in front of it, as two would take each other's messages there. CPU
times are those of this process alone, so that they mean something on a busy machine; rates and
latencies are wall time and do not. `bench/results/native.json` has them all, and the load.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from itertools import count as counting
from pathlib import Path
from statistics import median
from typing import Final

import anyio
import httpx

from interop.go_build import GoUnavailable, built
from interop.waku.bench import Bench
from interop.waku.flow import Kind, play
from interop.waku.images import GO_OPTIONS, NODE_SOURCES
from reliable_channel import ReliableChannel
from reliable_channel.events import MessageReceived, MessageSent
from reliable_channel.sds import SdsOptions
from waku import LightClient, WakuMessage
from waku.topics import PubsubTopic, pubsub_topic_for

from .machine import this_machine
from .service_node import service_node, service_rate
from .workload import CHANNEL_ID, traffic

RESULTS: Final = Path(__file__).parent / "results" / "native.json"
ADDRESS: Final = "127.0.0.91"
"""On loopback, so that the node's fixed ports are free."""
GATEWAYS: Final = ("127.0.0.92", "127.0.0.93")
"""Nodes of one participant each, over REST."""
TOPIC: Final = "/reliable-channel/1/bench-native/proto"
ROUNDS: Final = 3
HISTORIES: Final = {
    "join": (10, False),
    "join_default": (SdsOptions().causal_history_size, True),
}
"""References of each message in Store, and True if it has a bloom filter: 1 kB, or 41 kB."""
AT_ONCE: Final = 8
BESIDE_JS: Final[dict[str, Kind]] = {"js": "js", "beside_js": "native"}
SMALL, LARGE = 200, 19_000
IN_FLIGHT: Final = 20
SERVED: Final = 4_000
"""Messages through the Python service node: its CPU time is known to 10 ms."""
STARTING_S: Final = 30
PATIENCE_S: Final = 300


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench WHAT=native", description=__doc__)
    parser.add_argument("--messages", type=int, default=300, help="of each measurement")
    parser.add_argument("--history", type=int, default=10_000, help="of a newcomer; 0 for none")
    parser.add_argument("--js", action="store_true", help="js-waku's channels, too, in containers")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the JSON goes")
    options = parser.parse_args()
    try:
        program = built(NODE_SOURCES, *GO_OPTIONS, cgo=True, install=True)
    except GoUnavailable as error:
        print(f"go-waku cannot be built: {error}", file=sys.stderr)
        return 3
    figures = beside_js() if options.js else {}
    with node(program, ADDRESS):
        peer = address_of(ADDRESS)
        with (
            node(program, GATEWAYS[0], "-gateway", peer),
            node(program, GATEWAYS[1], "-gateway", peer),
        ):
            figures |= asyncio.run(measure(peer, options.messages, options.history))
    with service_node() as served:
        rate = asyncio.run(middle(partial(service_rate, served, served.addresses[0], SERVED)))
    figures["service_per_s"] = round(rate)
    machine = this_machine(None)
    written = {**figures, "messages": options.messages, "load_average": machine.load_average}
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text(json.dumps(written, indent=2) + "\n")
    for name, value in written.items():
        print(f"{name:<24} {value}")
    return 0


@contextmanager
def node(program: Path, address: str, *arguments: str) -> Iterator[None]:
    """A go-waku node of this run."""
    command = [str(program), "-address", address, *arguments]
    # Its log goes nowhere: one that nobody reads from a pipe stops it.
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=nowhere, stderr=nowhere) as process:
        try:
            wait_for(address)
            yield
        finally:
            process.kill()


def wait_for(address: str) -> None:
    """Wait until a node serves its REST API."""
    for _ in range(STARTING_S * 10):
        try:
            httpx.get(f"{rest_of(address)}/debug/v1/info").raise_for_status()
            return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise RuntimeError(f"go-waku does not start on {address}")


def rest_of(address: str) -> str:
    """The address of a node's REST API."""
    return f"http://{address}:8645"


def address_of(address: str) -> str:
    """The multiaddress of a node, by TCP."""
    info = httpx.get(f"{rest_of(address)}/debug/v1/info").json()
    return next(str(a) for a in info["listenAddresses"] if "/ws" not in a)


async def measure(peer: str, count: int, history: int) -> dict[str, float]:
    """Every figure; the median of three rounds."""
    figures: dict[str, float] = {}
    async with client(peer) as light:
        for name, size in (("light_push_200_ms", SMALL), ("light_push_19k_ms", LARGE)):
            figures[name] = await middle(partial(push_cost, light, count, size))
    figures["pushed_ms"] = await middle(partial(pushed_cost, peer, count))
    for prefix, shape in HISTORIES.items() if history else ():
        joined = [await join(peer, history, *shape) for _ in range(ROUNDS)]
        figures[f"{prefix}_s"] = median(wall for wall, _ in joined)
        figures[f"{prefix}_cpu_s"] = median(cpu for _, cpu in joined)
    sides = {"": (peer, peer), "rest_": (rest_of(GATEWAYS[0]), rest_of(GATEWAYS[1]))}
    for prefix, pair in sides.items():
        print(f"{prefix or 'libp2p_'}…", file=sys.stderr, flush=True)
        async with channels(pair) as (alice, bob):
            both = [await one_at_a_time(alice, bob, count // 3) for _ in range(ROUNDS)]
            figures[f"{prefix}both_ends_ms"] = median(cpu for cpu, _ in both)
            figures[f"{prefix}p50_ms"] = median(p50 for _, p50 in both)
            figures[f"{prefix}window_per_s"] = await middle(partial(window, alice, bob, count))
        figures[f"{prefix}sender_ms"] = await middle(partial(sender_cost, pair, count // 3))
    return {name: round(value, 3) for name, value in figures.items()}


async def middle(once: Callable[[], Awaitable[float]]) -> float:
    """The median of the rounds."""
    return median([await once() for _ in range(ROUNDS)])


def beside_js() -> dict[str, float]:
    """js-waku's channels and ours, in containers around one go-waku node, by turns."""
    figures: dict[str, float] = {}
    with Bench.open() as bench, bench.network("store") as network:
        numbers = counting()
        rounds = [
            [
                play(network, kind, next(numbers), alone=60, together=100)
                for kind in BESIDE_JS.values()
            ]
            for _ in range(2)
        ]
    for name, flows in zip(BESIDE_JS, zip(*rounds, strict=True), strict=True):
        figures[f"{name}_p50_ms"] = median(alone.p50_ms for alone, _ in flows)
        figures[f"{name}_window_per_s"] = round(median(together.per_s for _, together in flows))
    return figures


async def join(peer: str, count: int, references: int, has_filter: bool) -> tuple[float, float]:
    """Seconds, and CPU seconds, until a newcomer has a history of so many messages in Store."""
    topic = f"/reliable-channel/1/bench-{time.time_ns()}/proto"
    shard = pubsub_topic_for(topic)
    messages = traffic(0, references, count, has_filter=has_filter)
    number = PubsubTopic.parse(shard).shard
    async with (
        LightClient(peer, cluster_id=1, shards=[number]) as light,
        anyio.create_task_group() as tasks,
    ):

        async def publish() -> None:
            for wire, _ in messages:
                sent = WakuMessage(wire, topic, timestamp=time.time_ns())
                await light.light_push(sent, shard)

        for _ in range(AT_ONCE):
            tasks.start_soon(publish)
    begun, before = time.perf_counter(), time.process_time()
    with anyio.fail_after(PATIENCE_S):
        async with ReliableChannel(
            peer, channel_id=CHANNEL_ID, sender_id="newcomer", content_topic=topic
        ) as channel:
            async for event in channel.events():
                count -= isinstance(event, MessageReceived)
                if not count:
                    break
            return time.perf_counter() - begun, time.process_time() - before


@asynccontextmanager
async def client(peer: str) -> AsyncIterator[LightClient]:
    """A light client that is connected."""
    shard = PubsubTopic.parse(pubsub_topic_for(TOPIC)).shard
    async with LightClient(peer, cluster_id=1, shards=[shard]) as light:
        await light.light_push(message(SMALL), pubsub_topic_for(TOPIC))
        yield light


def message(size: int) -> WakuMessage:
    """A message that was never published."""
    return WakuMessage(bytes(size), TOPIC, timestamp=time.time_ns())


async def push_cost(light: LightClient, count: int, size: int) -> float:
    """CPU ms of a light push, one by one."""
    shard = pubsub_topic_for(TOPIC)
    before = time.process_time()
    for _ in range(count):
        await light.light_push(message(size), shard)
    return 1000 * (time.process_time() - before) / count


async def pushed_cost(peer: str, count: int) -> float:
    """CPU ms of a message that is pushed to us, published by another process over REST."""
    shard = pubsub_topic_for(TOPIC)
    code = (
        "import base64,httpx,sys,time\n"
        f"with httpx.Client() as c:\n for _ in range({count}):\n"
        f"  c.post('{rest_of(ADDRESS)}/relay/v1/auto/messages', json={{'payload': 'aGVsbG8=', "
        f"'contentTopic': '{TOPIC}', 'timestamp': time.time_ns()}}).raise_for_status()\n"
    )
    async with client(peer) as light, light.subscribe(shard, [TOPIC]) as messages:
        before = time.process_time()
        publisher = await anyio.open_process([sys.executable, "-c", code])
        with anyio.fail_after(120):
            for _ in range(count):
                await messages.receive()
        spent = time.process_time() - before
        await publisher.wait()
    return 1000 * spent / count


@asynccontextmanager
async def channels(pair: tuple[str, str]) -> AsyncIterator[tuple[ReliableChannel, ReliableChannel]]:
    """Two participants that hear each other: meshes need a few heartbeats."""
    channel_id = f"bench-{time.time_ns()}"
    async with (
        ReliableChannel(pair[0], channel_id=channel_id, sender_id="alice") as alice,
        ReliableChannel(pair[1], channel_id=channel_id, sender_id="bob") as bob,
    ):
        with anyio.fail_after(PATIENCE_S):
            while not bob.log():
                await alice.send(b"are you there?")
                await anyio.sleep(1)
        yield alice, bob


async def one_at_a_time(
    alice: ReliableChannel, bob: ReliableChannel, count: int
) -> tuple[float, float]:
    """CPU ms a message of both ends, and the median ms from `send` to the application."""
    waits = []
    before = time.process_time()
    with anyio.fail_after(PATIENCE_S):
        for number in range(count):
            payload = b"%d %d" % (number, time.time_ns()) + bytes(SMALL)
            begun = time.perf_counter()
            await alice.send(payload)
            async for event in bob.events():
                if isinstance(event, MessageReceived) and event.content == payload:
                    break
            waits.append(time.perf_counter() - begun)
    return 1000 * (time.process_time() - before) / count, 1000 * median(waits)


async def sender_cost(pair: tuple[str, str], count: int) -> float:
    """CPU ms a message of a sender whose only receiver is another process."""
    channel_id = f"bench-{time.time_ns()}"
    listen = ["listen", "--node", pair[1], "--channel-id", channel_id, "--sender-id", "bob"]
    receiver = await anyio.open_process(
        [sys.executable, "-m", "reliable_channel", *listen], stdout=subprocess.DEVNULL
    )
    try:
        async with ReliableChannel(pair[0], channel_id=channel_id, sender_id="alice") as alice:
            events = alice.events()
            before = time.process_time()
            with anyio.fail_after(PATIENCE_S):
                for _ in range(count):
                    await alice.send(bytes(SMALL))
                    async for event in events:
                        if isinstance(event, MessageSent):
                            break
            return 1000 * (time.process_time() - before) / count
    finally:
        receiver.terminate()
        await receiver.wait()


async def window(alice: ReliableChannel, bob: ReliableChannel, count: int) -> float:
    """Messages a second with 20 in flight, from `send` to the other application."""
    room = anyio.Semaphore(IN_FLIGHT)
    begun = time.perf_counter()

    async def send() -> None:
        for number in range(count):
            await room.acquire()
            await alice.send(b"window %d" % number + bytes(SMALL))

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send)
            received = 0
            async for event in bob.events():
                if isinstance(event, MessageReceived) and event.content.startswith(b"window"):
                    room.release()
                    received += 1
                if received == count:
                    break
    return count / (time.perf_counter() - begun)


if __name__ == "__main__":
    sys.exit(main())
