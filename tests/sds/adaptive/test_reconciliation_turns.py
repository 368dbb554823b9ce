"""When a participant asks about a difference, describes its log, and leaves that to others."""

from collections.abc import Iterable
from itertools import pairwise

import pytest

from reliable_channel.sds.adaptive.reconciliation import (
    AGAIN_MAX_MS,
    AGAIN_SCALES,
    AGREES_MS,
    ATTEMPTS,
    COMPARED,
    DESCRIPTIONS,
    DESCRIPTIONS_EVERY_MS,
    MANY,
    MAX_LISTED,
    MAX_RANGES,
    MAX_REST_MS,
    MAX_SAID,
    NEXT_SCALES,
    PRECISE,
    REST_MS,
    SAID_SCALES,
    Range,
)
from reliable_channel.sds.changes import LogKey
from reliable_channel.sds.log.root import key_hash
from reliable_channel.sds.message import SHORT_BYTES, ListedIds, LogEntry, LogRoot, Reconciling

from .test_reconciliation import END, Member

SCALE_MS = 100
DRAW_MS = 1
"""What a member with one peer waits, as no other one could answer."""
ALL = (0, END)
STRANGE = b"stranger"
"""A short hash of a message that the member does not have."""


def member_of(numbers: Iterable[int] = ()) -> Member:
    return Member("p0", numbers, 1)


def other(start: int = 0, end: int = END, count: int = 99) -> LogRoot:
    """The root of a log that differs from that of the member."""
    return LogRoot(start, end, count, bytes(16))


def key(number: int) -> LogKey:
    return number * 1_000, f"m{number}"


def listed(range_: Range, numbers: Iterable[int], more: bytes = b"") -> Reconciling:
    hashes = b"".join(key_hash(key(number))[:SHORT_BYTES] for number in numbers)
    return Reconciling(lists=(ListedIds(*range_, hashes + more),))


def differs(member: Member, root: LogRoot, now_ms: int = 0) -> None:
    member.it.differs(root, member.log.sums.root(root.start, root.end), now_ms)


def hear(member: Member, said: Reconciling, now_ms: int = 0) -> None:
    member.it.hear(said, "p1", 0, now_ms)


def take(member: Member, now_ms: int) -> list[Range]:
    """The ranges that the member describes."""
    said = list(member.it.take(now_ms))
    roots = [(each.start, each.end) for message in said for each in message.roots]
    return roots + [(each.start, each.end) for message in said for each in message.lists]


def next_ms(member: Member) -> int:
    due_ms = member.it.agenda.next_ms
    assert due_ms is not None
    return due_ms


def ask(member: Member) -> list[Range]:
    return take(member, next_ms(member))


def fail(member: Member, now_ms: int, count: int = 99) -> int:
    """Ask until the member gives up; return when that is."""
    for _ in range(2):
        differs(member, other(count=count), now_ms)
    while (due_ms := member.it.agenda.next_ms) is not None:
        now_ms = due_ms
        take(member, now_ms)
    return now_ms


# -- questions -------------------------------------------------------------------------------------


def test_a_large_difference_is_asked_about_at_once_and_a_small_one_when_it_stays() -> None:
    large, small = member_of(range(10)), member_of(range(10))
    differs(large, other(count=10 + MANY), 500)
    assert next_ms(large) == 500 + DRAW_MS
    differs(small, other(count=10 + MANY - 1), 500)
    assert small.it.agenda.next_ms is None
    differs(small, other(count=10 + MANY - 1), 700)
    assert next_ms(small) == 700 + DRAW_MS


@pytest.mark.parametrize(("second", "asked"), [
    (other(0, 40, 98), (0, 40)),
    (other(0, 60, 99), (0, 60)),
    (other(0, 40, 99), (0, 50)),
    (other(9, 50, 99), (0, 50)),
], ids=["another count", "goes further", "an older one", "as far"])  # fmt: skip
def test_a_question_is_about_the_newest_root(second: LogRoot, asked: Range) -> None:
    member = member_of()
    differs(member, other(0, 50, 99))
    differs(member, second)
    assert ask(member) == [asked]


def test_a_question_ends_when_no_root_has_differed_for_a_while() -> None:
    member = member_of()
    for now_ms in (1_000, 3_000):
        differs(member, other(), now_ms)
    member.it.agrees(3_000 + AGREES_MS - 1, all_agree=False)
    assert member.it.agenda.next_ms is not None
    member.it.agrees(3_000 + AGREES_MS, all_agree=False)
    assert member.it.agenda.next_ms is None


def test_questions_without_an_answer_are_ever_further_apart() -> None:
    member, at_ms = member_of(), list[int]()
    slow_ms = 10 * SCALE_MS
    member.observations.delays.scale_ms = slow_ms
    differs(member, other())
    for _ in range(ATTEMPTS):
        at_ms.append(next_ms(member))
        assert take(member, at_ms[-1]) == [ALL]
    assert [second - first for first, second in pairwise(at_ms)] == [
        min(AGAIN_SCALES * slow_ms * attempt, AGAIN_MAX_MS) + DRAW_MS
        for attempt in range(1, ATTEMPTS)
    ]
    assert ask(member) == [] and member.it.has_failed


def test_a_bundle_that_brought_something_puts_the_question_off() -> None:
    member = member_of()
    differs(member, other())
    member.it.brought(key(1), 700)
    assert next_ms(member) == 700 + NEXT_SCALES * SCALE_MS + DRAW_MS


def test_a_rest_ends_in_time_and_each_is_twice_as_long() -> None:
    member, now_ms, rest_ms = member_of(range(10)), 0, REST_MS
    for _ in range(8):
        now_ms = fail(member, now_ms) + rest_ms
        differs(member, other(), now_ms - 1)
        assert member.it.agenda.next_ms is None
        rest_ms = min(2 * rest_ms, MAX_REST_MS)
    member.it.agrees(now_ms, all_agree=True)
    now_ms = fail(member, now_ms) + REST_MS
    differs(member, other(), now_ms - 1)
    assert member.it.agenda.next_ms is None
    differs(member, other(), now_ms)
    assert next_ms(member) == now_ms + DRAW_MS


@pytest.mark.parametrize("grown", [MANY - 1, MANY])
def test_a_difference_that_grew_much_ends_a_rest(grown: int) -> None:
    member = member_of(range(10))
    now_ms = fail(member, 0, count=99)
    differs(member, other(count=99 + grown), now_ms + 1)
    assert (member.it.agenda.next_ms is not None) is (grown == MANY)


def test_several_that_lack_the_same_are_answered_by_several() -> None:
    answers = []
    for alike in (1, 9):
        member = member_of(range(100))
        member.observations.losses.share = 0.2
        member.it.differs(other(count=0), member.root(), 0, alike)
        member.it.agrees(0, all_agree=True)
        hear(member, listed((0, 10), range(9)))
        member.it.came(key(9), "p2", 0)
        now_ms, bundles = 0, 0
        while (due_ms := member.it.agenda.next_ms) is not None:
            now_ms = due_ms
            bundles += sum(bool(said.packed) for said in member.it.take(now_ms))
        answers.append(bundles)
    assert answers == [0, 1]


# -- known gaps ------------------------------------------------------------------------------------


def with_gap(*ranges: Range) -> Member:
    """A member that described all it has, and to which others listed a message it lacks."""
    member = member_of()
    for first in range(0, len(ranges), MAX_RANGES):
        lists = (ListedIds(*range_, STRANGE) for range_ in ranges[first : first + MAX_RANGES])
        hear(member, Reconciling(lists=tuple(lists)))
    take(member, DRAW_MS)
    return member


def test_known_gaps_are_asked_for_first_and_then_everything() -> None:
    member = with_gap((20, 30), (40, 50))
    differs(member, other(), 1_000)
    asked = [ask(member) for _ in range(PRECISE + 1)]
    assert asked == [[(20, 30), (40, 50)]] * PRECISE + [[ALL]]


def test_gaps_end_with_the_question() -> None:
    member = with_gap((20, 30))
    member.it.agrees(500, all_agree=True)
    differs(member, other(), 1_000)
    assert ask(member) == [ALL]


def test_a_range_is_no_gap_once_all_of_it_came() -> None:
    member = member_of()
    hear(member, listed((20, 30), [21, 22]))
    take(member, DRAW_MS)
    for number in (21, 22):
        differs(member, other(), 1_000)
        member.add(number)
        asked = ask(member)
        member.it.agrees(1_001, all_agree=False)
        assert asked == [(20, 30) if number == 21 else ALL]


def test_so_many_gaps_are_remembered_and_the_oldest_is_forgotten() -> None:
    for count in (MAX_RANGES, MAX_RANGES + 1):
        ranges = [(number, number + 1) for number in range(count)]
        member = with_gap(*ranges)
        differs(member, other(), 1_000)
        assert ask(member) == ranges[-MAX_RANGES:]


def test_of_a_gap_so_many_messages_are_remembered() -> None:
    member, range_ = member_of(), (0, MAX_LISTED)
    hear(member, listed(range_, range(MAX_LISTED)))
    hear(member, listed(range_, [], STRANGE))
    for number in range(MAX_LISTED):
        member.add(number)
    take(member, DRAW_MS)
    differs(member, other(end=50), 1_000)
    differs(member, other(end=50), 1_000)
    assert range_ not in ask(member)


@pytest.mark.parametrize(("waiting", "asked"), [
    ([20, 21], [(10, 22)]),
    ([20, 25], [(10, 21), (21, 26)]),
    ([5, 20], [(0, 6), (10, 21)]),
], ids=["overlap", "touch", "before all"])  # fmt: skip
def test_what_is_missing_lies_before_what_waits(waiting: list[int], asked: list[Range]) -> None:
    member = member_of()
    differs(member, other())
    for number in (10, 20, 21):
        member.it.brought(key(number), 0)
    member.parked = [(key(number), True) for number in waiting]
    assert ask(member) == asked


# -- descriptions ----------------------------------------------------------------------------------

PLANNED = (20, 40)


def equal(member: Member, range_: Range, *, as_list: bool) -> Reconciling:
    """What a participant with the same messages says of a range."""
    if as_list:
        return listed(range_, range(*range_))
    return Reconciling(roots=(member.log.sums.root(*range_),))


@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize(("described", "left"), [
    ((20, 40), []), ((20, 30), []), ((30, 40), []), ((25, 35), []),
    ((10, 30), [PLANNED]), ((30, 50), [PLANNED]), ((10, 50), [PLANNED]),
])  # fmt: skip
def test_what_another_one_describes_a_part_of_is_left_to_it(
    described: Range, left: list[Range], as_list: bool
) -> None:
    member = member_of(range(100))
    hear(member, Reconciling((other(*PLANNED),)))
    assert next_ms(member) == DRAW_MS
    hear(member, equal(member, described, as_list=as_list))
    assert take(member, DRAW_MS) == left
    assert member.it.agenda.next_ms is None


@pytest.mark.parametrize("count", [10, 100], ids=["a list", "roots"])
def test_what_was_described_is_not_described_again_for_a_moment(count: int) -> None:
    member = member_of(range(count))
    said = list[bool]()
    holds_ms = SAID_SCALES * SCALE_MS
    for now_ms in (0, 50, holds_ms, holds_ms + 1):
        hear(member, Reconciling((other(0, 100),)), now_ms)
        said.append(bool(take(member, now_ms + DRAW_MS)))
    assert said == [True, False, False, True]
    member.add(count)
    hear(member, Reconciling((other(0, 101),)), holds_ms + 2)
    assert take(member, holds_ms + 3), "it has changed meanwhile"


def test_a_list_that_has_changed_is_said_again() -> None:
    member = member_of(range(10))
    for number in (50, 51):
        hear(member, Reconciling((other(0, 100),)))
        assert take(member, DRAW_MS) == [(0, 100)]
        member.add(number)


@pytest.mark.parametrize("as_list", [False, True])
def test_what_another_one_described_is_not_described_a_moment_later(as_list: bool) -> None:
    member = member_of(range(10) if as_list else range(100))
    parts = [(0, 100)] if as_list else member.log.sums.split(0, 100, 16)
    for part in parts:
        numbers = [number for number in range(*part) if f"m{number}" in member.log]
        root = member.log.sums.root(*part)
        hear(member, listed(part, numbers) if as_list else Reconciling((root,)))
    hear(member, Reconciling((other(0, 100),)))
    assert take(member, DRAW_MS) == []
    later_ms = SAID_SCALES * SCALE_MS + 1
    hear(member, Reconciling((other(0, 100),)), later_ms)
    assert take(member, later_ms + DRAW_MS) == parts


@pytest.mark.parametrize(("again", "more", "forgotten"), [
    ([], 0, []), ([], 1, [0]), ([0], 1, [1]),
], ids=["as many", "one more", "used again"])  # fmt: skip
def test_so_much_is_remembered_of_what_was_described(
    again: list[int], more: int, forgotten: list[int]
) -> None:
    member = member_of(range(MAX_SAID + 1))
    for number in (*range(MAX_SAID), *again, *range(MAX_SAID, MAX_SAID + more)):
        member.it._hear_list(listed((number, number + 1), [number]).lists[0], [], 0)  # noqa: SLF001
    hear(member, Reconciling((other(MAX_SAID - 1, MAX_SAID), other(1, 2), other(0, 1))))
    assert take(member, DRAW_MS) == [(number, number + 1) for number in forgotten]


def test_so_many_ranges_are_described_at_a_time() -> None:
    member = member_of()
    for number in range(MAX_RANGES + 1):
        member.it.hear(Reconciling((other(number, number + 1),)), "p1", 0, number * 1_000)
    assert len(take(member, MAX_RANGES * 1_000)) == MAX_RANGES


def test_descriptions_beyond_the_budget_wait_for_it() -> None:
    member = member_of()
    for number in range(DESCRIPTIONS + 1):
        hear(member, Reconciling((other(number, number + 1),)))
        assert len(take(member, DRAW_MS)) == (number < DESCRIPTIONS)
    assert next_ms(member) == DRAW_MS + DESCRIPTIONS_EVERY_MS
    assert ask(member) == [(DESCRIPTIONS, DESCRIPTIONS + 1)]


@pytest.mark.parametrize(("seconds", "count", "roots", "lists"), [
    (1, 65, 0, 1), (2, 65, 2, 0), (1, MAX_LISTED, 0, 1), (1, MAX_LISTED + 1, 0, 0),
])  # fmt: skip
def test_messages_of_one_second_are_listed(
    seconds: int, count: int, roots: int, lists: int
) -> None:
    member = member_of()
    for number in range(count):
        member.log.insert(LogEntry(f"x{number}", "ada", 1_000 * (number % seconds), b"x"))
    hear(member, Reconciling((other(0, seconds),)))
    said = list(member.it.take(DRAW_MS))
    assert sum(len(each.roots) for each in said) == roots
    assert sum(len(each.lists) for each in said) == lists
    assert all(len(each.hashes) == count * SHORT_BYTES for one in said for each in one.lists)


# -- lists -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("theirs", [[21, 22], [21]], ids=["the same", "less"])
def test_a_gap_that_another_one_asked_for_is_not_asked_for_here(theirs: list[int]) -> None:
    member = member_of([21, 22])
    hear(member, listed((20, 30), [21, 22], STRANGE))
    differs(member, other())
    hear(member, listed((20, 30), theirs))
    question = member.it._question  # noqa: SLF001
    assert question is not None and question.due_ms == NEXT_SCALES * SCALE_MS + DRAW_MS
    assert take(member, DRAW_MS) == []


def test_lists_of_ranges_without_a_gap_put_no_question_off() -> None:
    member = member_of([21, 22])
    differs(member, other())
    hear(member, listed((20, 30), [21, 22]))
    assert next_ms(member) == DRAW_MS


def test_no_list_is_compared_that_costs_more_than_the_budget() -> None:
    member = member_of()
    hashes = b"".join(number.to_bytes(SHORT_BYTES) for number in range(COMPARED + 1))
    hear(member, Reconciling(lists=(ListedIds(0, 9, hashes),)))
    assert member.it.agenda.next_ms is None
    hear(member, Reconciling(lists=(ListedIds(0, 9, hashes[SHORT_BYTES:]),)))
    assert next_ms(member) == DRAW_MS
