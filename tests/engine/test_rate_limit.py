"""The rate limit manager: epochs, priorities, restarts, clocks that jump."""

import pytest

from reliable_channel.engine.outbox import CONCURRENCY
from reliable_channel.engine.rate_limit import Budget, RateLimit, Spent, no_budget
from reliable_channel.sds.events import OutgoingKind

START_MS = 1_700_000_000_000
PERIOD_S = 600


def limit_of(messages: int, spent: Spent | None = None) -> RateLimit:
    return RateLimit(messages_per_epoch=messages, epoch_period_s=PERIOD_S, spent=spent)


def spend(limit: RateLimit, count: int, now_ms: int = START_MS) -> None:
    for _ in range(count):
        limit.spend(now_ms)


@pytest.mark.conformance("LD-RATE-4", "LD-RATE-5")
def test_content_goes_until_the_budget_is_spent_and_again_in_the_next_epoch() -> None:
    limit = limit_of(10)
    spend(limit, 10)
    assert not limit.admits(OutgoingKind.CONTENT, START_MS)
    ends_at_ms = limit.epoch_ends_at_ms(START_MS)
    assert not limit.admits(OutgoingKind.CONTENT, ends_at_ms - 1)
    assert limit.admits(OutgoingKind.CONTENT, ends_at_ms)
    assert limit.spent(ends_at_ms).messages == 0


def test_spare_messages_yield_first_by_how_much_of_the_epoch_is_over() -> None:
    limit = limit_of(100)
    begins_ms = limit.epoch_ends_at_ms(START_MS)
    spend(limit, 39, begins_ms)
    assert not limit.is_short(begins_ms)
    spend(limit, 1, begins_ms)
    assert limit.is_short(begins_ms)
    assert limit.admits(OutgoingKind.REPAIR, begins_ms)
    assert not limit.is_short(begins_ms + 300_000)
    spend(limit, 50, begins_ms)
    assert limit.is_short(begins_ms + 599_999)


def test_half_of_the_time_is_for_half_of_what_is_not_kept_back() -> None:
    limit = limit_of(1_000)
    begins_ms = limit.epoch_ends_at_ms(START_MS)
    spend(limit, 449, begins_ms)
    assert not limit.is_short(begins_ms + 300_000)
    spend(limit, 1, begins_ms)
    assert limit.is_short(begins_ms + 300_000)


@pytest.mark.conformance("LD-RATE-8")
def test_the_epoch_is_that_of_rln() -> None:
    limit = limit_of(1)
    assert limit.explain({}, START_MS).epoch_index == START_MS // 1000 // PERIOD_S
    assert limit.epoch_ends_at_ms(START_MS) % (PERIOD_S * 1000) == 0


@pytest.mark.parametrize(
    "kind",
    [OutgoingKind.RETRY, OutgoingKind.REPAIR, OutgoingKind.SYNC, OutgoingKind.EPHEMERAL],
)
def test_the_last_tenth_is_for_the_application(kind: OutgoingKind) -> None:
    limit = limit_of(10)
    spend(limit, 8)
    assert limit.admits(kind, START_MS)
    spend(limit, 1)
    assert limit.is_approached(START_MS)
    assert not limit.admits(kind, START_MS)
    assert limit.admits(OutgoingKind.CONTENT, START_MS)


@pytest.mark.parametrize(
    ("spent", "reason"), [(8, None), (9, "rate_limit_approached"), (10, "rate_limit_reached")]
)
def test_an_ephemeral_message_that_must_wait_is_dropped(spent: int, reason: str | None) -> None:
    limit = limit_of(10)
    spend(limit, spent)
    assert limit.refuses_ephemeral(START_MS) == reason


def test_a_restart_does_not_overspend() -> None:
    limit = limit_of(5)
    spend(limit, 3)
    again = limit_of(5, limit.spent(START_MS))
    assert again.spent(START_MS).messages == 3
    spend(again, 2)
    last = limit_of(5, again.spent(START_MS))
    assert not last.admits(OutgoingKind.CONTENT, START_MS)
    assert last.spent(START_MS + PERIOD_S * 1000).messages == 0


def test_what_was_on_its_way_at_a_restart_may_be_out_in_the_epoch_after() -> None:
    limit = limit_of(5)
    spend(limit, 3)
    again = limit_of(5, limit.spent(START_MS))
    next_ms = again.epoch_ends_at_ms(START_MS)
    assert again.spent(next_ms).messages == 0, "it started in the epoch that the message counts in"
    later = limit_of(5, limit.spent(START_MS))
    assert later.spent(next_ms).messages == 3
    assert later.spent(next_ms + PERIOD_S * 1000).messages == 0
    assert limit_of(5, Spent(0, 0)).spent(next_ms).messages == 0
    assert limit_of(50, Spent(0, 40)).spent(next_ms).messages == CONCURRENCY


def test_a_clock_that_jumps_back_refills_nothing() -> None:
    limit, earlier_ms = limit_of(2), START_MS - 10 * PERIOD_S * 1000
    spend(limit, 2)
    assert not limit.admits(OutgoingKind.CONTENT, earlier_ms)
    explained = limit.explain({"content": 1}, earlier_ms)
    assert explained.waiting_goes_at_ms == limit.epoch_ends_at_ms(START_MS)


@pytest.mark.conformance("LD-RATE-2")
def test_a_budget_of_nothing_admits_nothing_and_says_never() -> None:
    limit = limit_of(0)
    assert not limit.admits(OutgoingKind.CONTENT, START_MS)
    assert limit.explain({"content": 1}, START_MS).waiting_goes_at_ms is None


def test_the_explanation_counts_epochs() -> None:
    limit = limit_of(10)
    spend(limit, 7)
    assert limit.explain({"content": 3}, START_MS).waiting_goes_at_ms == START_MS
    ends_at_ms = limit.epoch_ends_at_ms(START_MS)
    assert limit.explain({"content": 4}, START_MS).waiting_goes_at_ms == ends_at_ms
    assert limit.explain({"content": 13}, START_MS).waiting_goes_at_ms == ends_at_ms
    later = limit.explain({"content": 13, "retry": 1}, START_MS)
    assert later.waiting_goes_at_ms == ends_at_ms + PERIOD_S * 1000
    assert (later.left, later.spent, later.waiting) == (3, 7, {"content": 13, "retry": 1})


def test_without_a_rate_limit_there_is_nothing_to_spend() -> None:
    budget = no_budget({"content": 2})
    assert budget == Budget(False, 0, 0, 0, 0, 0, 0, False, {"content": 2}, None)
