"""A driver killed in the middle of its stream and started again: all once, nothing missing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from reliable_channel_audit.lines import line_of
from reliable_channel_audit.live import _COLUMNS
from reliable_channel_audit.live_audit.alarms import WATCHED, Watch

from ..generated import write_group
from .cluster import ENVIRONMENT

SEED = int(os.environ.get("PIPELINE_SEED", "1"))
CHUNKS = 60
"""Of each journal; the first is there before the first driver starts."""
PRINTED = ("Streaming TransformWithState", "WARNING: Using incubator modules")
SETTLED = ("acknowledged", "failed", "recovered", "lost")


class World:
    """Journals that grow while they are read."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self._whole = {}
        for path in write_group(directory, participants=3, messages=150, seed=seed):
            self._whole[path] = path.read_bytes()
            path.write_bytes(b"")
        self._chunk = 0
        self.write()

    def write(self, *, all_of_it: bool = False) -> None:
        """Let the journals grow, to an end that need not be that of a line."""
        self._chunk = CHUNKS if all_of_it else min(self._chunk + 1, CHUNKS)
        for path, text in self._whole.items():
            begin, end = path.stat().st_size, len(text) * self._chunk // CHUNKS
            with path.open("ab") as file:
                file.write(text[begin:end])

    def settled(self) -> Counter[tuple[str, str, str]]:
        """What there is to tell for certain; when an alarm is told depends on the batches."""
        found: Counter[tuple[str, str, str]] = Counter()
        for path, text in self._whole.items():
            lines = [line_of(line) for line in text.splitlines()]
            watched = [
                tuple(getattr(line, name) for name in _COLUMNS)
                for line in lines
                if line.event in WATCHED
            ]
            notices = Watch().take(sorted(watched, key=lambda line: line[0]), 0)
            found.update((path.stem, notice.kind, notice.message_id) for notice in notices)
        return found


@contextmanager
def driver(world: World, out: Path, log: Path, *flags: str) -> Iterator[subprocess.Popen[str]]:
    """The driver, its JVM and its workers, a group of processes of their own."""
    command = [sys.executable, "-m", "audit_tests.on_spark.watching"]
    command += [str(world.directory), str(out), *flags]
    with (
        log.open("w", encoding="utf-8") as file,
        subprocess.Popen(
            command,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def unfinished(out: Path) -> dict[str, bool]:
    """Which streams have a batch that was begun and not ended."""
    return {
        path.name: newest(path / "offsets") > newest(path / "commits")
        for path in sorted((out / "checkpoints").iterdir())
    }


def newest(directory: Path) -> int:
    return max((int(path.name) for path in directory.glob("[0-9]*")), default=-1)


def test_everything_is_there_once_though_the_driver_is_killed(
    spark: SparkSession, tmp_path: Path
) -> None:
    random = Random(SEED)
    print(f"PIPELINE_SEED={SEED}")
    world = World(tmp_path / "journals", SEED)
    log = tmp_path / "killed.log"
    for whom in ("driver, JVM and workers", "driver"):
        wanted, delay_s = random.randint(1, 4), random.uniform(0, 0.5)
        with driver(world, tmp_path, log) as process:
            assert process.stdout is not None
            for _ in range(wanted):
                assert process.stdout.readline(), log.read_text()[-4_000:]
                world.write()
            time.sleep(delay_s)
            assert process.poll() is None
            if whom == "driver":
                process.kill()  # the JVM sees it and ends by itself
                process.wait()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        print(f"killed {whom} {delay_s:.3f} s after {wanted} batches: {unfinished(tmp_path)}")
    world.write(all_of_it=True)
    log = tmp_path / "last.log"  # a JVM that dies with its driver may still write to the other
    with driver(world, tmp_path, log, "--last") as process:
        told, _ = process.communicate()
        assert process.returncode == 0, log.read_text()[-4_000:]
    print(f"then {len(told.splitlines())} batches")
    said = filter(None, log.read_text().splitlines())
    # Nothing of what Spark and Java like to say, but what no setting stops.
    assert [line for line in said if not any(map(line.__contains__, PRINTED))] == []

    notices = spark.read.parquet(str(tmp_path / "notices")).collect()
    found = Counter((row.participant_id, row.kind, row.message_id) for row in notices)
    assert set(found.values()) == {1}
    assert Counter(key for key in found if key[1] in SETTLED) == world.settled()
