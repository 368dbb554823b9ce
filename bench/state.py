"""`make bench WHAT=state`: what a participant costs whose log is on disk, at 10 thousand messages
and at 10 million.

Each size is measured in a separate process, whose memory shows how much of the log it has: the
file is opened, the state restored, and messages with whole causal histories are received, each
step written before the next batch as a channel does it. The file is made first, by the log itself.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.workload import CHANNEL_ID, channel_time_ms, message_id, retrieval_hint, traffic
from reliable_channel.engine.archive_overlay import ArchiveOverlay
from reliable_channel.sds import CoreLimits, SdsOptions, SdsProtocol
from reliable_channel.sds.changes import Recorder
from reliable_channel.sds.message import LogEntry
from reliable_channel.state import Identity, SqliteStateStore

SIZES: Final = (10_000, 10_000_000)
ALICE: Final = Identity(CHANNEL_ID, "alice", "spec")
STEPS_A_WRITE: Final = 50
"""What a busy channel writes together."""
RECEIVED: Final = 5_000
WANTED: Final = {"opened": 2.0, "growth": 1.5, "resident": 300.0}
CONTENT_BYTES: Final = 64


@dataclass(frozen=True, slots=True)
class Figures:
    messages: int
    file_mb: float
    open_s: float
    receive_us: float
    """CPU time of all threads for each message, with everything that is written."""
    receive_wall_us: float
    resident_mb: float
    """At the end, all of the process."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each size and compare; 1 where a figure is missed."""
    parser = argparse.ArgumentParser(prog="make bench WHAT=state", description=__doc__)
    parser.add_argument("--messages", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--directory", type=Path, help="where the files go, some GB of them")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure is not None:
        print(json.dumps(asdict(_measure(options.measure, options.messages[0]))))
        return 0
    found = []
    with TemporaryDirectory(dir=options.directory) as directory:
        for messages in options.messages:
            path = Path(directory) / f"{messages}.db"
            _build(path, messages)
            command = [sys.executable, "-m", "bench.state", "--messages", str(messages)]
            told = subprocess.run(
                [*command, "--measure", str(path)], check=True, capture_output=True, text=True
            )
            found.append(Figures(**json.loads(told.stdout)))
            path.unlink()
    return _report(found)


def _begin(path: Path, messages: int) -> tuple[SqliteStateStore, SdsProtocol, ArchiveOverlay]:
    store = SqliteStateStore(path)
    saved = store.open(ALICE)
    overlay = ArchiveOverlay(store.archive())
    core = SdsProtocol(
        CHANNEL_ID,
        "alice",
        now_ms=channel_time_ms(messages),
        random=Random(1).random,
        options=SdsOptions(limits=CoreLimits(log_entries=2 * messages + RECEIVED)),
        recorder=Recorder(),
        archive=overlay,
    )
    core.restore(saved.tables, saved.newest, channel_time_ms(messages))
    return store, core, overlay


def _build(path: Path, messages: int) -> None:
    """Write a log of that many messages."""
    store, core, _ = _begin(path, messages)
    content = bytes(CONTENT_BYTES)
    batch = 10_000
    for start in track(
        range(0, messages, batch),
        description=f"writing {messages:,} messages",
        console=Console(stderr=True),
    ):
        for number in range(start, min(start + batch, messages)):
            core.log.insert(
                LogEntry(
                    message_id(number),
                    f"peer-{number % 8}",
                    channel_time_ms(number),
                    content,
                    retrieval_hint(number),
                )
            )
        store.write(core.changes())
    store.close()


def _measure(path: Path, messages: int) -> Figures:
    began = time.perf_counter()
    store, core, overlay = _begin(path, messages)
    open_s = time.perf_counter() - began
    incoming = traffic(messages, core.options.causal_history_size, RECEIVED)
    now_ms = channel_time_ms(messages + RECEIVED)
    cpu_ns = wall_ns = 0
    while batch := list(islice(incoming, STEPS_A_WRITE)):
        cpu_began, wall_began = time.process_time_ns(), time.perf_counter_ns()
        for message in batch:
            core.receive(message.wire, now_ms, retrieval_hint=message.retrieval_hint)
            core.events.clear()
        changes = core.changes()
        overlay.add(changes)
        store.write(changes)
        overlay.remove(changes)
        cpu_ns += time.process_time_ns() - cpu_began
        wall_ns += time.perf_counter_ns() - wall_began
    if core.counters.delivered != RECEIVED or len(core.log) != messages + RECEIVED:
        raise RuntimeError(f"{core.counters.delivered} of {RECEIVED} messages were delivered")
    figures = Figures(
        messages,
        path.stat().st_size / 1e6,
        open_s,
        cpu_ns / 1000 / RECEIVED,
        wall_ns / 1000 / RECEIVED,
        _resident_mb(),
    )
    store.close()
    return figures


def _resident_mb() -> float:
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1000


def _report(found: Sequence[Figures]) -> int:
    table = Table(title="A participant with its log on disk (SQLite, durability=process)")
    names = ("messages", "file MB", "open s", "receive µs (CPU)", "receive µs (wall)", "RSS MB")
    for name in names:
        table.add_column(name, justify="right")
    for each in found:
        table.add_row(
            f"{each.messages:,}",
            f"{each.file_mb:,.0f}",
            f"{each.open_s:.2f}",
            f"{each.receive_us:.1f}",
            f"{each.receive_wall_us:.1f}",
            f"{each.resident_mb:.0f}",
        )
    console = Console()
    console.print(table)
    largest = found[-1]
    reached = {
        "opened": largest.open_s,
        "growth": largest.receive_us / found[0].receive_us,
        "resident": largest.resident_mb,
    }
    for name, value in reached.items():
        verdict = "reached" if value <= WANTED[name] else "MISSED"
        console.print(f"{name}: {value:.2f}, wanted at most {WANTED[name]:g}: {verdict}")
    return int(any(value > WANTED[name] for name, value in reached.items()))


if __name__ == "__main__":
    sys.exit(main())
