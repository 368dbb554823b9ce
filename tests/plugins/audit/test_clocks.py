"""How far clocks are apart, by messages there and back."""

from __future__ import annotations

import pytest

from reliable_channel_audit.clocks import Offset, clock_offsets, clocks_apart, own_lags
from reliable_channel_audit.facts import Dispatch, Lag
from reliable_channel_audit.replay import Replay

OFFSETS = {"a": 0, "b": 7_000, "c": 0, "d": -301}


def lags(*names: str) -> list[Lag]:
    """Messages take 20 ms, or longer."""
    return [
        Lag("general", one, life, other, b"", OFFSETS[one] - OFFSETS[other] + 20 + 500 * life)
        for one in names
        for other in names
        for life in (0, 1)
        if one != other
    ]


def test_offsets_from_the_median_clock() -> None:
    assert clock_offsets(lags(*OFFSETS)) == {
        ("general", "a"): Offset(0, 0, 20),
        ("general", "b"): Offset(7_000, 6_980, 7_020),
        ("general", "c"): Offset(0, 0, 20),
        ("general", "d"): Offset(-301, -321, -281),
    }


def test_without_an_answer_nothing_is_known() -> None:
    assert clock_offsets(lags("a", "b")[:2]) == {}


def test_only_what_its_sender_sent_itself_shows_its_clock() -> None:
    """Bob repairs a message of alice's, and stamps it with his clock, three hours ahead."""
    alices, bobs = b"sent by alice", b"sent by bob"
    arrived = [
        Lag("general", "carol", 0, "alice", alices, 20),
        Lag("general", "carol", 0, "alice", bobs, -3 * 3_600_000),
    ]
    sent = [
        Dispatch("general", "alice", 0, alices, "content", 1, 100),
        Dispatch("general", "bob", 0, bobs, "repair", 1, 100),
    ]
    assert own_lags(arrived, sent) == arrived[:1]


@pytest.mark.parametrize(
    ("least_ms", "most_ms", "certain_ms"), [(-5, 9, 0), (3, 9, 3), (-9, -3, -3), (9, -9, 0)]
)
def test_a_clock_is_only_accused_of_what_is_certain(
    least_ms: int, most_ms: int, certain_ms: int
) -> None:
    assert Offset(0, least_ms, most_ms).certain_ms == certain_ms


@pytest.mark.parametrize(
    ("offset", "described"),
    [
        (Offset(7_000, 6_980, 7_020), "the clock is 7000 ms ahead of most others, 6980 to 7020"),
        (Offset(-7_000, -7_020, -6_980), "the clock is 7000 ms behind most others, 6980 to 7020"),
    ],
)
def test_a_finding_says_by_how_much(offset: Offset, described: str) -> None:
    life = Replay("general", "alice", 0, settle_ms=0).life()
    (finding,) = clocks_apart([life], {("general", "alice"): offset})
    assert finding.detail == described
