"""How long attempts that fail wait."""

import pytest

from reliable_channel.engine.backoff import Backoff


@pytest.mark.parametrize(("drawn", "waits_s"), [
    (0.0, [0.1, 0.2, 0.4, 0.5, 0.5]),
    (0.5, [0.15, 0.3, 0.6, 0.75, 0.75]),
    (1.0, [0.2, 0.4, 0.8, 1.0, 1.0]),
])  # fmt: skip
def test_each_wait_lies_in_the_upper_half_of_a_bound_that_doubles(
    drawn: float, waits_s: list[float]
) -> None:
    backoff = Backoff(lambda: drawn, first_ms=200, max_ms=1_000)
    assert [backoff.next_s() for _ in waits_s] == pytest.approx(waits_s)
    backoff.reset()
    assert backoff.next_s() == pytest.approx(waits_s[0])
