import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reliable_channel.sds.clock import LamportClock


@pytest.mark.parametrize(
    ("value", "now_ms", "expected"),
    [(100, 50, 101), (100, 100, 101), (100, 101, 101), (100, 500, 500), (2**60, 5, 2**60 + 1)],
)
def test_tick(value: int, now_ms: int, expected: int) -> None:
    clock = LamportClock(value)
    assert clock.tick(now_ms) == expected
    assert clock.value == expected


@pytest.mark.parametrize(("value", "received", "expected"), [(5, 9, 9), (9, 5, 9), (7, 7, 7)])
def test_merge(value: int, received: int, expected: int) -> None:
    clock = LamportClock(value)
    clock.merge(received)
    assert clock.value == expected


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
