"""The rate limit manager: epochs, priorities, restarts, clocks that jump."""

from pathlib import Path

import pytest

from reliable_channel.runtime.rate_limit import BudgetFile, RateLimitManager, Spent
from reliable_channel.sds.events import OutgoingKind

START_MS = 1_700_000_000_000
PERIOD_S = 600


class Clock:
    def __init__(self) -> None:
        self.ms = START_MS

    def __call__(self) -> int:
        return self.ms


def manager(clock: Clock, limit: int, store: BudgetFile | None = None) -> RateLimitManager:
    return RateLimitManager(
        messages_per_epoch=limit, epoch_period_s=PERIOD_S, now_ms=clock, store=store
    )


def spend(limits: RateLimitManager, count: int) -> None:
    for _ in range(count):
        limits.spend()


@pytest.mark.conformance("LD-RATE-4", "LD-RATE-5")
def test_content_goes_until_the_budget_is_spent_and_again_in_the_next_epoch() -> None:
    clock = Clock()
    limits = manager(clock, 10)
    spend(limits, 10)
    assert not limits.admits(OutgoingKind.CONTENT)
    clock.ms = limits.epoch_ends_at_ms - 1
    assert not limits.admits(OutgoingKind.CONTENT)
    clock.ms += 1
    assert limits.admits(OutgoingKind.CONTENT)
    assert limits.spent == 0


@pytest.mark.conformance("LD-RATE-8")
def test_the_epoch_is_that_of_rln() -> None:
    clock = Clock()
    limits = manager(clock, 1)
    assert limits.explain({}).epoch_index == START_MS // 1000 // PERIOD_S
    assert limits.epoch_ends_at_ms % (PERIOD_S * 1000) == 0


@pytest.mark.parametrize(
    "kind",
    [OutgoingKind.RETRY, OutgoingKind.REPAIR, OutgoingKind.SYNC, OutgoingKind.EPHEMERAL],
)
def test_the_last_tenth_is_for_the_application(kind: OutgoingKind) -> None:
    limits = manager(Clock(), 10)
    spend(limits, 8)
    assert limits.admits(kind)
    spend(limits, 1)
    assert limits.approached
    assert not limits.admits(kind)
    assert limits.admits(OutgoingKind.CONTENT)


def test_a_restart_does_not_overspend(tmp_path: Path) -> None:
    clock, store = Clock(), BudgetFile(tmp_path / "budget.json")
    spend(manager(clock, 5, store), 3)
    again = manager(clock, 5, store)
    assert again.spent == 3
    spend(again, 2)
    assert not manager(clock, 5, store).admits(OutgoingKind.CONTENT)
    clock.ms += PERIOD_S * 1000
    assert manager(clock, 5, store).spent == 0


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "{}", "[]", "7", "[" * 3_000),  # the rest was found by fuzzing
        '{"epoch_index": 1e999, "messages": 7}',
        '{"epoch_index": 1, "messages": -7}',
        '{"epoch_index": true, "messages": 7}',
        '{"epoch_index": 1.5, "messages": "7"}',
    ],
)
def test_a_file_that_is_something_else_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "budget.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"budget\.json is no rate limit file"):
        BudgetFile(path).load()
    assert BudgetFile(tmp_path / "absent.json").load() is None


def test_a_clock_that_jumps_back_refills_nothing() -> None:
    clock = Clock()
    limits = manager(clock, 2)
    spend(limits, 2)
    clock.ms -= 10 * PERIOD_S * 1000
    assert not limits.admits(OutgoingKind.CONTENT)
    assert limits.explain({"content": 1}).waiting_goes_at_ms == limits.epoch_ends_at_ms


@pytest.mark.conformance("LD-RATE-2")
def test_a_budget_of_nothing_admits_nothing_and_says_never() -> None:
    limits = manager(Clock(), 0)
    assert not limits.admits(OutgoingKind.CONTENT)
    assert limits.explain({"content": 1}).waiting_goes_at_ms is None


def test_the_explanation_counts_epochs() -> None:
    clock = Clock()
    limits = manager(clock, 10)
    spend(limits, 7)
    assert limits.explain({"content": 3}).waiting_goes_at_ms == clock.ms
    ends_at_ms = limits.epoch_ends_at_ms
    assert limits.explain({"content": 4}).waiting_goes_at_ms == ends_at_ms
    assert limits.explain({"content": 13}).waiting_goes_at_ms == ends_at_ms
    later = limits.explain({"content": 13, "retry": 1})
    assert later.waiting_goes_at_ms == ends_at_ms + PERIOD_S * 1000
    assert (later.left, later.spent, later.waiting) == (3, 7, {"content": 13, "retry": 1})


def test_spent_is_saved_before_the_message_goes(tmp_path: Path) -> None:
    store = BudgetFile(tmp_path / "budget.json")
    limits = manager(Clock(), 5, store)
    limits.spend()
    assert store.load() == Spent(START_MS // 1000 // PERIOD_S, 1)
