"""What judging journals costs: `python -m bench.pipeline`, on Linux; `--spark` needs the extra.

CPU seconds of this process and all that it starts, so that a busy machine does not matter much.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from reliable_channel.pipeline.check import check
from reliable_channel.sds.bloom import BloomParameters
from tests.pipeline.generated import write_group

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Of this process and all its descendants, those that ended included."""
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(") ", 1)[1].split()
        except OSError:
            continue
        used = sum(map(int, fields[11:15]))
        stats[int(path.parent.name)] = int(fields[1]), used
    total, family = 0, {os.getpid()}
    for pid in sorted(stats):
        if pid in family or stats[pid][0] in family:
            family.add(pid)
            total += stats[pid][1]
    return total / TICKS_A_SECOND


def measured(run: Callable[[], object]) -> float:
    """The CPU seconds that something takes."""
    before = cpu_seconds()
    run()
    return cpu_seconds() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="5x2000,10x2000,20x2000,10x8000")
    parser.add_argument("--history", type=int, default=10)
    parser.add_argument("--bloom-capacity", type=int, default=0, help="0 for no bloom filters.")
    parser.add_argument("--spark", action="store_true", help="Judge on Spark as well.")
    arguments = parser.parse_args()
    for size in arguments.sizes.split(","):
        participants, messages = map(int, size.split("x"))
        with tempfile.TemporaryDirectory() as directory:
            paths = write_group(
                Path(directory),
                participants=participants,
                messages=messages,
                history=arguments.history,
                bloom=BloomParameters(capacity) if (capacity := arguments.bloom_capacity) else None,
            )
            rows = participants * messages
            mib = sum(path.stat().st_size for path in paths) / 2**20
            took = {"check": measured(lambda: check([directory]))}
            if arguments.spark:
                took["audit"] = measured(lambda: audit(directory))
        each = ", ".join(
            f"{name} {cpu:.1f} CPU s, {rows / cpu:,.0f} deliveries a CPU second"
            for name, cpu in took.items()
        )
        print(f"{participants} x {messages:,} = {rows:,} deliveries, {mib:.0f} MiB: {each}")


def audit(directory: str) -> None:
    from reliable_channel.pipeline.audit import read_facts, verdict
    from reliable_channel.pipeline.session import session

    facts = read_facts(session("local[2]"), [directory])
    assert verdict(facts, [directory]).holds
    facts.unpersist()


if __name__ == "__main__":
    main()
