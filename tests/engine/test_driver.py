"""The clock of an engine's driver."""

from reliable_channel.engine.driver import MonotonicWallClock

HOUR_NS = 3_600_000_000_000


class Clocks:
    def __init__(self) -> None:
        self.wall_ns = self.monotonic_ns = 10 * HOUR_NS
        self.steady = MonotonicWallClock(lambda: self.wall_ns, lambda: self.monotonic_ns)

    def passes(self, duration_ns: int, *, jump_ns: int = 0) -> int:
        """Let time pass, set the wall clock, and read the steady one."""
        self.monotonic_ns += duration_ns
        self.wall_ns += duration_ns + jump_ns
        return self.steady()


def test_it_is_the_wall_clock_while_nobody_sets_that() -> None:
    clocks = Clocks()
    assert clocks.steady() == 10 * HOUR_NS
    assert clocks.passes(7) == 10 * HOUR_NS + 7


def test_it_goes_on_where_the_wall_clock_is_set_back() -> None:
    clocks = Clocks()
    assert clocks.passes(HOUR_NS, jump_ns=-3 * HOUR_NS) == 11 * HOUR_NS
    assert clocks.passes(HOUR_NS) == 12 * HOUR_NS
    assert clocks.passes(HOUR_NS, jump_ns=-HOUR_NS) == 13 * HOUR_NS


def test_it_follows_where_the_wall_clock_is_set_forward() -> None:
    clocks = Clocks()
    assert clocks.passes(5, jump_ns=2 * HOUR_NS) == 12 * HOUR_NS + 5


def test_a_clock_that_is_slowed_down_is_followed() -> None:
    clocks = Clocks()
    assert clocks.passes(HOUR_NS, jump_ns=-500_000_000) == 11 * HOUR_NS - 500_000_000
