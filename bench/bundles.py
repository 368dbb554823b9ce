"""What hostile bundles do to honest messages: `python -m bench.bundles`, each kind in a process.

Two `auto` channels over a network in memory. alice writes ten times a second; then eve broadcasts
10 kB/s beside her, in reconciliation messages of one kind, each of another sender. Latency is from
`send` at alice's to `MessageReceived` at bob's.
"""

import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from functools import partial
from itertools import count
from statistics import median
from typing import Final

import anyio

from bench.memory import resident_bytes
from reliable_channel import ReliableChannel
from reliable_channel.events import MessageReceived
from reliable_channel.sds.dialects import SpecCodec, sds_pb2
from reliable_channel.sds.message import HistoryEntry, Message, Reconciling
from reliable_channel.transport import MemoryNetwork

BYTES_PER_S: Final = 10_000
SECONDS: Final = 20
PAUSE_S: Final = 0.1
PATIENCE_S: Final = 120
_numbers: Final = count()


def entry(references: int = 0) -> bytes:
    """A new message, as short as may be, with that many references to nothing."""
    name, now_ms = f"{next(_numbers):x}", time.time_ns() // 1_000_000
    after = [HistoryEntry(f"{name}.{i:x}") for i in range(references)]
    return SpecCodec().encode(Message("e", name, "bench", now_ms, after, content=b"x"))


def bundle(count: int, make: Callable[[], bytes] = entry, fill: int = 0) -> bytes:
    """A message with so many in one, filled up to so many bytes each."""
    name, now_ms = f"eve {next(_numbers)}", time.time_ns() // 1_000_000
    raw = sds_pb2.Reconciling(bundle=[make() for _ in range(count)]).SerializeToString()
    said = Reconciling(packed=zlib.compress(raw).ljust(fill * count, b"\0"))
    return SpecCodec().encode(Message(name, name, "bench", now_ms, reconciling=said))


KINDS: Final[dict[str, Callable[[], bytes]]] = {
    "900,000 empty": lambda: bundle(900_000, bytes),
    "600,000 of a byte": lambda: bundle(600_000, lambda: b"x"),
    "45,000 times the same": lambda: bundle(45_000, partial(bytes, entry())),
    "30,000 new, a reference each": lambda: bundle(30_000, partial(entry, 1)),
    "500 times the same, filled": lambda: bundle(500, partial(bytes, entry()), 98),
    "500 new, filled": lambda: bundle(500, fill=98),
    "300 new, a reference each, filled": lambda: bundle(300, partial(entry, 1), 98),
    "10 new, 50 references each, filled": lambda: bundle(10, partial(entry, 50), 110),
    "a new one by itself, a reference": partial(entry, 1),
    "a new one by itself, 50 references": partial(entry, 50),
}


async def measured(kind: str, seconds: float) -> str:
    """Latencies (ms) before and beside an attack, and CPU time and memory of both channels."""
    network, sent, taken_ms = MemoryNetwork(), dict[bytes, float](), list[float]()
    eve, attack = network.transport(), list[bytes]()
    while sum(map(len, attack)) < BYTES_PER_S * seconds:
        attack.append(KINDS[kind]())

    def member(name: str) -> ReliableChannel:
        way = network.transport()
        return ReliableChannel(transport=way, channel_id="bench", sender_id=name, preset="auto")

    async def read(channel: ReliableChannel) -> None:
        async for event in channel.events():
            if isinstance(event, MessageReceived) and event.content in sent:
                taken_ms.append(1_000 * (time.monotonic() - sent.pop(event.content)))

    async def write(channel: ReliableChannel) -> str:
        taken_ms.clear()
        for number in range(int((seconds + PATIENCE_S) / PAUSE_S)):
            if number < seconds / PAUSE_S:
                content = b"%d honest" % next(_numbers)
                sent[content] = time.monotonic()
                await channel.send(content)
            elif not sent:
                break
            await anyio.sleep(PAUSE_S)
        late_ms = sorted(taken_ms)[len(taken_ms) * 95 // 100]
        return f"{median(taken_ms):.1f} (95 % {late_ms:.1f}, {len(sent)} not arrived)"

    async def broadcast() -> None:
        for data in attack:
            envelope = eve.envelope(data, timestamp_ns=time.time_ns(), ephemeral=True)
            await eve.publish(envelope)
            await anyio.sleep(len(data) / BYTES_PER_S)

    async with member("alice") as alice, member("bob") as bob, anyio.create_task_group() as tasks:
        tasks.start_soon(read, bob)
        before, before_bytes, cpu_s = await write(alice), resident_bytes(), time.process_time()
        tasks.start_soon(broadcast)
        beside, cpu_s = await write(alice), time.process_time() - cpu_s
        grown = (resident_bytes() - before_bytes) / 1024**2
        tasks.cancel_scope.cancel()
    return f"{kind:34} {before} -> {beside}, CPU {cpu_s:.1f} s, {grown:+.1f} MiB"


if __name__ == "__main__":
    if arguments := sys.argv[1:]:
        print(anyio.run(measured, arguments[0], float((*arguments, str(SECONDS))[1])))
    for each in () if arguments else KINDS:
        subprocess.run([sys.executable, "-m", "bench.bundles", each], check=True)
