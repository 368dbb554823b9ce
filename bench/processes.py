"""What this process and all that it starts take of a Linux machine: Python, Java, and theirs."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")
LOOK_S: Final = 0.2


class Taken(NamedTuple):
    """What a piece of work took."""

    cpu_s: float
    """Of all processes together, so that a busy machine does not matter much."""
    elapsed_s: float
    largest: dict[str, int]
    """By program, the most bytes that one of its processes had resident meanwhile."""


def measured(work: Callable[[], object]) -> Taken:
    """Do it and say what it took."""
    began_s = monotonic()
    with _watched() as (before, used, largest):
        work()
    ticks = sum(used.values()) - sum(before.values())
    return Taken(ticks / TICKS_A_SECOND, monotonic() - began_s, largest)


@contextmanager
def _watched() -> Iterator[tuple[dict[int, int], dict[int, int], dict[str, int]]]:
    """CPU ticks by process, before and until the end, and the largest process of each program.

    What a process used is what was seen last of it: some parents forget children that ended, such
    as Spark's idle workers.
    """
    before, used, largest = _ticks(), dict[int, int](), dict[str, int]()
    done = threading.Event()

    def look() -> None:
        while True:
            is_last = done.wait(LOOK_S)
            used.update(_ticks())
            for name, size in map(_resident, used):
                largest[name] = max(largest.get(name, 0), size)
            if is_last:
                return

    used.update(before)
    watching = threading.Thread(target=look)
    watching.start()
    try:
        yield before, used, largest
    finally:
        done.set()
        watching.join()
    largest.pop("", None)


def _ticks() -> dict[int, int]:
    """What each process of the family used of the CPU itself."""
    return {pid: sum(map(int, fields[11:13])) for pid, fields in _family().items()}


def _family() -> dict[int, list[str]]:
    """The fields behind the name in `/proc/PID/stat` (proc(5)), by process."""
    stats, children = {}, defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(") ", 1)[1].split()
        except OSError:  # it ended
            continue
        stats[pid := int(path.parent.name)] = fields
        children[int(fields[1])].append(pid)
    family = [os.getpid()]
    for pid in family:  # which grows meanwhile: numbers of processes start again at the largest
        family += children[pid]
    return {pid: stats[pid] for pid in family if pid in stats}


def _resident(pid: int) -> tuple[str, int]:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return "", 0
    lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return lines["Name"], int(lines.get("VmRSS", "0").split()[0]) * 1024
