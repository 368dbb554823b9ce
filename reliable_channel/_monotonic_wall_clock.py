"""A wall clock that is not set back.

The core plans with wall-clock times, because they outlive a restart. If the clock were set back by
three hours, all planned retries and sync messages would be three hours late.
"""

from collections.abc import Callable

TOLERANCE_NS = 1_000_000_000
"""A clock may fall behind the passed time by this much. It may be slowed down, or the two clocks
may not be read at one moment."""


class MonotonicWallClock:
    """A clock that does not follow the wall clock back: it then advances with the passed time. It
    follows the wall clock forward, as when a computer wakes up."""

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
