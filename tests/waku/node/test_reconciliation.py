"""Two windows of ids are compared: what differs is found, in requests that have a bound."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waku.node.reconciliation import (
    LIST_IDS,
    MAX_DIFFERENCES,
    MAX_RANGES,
    MAX_REQUESTS,
    PARTS,
    Listed,
    Reconciliation,
    Reply,
    Split,
    Summary,
    SyncId,
    Window,
)

LOWER: SyncId = (0, b"")
UPPER: SyncId = (1_000_000, b"")


def sync_id(time: int, number: int = 0) -> SyncId:
    return time, random.Random(f"{time} {number}").randbytes(32)


def window(ids: Sequence[SyncId]) -> Window:
    return Window(sorted(ids), 0)


def compared(ours: Sequence[SyncId], theirs: Sequence[SyncId]) -> Reconciliation:
    """Compare until nothing is left to ask about."""
    comparison, other = Reconciliation(window(ours), LOWER, UPPER), window(theirs)
    while asked := comparison.next_request():
        assert len(asked) <= MAX_RANGES
        comparison.take(asked, [other.reply(one) for one in asked])
    return comparison


@given(
    st.sets(st.tuples(st.integers(0, 40), st.integers(0, 20)), max_size=400),
    st.sets(st.tuples(st.integers(0, 40), st.integers(0, 20)), max_size=400),
)
def test_what_each_side_lacks_is_found(
    ours: set[tuple[int, int]], theirs: set[tuple[int, int]]
) -> None:
    found = compared([sync_id(*one) for one in ours], [sync_id(*one) for one in theirs])
    assert found.missing == sorted(sync_id(*one) for one in theirs - ours)
    assert found.surplus == sorted(sync_id(*one) for one in ours - theirs)


def test_equal_windows_take_one_request() -> None:
    ids = [sync_id(time) for time in range(5_000)]
    assert compared(ids, ids).requests == 1


def test_one_difference_in_many_ids_takes_a_request_a_level() -> None:
    ids = [sync_id(time) for time in range(50_000)]
    found = compared([*ids[:777], *ids[778:]], ids)
    assert found.missing == [ids[777]]
    assert found.requests <= 4  # 16^3 parts of at most 64 ids


def test_ids_outside_the_range_are_left_alone() -> None:
    ours = window([sync_id(5), sync_id(100)])
    comparison = Reconciliation(ours, (5, b""), (100, b""))
    theirs = window([sync_id(4), sync_id(50), sync_id(101)])
    asked = comparison.next_request()
    comparison.take(asked, [theirs.reply(one) for one in asked])
    assert (comparison.missing, comparison.surplus) == ([sync_id(50)], [sync_id(5)])


def test_an_empty_range_asks_nothing() -> None:
    assert Reconciliation(window([sync_id(1)]), (5, b""), (5, b"")).next_request() == []


def test_differences_have_a_limit_and_the_oldest_come_first() -> None:
    ids = [sync_id(time) for time in range(2 * MAX_DIFFERENCES)]
    assert compared([], ids).missing == ids[:MAX_DIFFERENCES]
    assert compared(ids, []).surplus == ids[:MAX_DIFFERENCES]


def test_a_side_that_splits_without_end_costs_a_number_of_requests() -> None:
    comparison = Reconciliation(window([]), LOWER, UPPER)
    while asked := comparison.next_request():
        comparison.take(asked, [_endless(one) for one in asked])
    assert comparison.requests == MAX_REQUESTS
    assert comparison.missing == comparison.surplus == []


def _endless(asked: Summary) -> Reply:
    """A first part that has no room for an id, and the rest, which is split again."""
    time, digest = asked.lower
    inner = (time, digest + b"\0")
    if inner == asked.upper:
        return None
    return Split([Summary(asked.lower, inner, 0, 0), Summary(inner, asked.upper, 9, 9)])


HALF: SyncId = (500_000, b"")


@pytest.mark.parametrize(
    "reply",
    [
        Listed([sync_id(9), sync_id(8)]),
        Listed([sync_id(9), sync_id(9)]),
        Listed([sync_id(2_000_000)]),
        Listed([sync_id(-1)]),
        Listed([sync_id(time) for time in range(LIST_IDS + 1)]),
        Split([]),
        Split([Summary(LOWER, UPPER, 1, 1)]),
        Split([Summary(LOWER, HALF, 1, 1), Summary(HALF, HALF, 1, 1)]),
        Split([Summary(LOWER, HALF, 1, 1), Summary((500_001, b""), UPPER, 1, 1)]),
        Split([Summary(LOWER, HALF, 1, 1), Summary(HALF, HALF, 1, 1), Summary(HALF, UPPER, 1, 1)]),
        Split([Summary((t, b""), (t + 1, b""), 1, 1) for t in range(PARTS + 1)]),
    ],
    ids=str,
)
def test_a_reply_that_is_none_is_refused(reply: Reply) -> None:
    comparison = Reconciliation(window([]), LOWER, UPPER)
    asked = comparison.next_request()
    with pytest.raises(ValueError, match="range"):
        comparison.take(asked, [reply])


def test_each_range_needs_its_reply() -> None:
    comparison = Reconciliation(window([]), LOWER, UPPER)
    with pytest.raises(ValueError, match="1 ranges were asked about, and 0 answered"):
        comparison.take(comparison.next_request(), [])


def test_bounds_in_the_wrong_order_are_an_empty_range() -> None:
    theirs = window([sync_id(time) for time in range(100)])
    assert theirs.reply(Summary((50, b""), (10, b""), 1, 1)) == Listed([])
