"""A wall clock that is not set back.

The core plans with wall-clock times, as they outlive a restart. Were the clock set back by three
hours, everything that is planned, retries, sync messages, the giving up of what is lost, would be
three hours late.
"""

from collections.abc import Callable

TOLERANCE_NS = 1_000_000_000
"""By so much a clock may fall behind the time that has passed: it is being slowed down, or the two
clocks were not read at one moment."""


class MonotonicWallClock:
    """Goes on where the wall clock is set back, by as much as time has passed since; follows it
    where it is set forward, as it is when a computer wakes up."""

    def __init__(self, wall_ns: Callable[[], int], monotonic_ns: Callable[[], int]) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._ahead_ns = 0
        """By how much this clock is ahead of the wall clock."""
        self._last_ns = wall_ns()
        self._last_monotonic_ns = monotonic_ns()

    def __call__(self) -> int:
        """The time in nanoseconds since 1970."""
        monotonic_ns, now_ns = self._monotonic_ns(), self._wall_ns() + self._ahead_ns
        expected_ns = self._last_ns + monotonic_ns - self._last_monotonic_ns
        if now_ns < expected_ns - TOLERANCE_NS:
            self._ahead_ns += expected_ns - now_ns
            now_ns = expected_ns
        self._last_ns, self._last_monotonic_ns = now_ns, monotonic_ns
        return now_ns
