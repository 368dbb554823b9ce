"""One libp2p peer at full speed against a process with a node, a `LightClient` or a `RelayLeaf`.

python -m tests.hostile.one_peer [--seconds 20] [--target node|client|leaf] [ATTACK …]

A line for each attack: median latency (ms) of an honest light push before and during it, memory of
the attacked process (MiB) before and at most, and when the attacker's connection first ended. A
node's attacker comes back at once. Loopback alone; the load of the machine is printed.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median

import anyio

from tests import inside
from tests.waku.libp2p.test_muxers import ACK, PING, m, y
from waku import LightClient, RelayLeaf, WakuMessage
from waku.libp2p import Connection, KeyType, Multiaddr, PrivateKey
from waku.libp2p.driver import Host, Link
from waku.libp2p.gossipsub import RELAY
from waku.libp2p.gossipsub_pb2 import GossipRpc
from waku.libp2p.multistream import MULTISTREAM, line
from waku.libp2p.varint import prefixed
from waku.node import EmbeddedNode, Listen, NodeOptions

SHARD, TOPIC, WHERE = "/waku/2/rs/42/0", "/app/1/one-peer/proto", "/ip4/127.0.0.1/tcp/0"
OPTIONS = NodeOptions(cluster_id=42, num_shards=1, service_requests_per_s=1e6)
QUIET_S = 4


def opened(number: int, protocol: str) -> bytes:
    return m(number, 0) + m(number, 2, line(MULTISTREAM) + line(protocol))


def gossip(kind: str, **fields: object) -> bytes:
    rpc = GossipRpc()
    getattr(rpc.control, kind).add(**fields)
    return prefixed(rpc.SerializeToString()) * 500


def pings(number: int) -> bytes:
    return (b"" if number else opened(0, "/ipfs/ping/1.0.0")) + m(0, 2, b"p" * 960_000)


def open_reset(number: int) -> bytes:
    numbers = range(256 * number, 256 * number + 256)
    return b"".join(opened(n, "/ipfs/id/1.0.0") + m(n, 6) for n in numbers)


def tiny_chunks(number: int) -> bytes:
    begun = opened(number, "/vac/waku/metadata/1.0.0") + m(number, 2, b"\xe0\xd4\x03")
    return begun + m(number, 2, b"x") * 50_000


def ids(number: int) -> list[bytes]:
    return [b"%032d" % (20 * number + one) for one in range(20)]


ATTACKS: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "pings": ("mplex", pings),
    "pings_unread": ("mplex", pings),
    "nonsense": ("mplex", lambda _: bytes([42, 0]) * 30_000),
    "open_reset": ("mplex", open_reset),
    "open_reset_unread": ("mplex", open_reset),
    "tiny_chunks": ("mplex", tiny_chunks),
    "yamux_answers": ("yamux", lambda _: y(PING, ACK, 0, 7) * 5_000),
    "ws_pings": ("ws", lambda _: b""),
    "ihave": ("relay", lambda n: gossip("have", topic=SHARD, message_ids=ids(n))),
    "iwant": ("relay", lambda n: gossip("want", message_ids=ids(n))),
    "graft": ("relay", lambda _: gossip("graft", topic=SHARD)),
    "prune": ("relay", lambda _: gossip("prune", topic=SHARD, backoff_s=60)),
}


async def attack(name: str, link: Link, until_s: float) -> None:
    way, frames = ATTACKS[name]
    if name.endswith("_unread"):
        inside.pipe(link)._transport.pause_reading()  # noqa: SLF001
    stream = link.open([RELAY]) if way == "relay" else None
    number = 0
    while link.is_open and time.monotonic() < until_s:
        if stream is not None:
            link.connection.send(stream.id, frames(number))
        elif way == "ws":
            for _ in range(2_000):
                link._framing._protocol.send_ping(b"")  # type: ignore[attr-defined]  # noqa: SLF001
        else:
            inside.muxer(link.connection)._out += frames(number)  # noqa: SLF001
        number += 1
        with anyio.move_on_after(until_s - time.monotonic()):
            await link.flush()


async def attacker(name: str, target: str, address: str, seconds: float) -> None:
    """Attack the node at an address; or clients and leaves, who come to the one that is printed."""
    if ATTACKS[name][0] == "mplex":
        Connection.__init__.__kwdefaults__["muxers"] = ("/mplex/6.7.0",)  # type: ignore[index]
    where, ends, begun_s = (WHERE + "/ws" * (ATTACKS[name][0] == "ws"),), [], 0.0
    async with AsyncExitStack() as stack:
        if target == "node":
            host = await stack.enter_async_context(Host(PrivateKey(KeyType.ED25519, bytes(32))))
        elif target == "client":
            node = EmbeddedNode(OPTIONS, listen=Listen(where))
            await stack.enter_async_context(node)
            print(node.libp2p_addresses[0], flush=True)
            host = inside.host(node.network)
        else:
            leaf = RelayLeaf((), cluster_id=42, shards=[0], listen=where)
            await stack.enter_async_context(leaf)
            print(leaf.addresses[0], flush=True)
            host = inside.host(leaf)
        while not begun_s or time.monotonic() < begun_s + seconds:
            links = [link for link in host.links if link.connection.remote is not None]
            if target == "node":
                links = [await host.dial(Multiaddr.parse(address))]
            elif not links:
                await anyio.sleep(0.01)
            for link in links:
                begun_s = begun_s or time.monotonic()
                if target != "node":
                    await anyio.sleep(1)  # it has greeted
                try:
                    await attack(name, link, begun_s + seconds)
                except Exception as error:
                    print(f"# {error}", file=sys.stderr)
                if not link.is_open and time.monotonic() < begun_s + seconds:
                    ends.append(time.monotonic() - begun_s)
    print(f"{ends[0]:.1f} s, {len(ends)} times" if ends else "not ended", flush=True)


def memory_mib(pid: int | str) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def measured(
    honest: str,
    pid: int | str,
    begin: Callable[[], Awaitable[object]],
    report: Callable[[str], object],
    seconds: float,
) -> None:
    """Push all the time; `begin` the attack after some seconds."""
    found: tuple[list[float], list[float]] = [], []
    memory: tuple[list[float], list[float]] = [], []
    async with LightClient(honest, cluster_id=42, request_timeout_ms=60_000) as light:
        for part, part_s in enumerate((QUIET_S, seconds)):
            if part:
                await begin()
            until_s = time.monotonic() + part_s
            while time.monotonic() < until_s:
                begun_s = time.monotonic()
                sent = WakuMessage(os.urandom(200), TOPIC, timestamp=time.time_ns())
                await light.light_push(sent, SHARD)
                found[part].append(1000 * (time.monotonic() - begun_s))
                memory[part].append(memory_mib(pid))
                await anyio.sleep(0.02)
        before, during = map(median, found)
        report(
            f"{before:5.1f} {during:6.1f} ({during / before:4.1f}x, worst {max(found[1]):5.0f})"
            f" {memory[0][-1]:4.0f} {max(memory[1]):4.0f} (+{max(memory[1]) - memory[0][-1]:.0f})"
        )


async def victim(target: str, hostile: str, honest: str, seconds: float) -> None:
    """A client or leaf with a hostile peer, beside a client with an honest one."""
    made = LightClient if target == "client" else RelayLeaf
    stack = AsyncExitStack()

    async def begin() -> None:
        other = made(
            hostile, cluster_id=42, shards=[0], on_event=lambda e: print("#", e, file=sys.stderr)
        )
        await stack.enter_async_context(other)
        await stack.enter_async_context(other.subscribe(SHARD, [TOPIC]))  # it stays connected

    def report(text: str) -> None:
        print(text, flush=True)
        os._exit(0)

    await measured(honest, "self", begin, report, seconds)


async def serve() -> None:
    async with EmbeddedNode(OPTIONS, listen=Listen((WHERE, WHERE + "/ws"))) as node:
        print(*node.libp2p_addresses, flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)


def started(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def run(target: str, name: str, seconds: float) -> None:
    node = started("--role", "serve")
    tcp, ws = line_of(node).split()
    if target == "node":
        goal = ws if ATTACKS[name][0] == "ws" else tcp
        attackers: list[subprocess.Popen[str]] = []
        results: list[str] = []

        async def begin() -> None:
            attackers.append(started("--role", "attack", target, name, seconds, goal))

        anyio.run(measured, tcp, node.pid, begin, results.append, seconds)
        hostile, result = attackers[0], results[0]
    else:
        hostile = started("--role", "attack", target, name, seconds, "")
        beside = started("--role", "victim", target, line_of(hostile), tcp, seconds)
        result = line_of(beside)
    print(f"{target:6} {name:18} {result}  {line_of(hostile)}  load {os.getloadavg()[0]:.0f}")
    sys.stdout.flush()
    for process in (hostile, node):
        process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--target", choices=("node", "client", "leaf"), default="node")
    parser.add_argument("--role", default="")
    parser.add_argument("rest", nargs="*")
    given = parser.parse_args()
    if given.role == "serve":
        anyio.run(serve)
    elif given.role == "attack":
        target, name, seconds, address = given.rest
        anyio.run(attacker, name, target, address, float(seconds))
    elif given.role == "victim":
        target, hostile, honest, seconds = given.rest
        anyio.run(victim, target, hostile, honest, float(seconds))
    else:
        for name, (way, _) in ATTACKS.items():
            if (not given.rest or name in given.rest) and (way == "relay") <= (
                given.target == "leaf"
            ):
                run(given.target, name, given.seconds)


if __name__ == "__main__":
    main()
