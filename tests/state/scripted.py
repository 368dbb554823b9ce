"""A scripted run whose process is killed at each statement that it gives to SQLite, then reopened.

`python -m tests.state.scripted DIRECTORY` runs it once to learn what each step leaves behind, then
once more for every statement, each time in a process that kills itself there. What is found after
that must be what the last whole step left, and every step that was reported as written must be
there.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from reliable_channel.engine.archive_overlay import ArchiveOverlay
from reliable_channel.sds import CoreLimits, RepairOptions, SdsProtocol
from reliable_channel.sds.changes import Recorder
from reliable_channel.state import Identity, SqliteStateStore, change_log
from tests import inside
from tests.sds.test_restoring import remembered
from tests.sds.world import CHANNEL, NOW_MS, SECOND, forge, options, participant, send, taken

ALICE = Identity(CHANNEL, "alice", "spec")
OPTIONS: dict[str, Any] = {
    "limits": CoreLimits(log_window_entries=4, log_entries=12),
    "repair": RepairOptions(t_min_ms=2_000, t_max_ms=8_000, cache_durably=True),
    "retry_interval_ms": 5_000,
}


@dataclass
class Run:
    """One run in one file."""

    path: Path
    on_statement: Callable[[str], None] = lambda _: None
    on_step: Callable[[SdsProtocol], None] = lambda _: None
    core: SdsProtocol = field(init=False)

    def __post_init__(self) -> None:
        self.store = SqliteStateStore(self.path)
        self.core, self.overlay = begin(self.store)
        inside.connection(self.store).set_trace_callback(self.on_statement)

    def step(self) -> None:
        """End a step: write it, then let out what it says."""
        changes = self.core.changes()
        self.overlay.add(changes)
        self.store.write(changes)
        self.overlay.remove(changes)
        self.core.events.clear()
        for outgoing in taken(self.core.outgoing):
            self.core.dispatched(outgoing.message_id, NOW_MS)
        self.on_step(self.core)

    def script(self) -> None:
        """A little of everything that is recorded."""
        bob = participant("bob")
        for number in range(4):
            self.core.send(b"own %d" % number, NOW_MS)
            self.step()
        bobs = [send(bob, b"of bob %d" % number) for number in range(12)]
        for place in (0, 1, 3, 2, 7, 5, 6, 11):  # out of order: parked, missing, repair requests
            self.core.receive(bobs[place].data, NOW_MS, retrieval_hint=b"h" * 32)
            self.step()
        self.core.receive(forge("lost", after=["never"]), NOW_MS)
        self.step()
        acknowledgement = forge(
            "ack", after=[entry.message_id for entry in list(self.core.log)[:2]]
        )
        self.core.receive(acknowledgement, NOW_MS)
        self.step()
        for seconds in (3, 8, 20, 400):  # requests, retries, losses
            self.core.on_deadline(NOW_MS + seconds * SECOND)
            self.step()
        for place in (4, 8, 9, 10):
            self.core.receive(bobs[place].data, NOW_MS + 400 * SECOND)
            self.step()


def begin(store: SqliteStateStore) -> tuple[SdsProtocol, ArchiveOverlay]:
    saved = store.open(ALICE)
    overlay = ArchiveOverlay(store.archive())
    core = SdsProtocol(
        CHANNEL,
        "alice",
        now_ms=NOW_MS,
        random=Random(1).random,
        options=options(**OPTIONS),
        recorder=Recorder(),
        archive=overlay,
    )
    core.restore(saved.tables, saved.newest, NOW_MS)
    return core, overlay


def reopened(path: Path) -> dict[str, Any]:
    """What is in a file."""
    store = SqliteStateStore(path)
    core, overlay = begin(store)
    found = remembered(core)
    overlay.close()
    store.close()
    return found


def main(directory: Path) -> None:
    change_log.MAX_WRITES = 4  # type: ignore[misc]  # so that rows are moved in between
    statements: list[str] = []
    Run(directory / "whole.db", statements.append).script()
    left_behind = states_after_each_step(directory / "states.db")
    for killed_at in range(len(statements)):
        path = directory / f"{killed_at}.db"
        written = run_and_kill(path, killed_at)
        found = reopened(path)
        possible = left_behind[written : written + 2]
        assert found in possible, (
            f"killed at statement {killed_at}, {statements[killed_at]!r}, after step {written}: "
            f"found {found}"
        )
        for each in directory.glob(f"{killed_at}.db*"):
            each.unlink()
    print(f"{len(statements)} kills in {len(left_behind) - 1} steps")


def states_after_each_step(path: Path) -> list[dict[str, Any]]:
    """What a reopened file holds before the first step and after each."""
    copies = [path.with_suffix(".0")]
    run = Run(path)
    states = [remembered(run.core)]

    def keep(_: SdsProtocol) -> None:
        copy = path.with_suffix(f".{len(states)}")
        with sqlite3.connect(copy) as target:
            inside.connection(run.store).backup(target)
        target.close()
        copies.append(copy)
        states.append(reopened(copy))

    run.on_step = keep
    run.script()
    return states


def run_and_kill(path: Path, killed_at: int) -> int:
    """Run the script in a process that kills itself at a statement; return how many steps were
    reported as written."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        seen = 0

        def count(_: str) -> None:
            nonlocal seen
            if seen == killed_at:
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1

        def report(_: SdsProtocol) -> None:
            os.write(writing, b".")

        Run(path, count, report).script()
        os._exit(0)
    os.close(writing)
    written = 0
    while reported := os.read(reading, 1_000):
        written += len(reported)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL, "it ran to its end"
    return written


if __name__ == "__main__":
    main(Path(sys.argv[1]))
