"""How far clocks are apart, by messages there and back."""

from __future__ import annotations

from reliable_channel_audit.clocks import clock_offsets
from reliable_channel_audit.facts import Lag

OFFSETS = {"a": 0, "b": 7_000, "c": 0, "d": -301}


def lags(*names: str) -> list[Lag]:
    """Messages take 20 ms, or longer."""
    return [
        Lag("general", one, life, other, OFFSETS[one] - OFFSETS[other] + 20 + 500 * life)
        for one in names
        for other in names
        for life in (0, 1)
        if one != other
    ]


def test_offsets_from_the_median_clock() -> None:
    assert clock_offsets(lags(*OFFSETS)) == {("general", name): OFFSETS[name] for name in OFFSETS}


def test_without_an_answer_nothing_is_said() -> None:
    assert clock_offsets(lags("a", "b")[:2]) == {}
