"""`make bench WHAT=runtime`: what one message costs from `send` to `MessageReceived`, both ends.

Two channels over `memory://` write to each other in turns, so that each message acknowledges the
one before. Beside them the bare core does the same work: the difference is the way through the
engine and the runtime. CPU time of all threads, medians of several rounds. What it costs to begin
is measured with bytecode on disk, as an installed package has it.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Final

import anyio
from rich.console import Console
from rich.table import Table

import reliable_channel
from bench.machine import this_machine
from bench.timing import cpu_us, middle
from reliable_channel import ReliableChannel
from reliable_channel.events import MessageReceived
from reliable_channel.sds import SdsOptions, SdsProtocol

RESULTS: Final = Path(__file__).parent / "results" / "runtime.json"
PACKAGE: Final = str(Path(reliable_channel.__file__).parent)
WARM_UP: Final = 300
"""Messages before the first timed one: more than a causal history has."""
MESSAGES: Final = 200
"""Messages of one round."""
COUNTED: Final = 4
"""Messages whose calls are counted."""
IN_FLIGHT: Final = 20
CONTENT_BYTES: Final = 64
WANTED: Final = {
    "both_ends_us": 220.0,
    "with_state_us": 600.0,
    "with_state_20_us": 300.0,
    "open_cpu_ms": 200.0,
    "help_cpu_ms": 250.0,
}
_OPEN: Final = """
import time
began = time.process_time_ns()
import anyio
from reliable_channel import ReliableChannel
async def main():
    async with ReliableChannel("memory://bench", channel_id="bench", sender_id="alice"):
        pass
anyio.run(main)
print((time.process_time_ns() - began) / 1e6)
"""

_numbers: Final = count()


@dataclass(frozen=True, slots=True)
class Figures:
    """What one message costs, and what it costs to begin."""

    both_ends_us: float
    """Without state."""
    core_us: float
    """The part of the core: the same messages without engine and runtime."""
    with_state_us: float
    """Both ends on SQLite, one message after the other."""
    with_state_20_us: float
    """The same with 20 messages in flight."""
    calls: int
    """Python calls of this package for one message without state."""
    files: int
    """Files that these calls are in."""
    open_cpu_ms: float
    """Importing the package and opening a channel."""
    help_cpu_ms: float
    """`reliable-channel --help`, the whole process."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table and write `results/runtime.json`."""
    os.environ.setdefault("RELIABLE_CHANNEL_PLUGINS", "none")  # those of this checkout
    parser = argparse.ArgumentParser(prog="make bench WHAT=runtime", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds: int = parser.parse_args(arguments).rounds
    figures = measured(rounds)
    RESULTS.write_text(
        json.dumps({**asdict(figures), "machine": asdict(this_machine(None))}, indent=1) + "\n"
    )
    Console().print(_table(figures))
    return 0


def measured(rounds: int) -> Figures:
    """All figures, each the median of as many rounds."""
    calls, files = anyio.run(one_message)
    with TemporaryDirectory() as directory:
        state = f"sqlite:///{directory}/{{sender_id}}-"
        installed = as_installed(Path(directory))
        return Figures(
            both_ends_us=anyio.run(both_ends, rounds, None, 1),
            core_us=core(rounds),
            with_state_us=anyio.run(both_ends, rounds, f"{state}1.db", 1),
            with_state_20_us=anyio.run(both_ends, rounds, f"{state}20.db", IN_FLIGHT),
            calls=calls,
            files=files,
            open_cpu_ms=middle(opened_ms(installed) for _ in range(rounds)),
            help_cpu_ms=middle(_helped_ms(installed) for _ in range(rounds)),
        )


class _Pair:
    """Two channels that write to each other in turns."""

    def __init__(self, alice: ReliableChannel, bob: ReliableChannel) -> None:
        self._ends = [(alice, bob.events()), (bob, alice.events())]

    async def exchange(self, messages: int, in_flight: int) -> None:
        """Send messages and wait until each has been received."""
        for _ in range(messages // in_flight):
            sender, events = self._ends[0]
            self._ends.reverse()
            if in_flight == 1:
                await sender.send(bytes(CONTENT_BYTES))
            else:
                async with anyio.create_task_group() as tasks:
                    for _ in range(in_flight):
                        tasks.start_soon(sender.send, bytes(CONTENT_BYTES))
            left = in_flight
            while left:
                left -= isinstance(await anext(events), MessageReceived)


@asynccontextmanager
async def _pair(state: str | None) -> AsyncIterator[_Pair]:
    name = f"bench-{next(_numbers)}"
    alice, bob = (
        ReliableChannel(f"memory://{name}", channel_id=name, sender_id=sender_id, state=state)
        for sender_id in ("alice", "bob")
    )
    async with alice, bob:
        pair = _Pair(alice, bob)
        await pair.exchange(WARM_UP, 1)
        yield pair


async def both_ends(rounds: int, state: str | None, in_flight: int) -> float:
    """CPU microseconds for each message that one end sends and the other receives."""
    async with _pair(state) as pair:
        return median(
            [
                await _cpu_us(MESSAGES, lambda: pair.exchange(MESSAGES, in_flight))
                for _ in range(rounds)
            ]
        )


async def _cpu_us(messages: int, work: Callable[[], Awaitable[None]]) -> float:
    """As `cpu_us`, for work that awaits."""
    gc.collect()
    before = time.process_time_ns()
    await work()
    return (time.process_time_ns() - before) / 1000 / messages


def core(rounds: int) -> float:
    """CPU microseconds of the cores for each message."""
    now_ms = 1_700_000_000_000
    ends = [
        SdsProtocol("bench", name, now_ms=now_ms, random=Random(name).random, options=SdsOptions())
        for name in ("alice", "bob")
    ]
    clock = count(now_ms)

    def exchange(messages: int) -> None:
        for _ in range(messages):
            now_ms = next(clock)
            sender, receiver = ends
            ends.reverse()
            sender.send(bytes(CONTENT_BYTES), now_ms)
            for outgoing in sender.outgoing:
                sender.dispatched(outgoing.message_id, now_ms, bytes(32))
                receiver.receive(outgoing.data, now_ms, retrieval_hint=bytes(32))
            sender.outgoing.clear()
            for end in ends:
                end.events.clear()

    exchange(WARM_UP)
    return middle(cpu_us(MESSAGES, lambda: exchange(MESSAGES)) for _ in range(rounds))


async def one_message() -> tuple[int, int]:
    """The calls of this package that one message takes, and the files they are in.

    Of several messages the one with the fewest: a deadline may fall into the time of another.
    """
    counted: list[list[str]] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PACKAGE):
            counted[-1].append(path)

    async with _pair(None) as pair:
        for _ in range(COUNTED):
            counted.append([])
            threading.setprofile(note)
            sys.setprofile(note)
            try:
                await pair.exchange(1, 1)
            finally:
                sys.setprofile(None)
                threading.setprofile(None)
    calls = min(counted, key=len)
    return len(calls), len(set(calls))


def as_installed(bytecode: Path) -> dict[str, str]:
    """The environment of a process that finds bytecode in that folder, as pip leaves it; in this
    one, `PYTHONDONTWRITEBYTECODE` may keep each process compiling the whole package anew."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(bytecode), "COLUMNS": "100"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    opened_ms(environment)
    _helped_ms(environment)
    return environment


def opened_ms(environment: Mapping[str, str]) -> float:
    """CPU milliseconds of importing the package and opening a channel."""
    command = [sys.executable, "-c", _OPEN]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return float(ran.stdout)


def _helped_ms(environment: Mapping[str, str]) -> float:
    before = _children_s()
    subprocess.run(
        [sys.executable, "-m", "reliable_channel", "--help"],
        check=True,
        stdout=subprocess.DEVNULL,
        env=environment,
    )
    return 1000 * (_children_s() - before)


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _table(figures: Figures) -> Table:
    table = Table(title="One message from send to MessageReceived, over memory://")
    for name in ("figure", "value", "wanted at most"):
        table.add_column(name, justify="left" if name == "figure" else "right")
    for name, value in asdict(figures).items():
        wanted = WANTED.get(name)
        table.add_row(name, f"{value:,.0f}", "" if wanted is None else f"{wanted:,.0f}")
    return table


if __name__ == "__main__":
    sys.exit(main())
