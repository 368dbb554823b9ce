"""The control law: pure functions of latency, loss and group size."""

import pytest

from reliable_channel.sds.adaptive import law
from reliable_channel.sds.adaptive.law import Measured


def measured(others: int, loss: float = 0.2, scale_ms: float = 300) -> Measured:
    return Measured(scale_ms, loss, others)


@pytest.mark.parametrize(
    ("others", "loss", "wanted"),
    [(1, 0.2, 1), (1, 0.4, 2), (19, 0.2, 4), (99, 0.2, 5), (999, 0.2, 6), (19, 0.0, 1)],
)
def test_copies_leave_few_without_the_message(others: int, loss: float, wanted: int) -> None:
    assert law.copies(measured(others, loss)) == wanted
    left_over = law.LEFT_OVER_OF_PAIR if others == 1 else law.LEFT_OVER
    assert others * loss**wanted <= left_over


def test_copies_are_bounded() -> None:
    assert law.copies(measured(9_999, 0.9)) == law.MAX_COPIES
    assert law.copies(measured(9_999, 0.9), most=1) == 1


def test_retries_come_after_the_copies_and_grow_up_to_the_documented_interval() -> None:
    group = measured(19)
    waits = [law.retry_ms(group, attempts, 3, 30_000) for attempts in range(1, 60)]
    assert waits[:3] == [1_950, 1_950, 1_950]
    assert waits[3] == 2_925
    assert waits == sorted(waits)
    assert waits[-1] == 30_000
    assert law.retry_ms(measured(1), 1, 1, 30_000) == 600


@pytest.mark.conformance("AUTO-T-REQ")
def test_requests_come_after_the_copies_spread_by_how_many_lack_the_message() -> None:
    assert law.request_bounds(measured(1), 1) == (210, 570)
    min_ms, max_ms = law.request_bounds(measured(999), 3)
    assert min_ms == 480
    assert max_ms - min_ms > 8 * 300


def test_a_request_is_repeated_less_and_less_often() -> None:
    waits = [law.request_again_ms(measured(19), attempts, 120_000) for attempts in (1, 2, 50)]
    assert waits == [660, 990, 120_000]


@pytest.mark.conformance("AUTO-T-RESP")
def test_answers_are_spread_over_a_latency_for_each_who_may_answer() -> None:
    assert law.answer_span_ms(measured(19)) == 19 * 300
    assert law.response_groups(measured(999)) == 1
    assert law.response_groups(measured(1_000)) == 7
    assert law.response_groups(measured(9_999)) == 78
    assert law.answer_span_ms(measured(9_999)) == round(9_999 * 300 / 78)


def test_about_e_of_any_number_speak_before_they_hear_the_first() -> None:
    for others in (10, 100, 1_000, 10_000):
        group = measured(others)
        draws = sorted(law.feedback_ms(group, (i + 0.5) / others) for i in range(others))
        assert 1 <= sum(draw < draws[0] + 300 for draw in draws) <= 6
        assert draws[-1] <= 300 * 11


def test_a_pair_acknowledges_at_once_and_a_group_draws() -> None:
    assert law.acknowledge_ms(measured(1), 0.99) == 60
    assert law.acknowledge_ms(measured(19), 0.0) == 60
    assert law.acknowledge_ms(measured(19), 0.99) > 1_000


def test_intervals_double_up_to_the_documented_one() -> None:
    stages = (0, 1, 2, 3, 4, 5, 500)
    waits = [law.stage_ms(measured(2), stage, 30_000) for stage in stages]
    assert waits == [2_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]


def test_between_two_the_second_sync_comes_later() -> None:
    stages = (0, 1, 2, 3, 4, 500)
    waits = [law.stage_ms(measured(1), stage, 30_000) for stage in stages]
    assert waits == [5_000, 5_000, 10_000, 20_000, 30_000, 30_000]
