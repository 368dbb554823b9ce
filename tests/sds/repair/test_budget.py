"""The budget of answers by itself: who pays, when it refills, what is told."""

from reliable_channel.sds import RepairOptions
from reliable_channel.sds.events import RepairBudgetReached
from reliable_channel.sds.repair.budget import PERIOD_MS, REQUESTERS, RepairBudget
from tests import inside

from ..world import NOW_MS, SECOND

OPTIONS = RepairOptions(
    answers_per_minute=10,
    answer_bytes_per_minute=10_000,
    requester_answers_per_minute=6,
    requester_answer_bytes_per_minute=6_000,
)


def spent(budget: RepairBudget, requester: str, size: int = 1, now_ms: int = NOW_MS) -> int:
    """How many answers of a size a requester gets at once."""
    count = 0
    while count < 100 and budget.spend(requester, f"m{count}", size, now_ms):
        count += 1
    return count


def test_each_has_so_many_and_all_together_have_so_many() -> None:
    budget = RepairBudget(OPTIONS)
    assert [spent(budget, who) for who in ("a", "b", "c")] == [6, 4, 0]


def test_bytes_count_too_and_the_last_answer_may_be_large() -> None:
    assert spent(RepairBudget(OPTIONS), "a", 4_000) == 2
    assert spent(RepairBudget(OPTIONS), "a", 100_000) == 1


def test_it_refills_evenly() -> None:
    budget = RepairBudget(OPTIONS)
    assert spent(budget, "a") == 6
    assert spent(budget, "a", now_ms=NOW_MS + SECOND) == 1  # one begins as soon as it may
    assert spent(budget, "a", now_ms=NOW_MS + 10 * SECOND) == 0
    assert spent(budget, "a", now_ms=NOW_MS + 11 * SECOND) == 1
    assert spent(budget, "a", now_ms=NOW_MS + 10 * PERIOD_MS) == 6


def test_a_clock_set_back_blocks_nobody_for_longer_than_a_period() -> None:
    budget = RepairBudget(OPTIONS)
    spent(budget, "a", now_ms=NOW_MS + 10**9)
    assert spent(budget, "a") == 0
    assert spent(budget, "a", now_ms=NOW_MS + 2 * PERIOD_MS) > 0


def test_what_was_not_needed_is_given_back() -> None:
    budget = RepairBudget(OPTIONS)
    assert spent(budget, "a", 1_000) == 6
    budget.give_back("a", 1_000)
    budget.give_back("gone", 1_000)
    assert spent(budget, "a", 1_000) == 1


def test_it_is_given_back_to_all_as_well() -> None:
    budget = RepairBudget(OPTIONS)
    assert [spent(budget, who) for who in ("a", "b", "c")] == [6, 4, 0]
    for requester in ("a", "gone"):
        budget.give_back(requester, 1)
    assert [spent(budget, who) for who in ("a", "c")] == [1, 1]


def test_what_is_refused_is_told_once_a_minute() -> None:
    budget = RepairBudget(OPTIONS)
    assert budget.reached("a", NOW_MS) is None
    spent(budget, "a")
    assert budget.reached("a", NOW_MS) == RepairBudgetReached(("m6",), "a", in_all=False)
    spent(budget, "a")
    assert budget.reached("a", NOW_MS + PERIOD_MS - 1) is None
    spent(budget, "b")
    assert budget.reached("b", NOW_MS) == RepairBudgetReached(("m4",), "b", in_all=True)
    later_ms = NOW_MS + PERIOD_MS
    spent(budget, "a", now_ms=later_ms)
    assert budget.reached("a", later_ms) is not None


def test_no_more_than_so_many_requesters_are_remembered() -> None:
    budget = RepairBudget(OPTIONS)
    for n in range(REQUESTERS + 10):
        budget.spend(f"p{n}", "m", 1, NOW_MS)
    assert inside.sizes(budget)["_accounts"] == REQUESTERS
