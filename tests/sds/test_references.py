"""The budgets for following references."""

from reliable_channel.sds.references import FOLLOWED_BURST, ReferenceBudget, Unknown


def test_all_unknown_references_count() -> None:
    assert len(Unknown((5, 6), (1, 2, 3))) == 5
    assert not Unknown()


def test_what_is_spent_comes_back_with_time() -> None:
    budget = ReferenceBudget(10)
    assert budget.room("alice", 0) == FOLLOWED_BURST
    budget.spend("alice", FOLLOWED_BURST, 0)
    assert budget.room("alice", 0) == 0
    assert budget.room("", 0) == FOLLOWED_BURST
    assert 0 < budget.room("alice", 1_000) <= FOLLOWED_BURST
    assert budget.room("alice", 10_000_000) == FOLLOWED_BURST


def test_the_payer_that_spent_longest_ago_is_forgotten() -> None:
    budget = ReferenceBudget(2)
    for payer in ("alice", "bob", "alice", "carol"):
        budget.spend(payer, 10, 0)
    rooms = {name: budget.room(name, 0) for name in ("alice", "bob", "carol")}
    assert rooms == {
        "alice": FOLLOWED_BURST - 20,
        "bob": FOLLOWED_BURST,
        "carol": FOLLOWED_BURST - 10,
    }
