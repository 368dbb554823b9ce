import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds.clock import LamportClock, SecondsClock

from .world import NOW_MS


@pytest.mark.conformance("SDS-LAMPORT-1", "SDS-LAMPORT-2", "SDS-LAMPORT-3", "SDS-LAMPORT-5")
@pytest.mark.parametrize(
    ("value", "now_ms", "expected"),
    [(100, 50, 101), (100, 100, 101), (100, 101, 101), (100, 500, 500), (2**60, 5, 2**60 + 1)],
)
def test_tick(value: int, now_ms: int, expected: int) -> None:
    clock = LamportClock(value)
    assert clock.tick(now_ms) == expected
    assert clock.value == expected


@pytest.mark.conformance("SDS-RECEIVE-2")
@pytest.mark.parametrize(("value", "received", "expected"), [(5, 9, 9), (9, 5, 9), (7, 7, 7)])
def test_merge(value: int, received: int, expected: int) -> None:
    clock = LamportClock(value)
    clock.merge(received)
    assert clock.value == expected


@pytest.mark.conformance("SDS-LAMPORT-4")
@settings(derandomize=True)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2**64))))
def test_it_never_goes_back_and_every_tick_is_new(steps: list[tuple[bool, int]]) -> None:
    clock, before = LamportClock(0), 0
    for is_tick, value in steps:
        if is_tick:
            assert clock.tick(value) > before
        else:
            clock.merge(value)
        assert clock.value >= before
        before = clock.value


# -- the clock of nim-sds --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "now_ms", "expected"),
    [(0, 1_700_000_000_999, 1_700_000_001_000), (5_000, 1_999, 6_000), (5_000, 5_000, 6_000)],
)
def test_seconds_tick(value: int, now_ms: int, expected: int) -> None:
    clock = SecondsClock(0)
    clock.value = value
    assert clock.tick(now_ms) == expected


@pytest.mark.parametrize(
    ("value", "received", "expected"), [(5_000, 9_000, 10_000), (9_000, 5_000, 10_000)]
)
def test_seconds_merge(value: int, received: int, expected: int) -> None:
    clock = SecondsClock(0)
    clock.value = value
    clock.merge(received)
    assert clock.value == expected


@settings(derandomize=True)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2**64))))
def test_seconds_are_whole_and_beyond_all_that_was_merged(steps: list[tuple[bool, int]]) -> None:
    clock, beyond = SecondsClock(NOW_MS), 0
    assert clock.value == 0
    for is_tick, value in steps:
        if is_tick:
            assert clock.tick(value) > beyond
            beyond = clock.value
        else:
            clock.merge(value)
            beyond = max(beyond, value)
        assert clock.value % 1000 == 0
        assert clock.value >= beyond
