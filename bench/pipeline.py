"""What judging journals costs: `python -m bench.pipeline`, on Linux; `--spark` needs the extra.

A case is groups joined by `+`: `20x10000` is a channel of 20 participants and 10,000 messages,
`10*10x5000` are ten such channels, and of `2x500000/1` only one participant's journal is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.processes import Taken, measured
from reliable_channel.sds.bloom import BloomParameters
from reliable_channel_audit.check import check
from tests.plugins.audit.generated import write_group

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Group(NamedTuple):
    """A channel, and what is kept of it."""

    channel_id: str
    participants: int
    messages: int
    journals: int

    @property
    def deliveries(self) -> int:
        return self.journals * self.messages


def groups(case: str) -> list[Group]:
    found: list[Group] = []
    for part in case.split("+"):
        parsed = re.fullmatch(r"(?:(\d+)\*)?(\d+)x(\d+)(?:/(\d+))?", part)
        if parsed is None:
            raise SystemExit(f"{part!r} is no group; give PARTICIPANTSxMESSAGES, as 20x10000")
        channels, participants, messages, journals = (int(n) if n else 0 for n in parsed.groups())
        for _ in range(channels or 1):
            name = f"channel{len(found):03}"
            found.append(Group(name, participants, messages, journals or participants))
    return found


def write(group: Group, directory: Path, history: int, bloom_capacity: int) -> None:
    """Write the journals of a group."""
    paths = write_group(
        directory / group.channel_id,
        participants=group.participants,
        messages=group.messages,
        history=history,
        bloom=BloomParameters(bloom_capacity) if bloom_capacity else None,
        channel_id=group.channel_id,
    )
    for path in paths[group.journals :]:
        path.unlink()


@contextmanager
def written(arguments: argparse.Namespace, case: str) -> Iterator[Path]:
    """A directory of journals, for as long as it is needed."""
    with ExitStack() as stack:
        if arguments.keep is None:
            path = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        elif (path := Path(arguments.keep, case.replace("/", "of"))).exists():
            yield path
            return
        make = partial(
            write,
            directory=path,
            history=arguments.history,
            bloom_capacity=arguments.bloom_capacity,
        )
        with ProcessPoolExecutor(os.cpu_count()) as processes:
            list(processes.map(make, sorted(groups(case), key=lambda each: -each.deliveries)))
        yield path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=["5x2000", "10x2000", "20x2000", "10x8000"])
    parser.add_argument("--history", type=int, default=10)
    parser.add_argument("--bloom-capacity", type=int, default=0, help="0 for no bloom filters.")
    parser.add_argument("--keep", help="Where journals stay, 2 KB a delivery, and are found again.")
    parser.add_argument("--no-check", action="store_true", help="Do not judge in this process.")
    parser.add_argument("--spark", action="store_true", help="Judge on Spark as well.")
    parser.add_argument("--report", action="store_true", help="Write the report as well.")
    parser.add_argument("--driver-memory", default="2g")
    arguments = parser.parse_args()
    started = None
    if arguments.spark or arguments.report:
        started = start(arguments.driver_memory)
    for case in arguments.cases:
        with written(arguments, case) as directory:
            rows = sum(group.deliveries for group in groups(case))
            size = sum(path.stat().st_size for path in directory.rglob("*.jsonl"))
            print(f"{case} = {rows:,} deliveries, {size / 2**20:,.0f} MiB", flush=True)
            if not arguments.no_check:
                tell("check", rows, measured(lambda: check([directory])))
            if started is not None:
                audit(started, directory, rows, with_report=arguments.report)


def start(driver_memory: str) -> SparkSession:
    """A session that did something already, so that the start of the JVM does not count."""
    from reliable_channel_audit.session import session

    started = session("local[2]", settings={"spark.driver.memory": driver_memory})
    with tempfile.TemporaryDirectory() as directory:
        write(Group("warm-up", 3, 100, 3), Path(directory), 10, 0)
        audit(started, Path(directory), 300)
    return started


def audit(spark: SparkSession, directory: Path, rows: int, *, with_report: bool = False) -> None:
    from reliable_channel_audit.audit import read_facts, read_said, verdict
    from reliable_channel_audit.report import write_report

    facts = read_facts(spark, [directory])
    tell("facts", rows, measured(facts.count))
    found = []
    tell("verdict", rows, measured(lambda: found.append(verdict(facts, [directory]))))
    assert found[0].holds, json.dumps(found[0].broken)
    if with_report:
        said = read_said(spark, [directory])
        with tempfile.TemporaryDirectory() as page:
            taken = measured(lambda: write_report(facts, found[0], Path(page), said=said))
        tell("report", rows, taken)
    facts.unpersist()


def tell(name: str, rows: int, taken: Taken) -> None:
    largest = ", ".join(f"{name} {size / 2**20:,.0f} MiB" for name, size in taken.largest.items())
    load = os.getloadavg()[0]
    print(
        f"  {name}: {taken.cpu_s:.1f} CPU s, {1e6 * taken.cpu_s / rows:.0f} us a delivery; "
        f"{taken.elapsed_s:.1f} s at load {load:.1f}; largest: {largest}",
        flush=True,
    )


if __name__ == "__main__":
    main()
