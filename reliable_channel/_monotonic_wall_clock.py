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
        self._apart_ns = wall_ns() - monotonic_ns()
        """How much more this clock showed than the passed time, when it was read last."""

    def __call__(self) -> int:
        """The time in nanoseconds since 1970."""
        monotonic_ns, now_ns = self._monotonic_ns(), self._wall_ns() + self._ahead_ns
        behind_ns = monotonic_ns + self._apart_ns - now_ns
        if behind_ns > TOLERANCE_NS:
            self._ahead_ns += behind_ns
            now_ns += behind_ns
        self._apart_ns = now_ns - monotonic_ns
        return now_ns
