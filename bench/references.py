"""What messages cost that refer to nothing: `python -m bench.references`.

Each message of a flood has a new sender and refers to 900 messages that do not exist, in 94 kB;
they come at 1 MB a second. CPU time is that of a participant's core and repairs, decoding included:
once with nothing kept, once with SQLite, writing included.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.timing import cpu_us
from reliable_channel.engine.repairs import Repairs
from reliable_channel.repair_policies import both
from reliable_channel.sds import SPEC, HistoryEntry, Message, SdsOptions, SdsProtocol
from reliable_channel.sds.changes import NO_RECORDER, Recorder
from reliable_channel.sds.options import RepairOptions
from reliable_channel.state import ArchiveOverlay, Identity, SqliteStateStore

CHANNEL_ID: Final = "bench"
START_MS: Final = 1_700_000_000_000
BYTES_PER_S: Final = 1_000_000
STEPS_A_WRITE: Final = 5
MAX_US: Final = {"none": 2_000, "sqlite": 4_000}
"""What a message may cost, by where its state goes."""


def flood(count: int, references: int) -> list[bytes]:
    """Messages with so many references to nothing each."""
    return [
        SPEC.codec.encode(
            Message(
                f"sybil {n}",
                f"{n:064x}",
                CHANNEL_ID,
                START_MS + n,
                [HistoryEntry(f"{n:032x}{i:032x}", bytes(32), "x") for i in range(references)],
                content=b"x",
            )
        )
        for n in range(count)
    ]


def measure(messages: Sequence[bytes], directory: Path | None) -> float:
    """CPU microseconds a message, in the mean, of one participant that receives them all."""
    now_ms, recorder = START_MS, NO_RECORDER if directory is None else Recorder()
    store = None if directory is None else SqliteStateStore(directory / "state.db")
    arguments: dict[str, Any] = {}
    if store is not None:
        store.open(Identity(CHANNEL_ID, "alice", "spec"))
        arguments = {"archive": ArchiveOverlay(store.archive())}
    core = SdsProtocol(
        CHANNEL_ID,
        "alice",
        now_ms=now_ms,
        random=Random(1).random,
        recorder=recorder,
        options=SdsOptions(repair=RepairOptions(repair_on_demand=True)),
        **arguments,
    )
    repairs = Repairs(core, both, now_ms=now_ms, retrieve_frequency_ms=10_000, has_store=True)

    def work() -> None:
        nonlocal now_ms
        for number, data in enumerate(messages):
            now_ms += len(data) * 1000 // BYTES_PER_S
            while (due_ms := core.next_deadline_ms()) is not None and due_ms <= now_ms:
                core.on_deadline(now_ms)
            core.receive(data, now_ms)
            repairs.step(now_ms)
            deque(chain(core.events(), core.outgoing()), maxlen=0)
            if store is not None and number % STEPS_A_WRITE == 0:
                store.write(core.changes())

    cost_us = cpu_us(len(messages), work)
    if store is not None:
        store.close()
    return cost_us


def main() -> int:
    """Measure; 1 where a figure is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.references", description=__doc__)
    parser.add_argument("--messages", type=int, default=400)
    parser.add_argument("--references", type=int, default=900)
    options = parser.parse_args()
    messages, missed = flood(options.messages, options.references), False
    for state, max_us in MAX_US.items():
        with TemporaryDirectory() as directory:
            cost_us = measure(messages, Path(directory) if state == "sqlite" else None)
        missed |= cost_us > max_us
        size = len(messages[0])
        share = cost_us / 1e6 * BYTES_PER_S / size
        print(
            f"state {state:6}: {cost_us / 1000:6.2f} ms for a message of {size:,} bytes "
            f"with {options.references} unknown references (wanted: {max_us / 1000:.0f} ms); "
            f"{100 * share:.1f} % of a core at 1 MB/s"
        )
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
