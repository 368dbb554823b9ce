"""The floor that plots of the comparison show."""

from random import Random

import pytest

from reliable_channel_lab.sim.comparison import Cell
from reliable_channel_lab.sim.floor import expected_copies, floor_of, latency_ms
from reliable_channel_lab.sim.scenario import PUBLISH_MS, Conditions


@pytest.mark.parametrize(("others", "loss"), [(1, 0.2), (19, 0.2), (19, 0.4), (99, 0.1)])
def test_as_many_copies_as_a_sender_that_sees_all_losses_sends(others: int, loss: float) -> None:
    random, runs, copies = Random(others), 5_000, 0
    for _ in range(runs):
        missing = others
        while missing:
            copies += 1
            missing = sum(random.random() < loss for _ in range(missing))
    assert expected_copies(others, loss) == pytest.approx(copies / runs, rel=0.03)


@pytest.mark.parametrize(("loss", "copies"), [(0.0, 1), (0.2, 2), (0.4, 4)])
def test_the_latency_of_copies_that_go_out_at_once(loss: float, copies: int) -> None:
    random, latency = Random(copies), Conditions().latency
    delays = sorted(
        min(
            PUBLISH_MS + random.uniform(latency.min_ms, latency.max_ms)
            if random.random() >= loss
            else float("inf")
            for _ in range(copies)
        )
        for _ in range(20_000)
    )
    assert latency_ms(loss) == pytest.approx(delays[19_000], rel=0.02)


def test_without_loss_a_message_goes_out_once_and_is_acknowledged_once() -> None:
    assert expected_copies(999, 0.0) == 1
    pair, large = (floor_of(Cell("group", size, 0.0, "auto", 1)) for size in (2, 1_000))
    assert pair == large
    assert 500 < pair.bytes_per_message < 700


def test_a_community_is_the_mean_of_its_channels() -> None:
    group, community = (
        floor_of(Cell(scenario, 100, 0.2, "auto", 1)) for scenario in ("group", "community")
    )
    assert community.bytes_per_message < group.bytes_per_message
    assert community.latency_p95_ms == group.latency_p95_ms
    pairs = floor_of(Cell("community", 2, 0.2, "auto", 1))
    assert pairs == floor_of(Cell("group", 2, 0.2, "auto", 1))
