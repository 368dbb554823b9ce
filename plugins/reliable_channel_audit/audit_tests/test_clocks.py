"""How far clocks are apart, by messages there and back."""

from __future__ import annotations

import pytest

from reliable_channel_audit.clocks import (
    NO_MAJORITY,
    ONE_WAY,
    WAS_SET,
    Offset,
    clock_offsets,
    clocks_apart,
    own_lags,
)
from reliable_channel_audit.facts import Dispatch, Lag
from reliable_channel_audit.replay import Replay

OFFSETS = {"a": 0, "b": 7_000, "c": 0, "d": -301}


HOUR_MS = 3_600_000


def unknown(why: str) -> Offset:
    return Offset(0, 0, 0, why)


def lags(*names: str, apart_ms: dict[str, int] | None = None) -> list[Lag]:
    """Messages take 20 ms, or longer."""
    offset = {**dict.fromkeys(names, 0), **OFFSETS} if apart_ms is None else apart_ms
    return [
        Lag(
            *("general", one, life, other, b""),
            offset.get(one, 0) - offset.get(other, 0) + 20 + 500 * life,
        )
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
    assert clock_offsets(lags("a", "c")[:2]) == {}


def test_messages_that_come_before_they_are_sent_show_a_clock_that_is_wrong() -> None:
    assert clock_offsets(lags("a", "b")[:2]) == {("general", "a"): unknown(ONE_WAY)}


@pytest.mark.parametrize("names", [("a", "b"), ("a", "c", "b", "e")], ids=["two", "halves"])
def test_without_a_majority_no_clock_is_right(names: tuple[str, ...]) -> None:
    """Of two clocks that are three hours apart, or of two and two."""
    found = clock_offsets(lags(*names, apart_ms={"b": 3 * HOUR_MS, "e": 3 * HOUR_MS}))
    assert found == {("general", name): unknown(NO_MAJORITY) for name in names}


def test_a_clock_that_was_set_while_it_ran_is_unknown_and_the_others_are_known() -> None:
    """Bob's goes two hours forward in the middle."""
    before, after = lags("a", "b", "c"), lags("a", "b", "c", apart_ms={"b": 2 * HOUR_MS})
    found = clock_offsets([*before, *after])
    assert found.pop(("general", "b")) == unknown(WAS_SET)
    assert {name: each.certain_ms for (_, name), each in found.items()} == {"a": 0, "c": 0}


def test_of_two_either_clock_may_have_been_set() -> None:
    before, after = lags("a", "b"), lags("a", "b", apart_ms={"b": 2 * HOUR_MS})
    found = clock_offsets([*before, *after])
    assert found == {("general", name): unknown(WAS_SET) for name in ("a", "b")}


def test_only_what_its_sender_sent_itself_shows_its_clock() -> None:
    """Bob repairs a message of alice's, and stamps it with his clock, three hours ahead."""
    alices, bobs = b"sent by alice", b"sent by bob"
    arrived = [
        Lag("general", "carol", 0, "alice", alices, 20),
        Lag("general", "carol", 0, "alice", bobs, -3 * 3_600_000),
    ]
    sent = [
        Dispatch("general", "alice", 0, alices, "content"),
        Dispatch("general", "bob", 0, bobs, "repair"),
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
