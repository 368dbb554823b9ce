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
    cpu_s, began_s = cpu_seconds(), monotonic()
    with _watched() as largest:
        work()
    return Taken(cpu_seconds() - cpu_s, monotonic() - began_s, largest)


def cpu_seconds() -> float:
    """Of this process and all its descendants, those that ended included."""
    return sum(sum(map(int, fields[11:15])) for fields in _family().values()) / TICKS_A_SECOND


@contextmanager
def _watched() -> Iterator[dict[str, int]]:
    """The largest process of each program, looked at until the end."""
    largest: dict[str, int] = {}
    done = threading.Event()

    def look() -> None:
        while True:
            for pid in _family():
                name, size = _resident(pid)
                largest[name] = max(largest.get(name, 0), size)
            if done.wait(LOOK_S):
                return

    watching = threading.Thread(target=look)
    watching.start()
    try:
        yield largest
    finally:
        done.set()
        watching.join()


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
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "", 0
    lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return lines["Name"], int(lines.get("VmRSS", "0").split()[0]) * 1024
