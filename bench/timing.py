"""CPU time of a piece of work: what the process spent, without other load of the machine."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from statistics import median


def cpu_us(count: int, work: Callable[[], object]) -> float:
    """CPU microseconds for each of the `count` things that `work` does.

    Earlier garbage is collected before, and the collector stays on: its share belongs to the price,
    as it does on the Node side.
    """
    gc.collect()
    before = time.process_time_ns()
    work()
    return (time.process_time_ns() - before) / 1000 / count


def middle(rounds: Iterable[float]) -> float:
    """The median of the rounds: one round disturbed by the machine does not count."""
    return median(rounds)
