"""Figures that add up."""

from random import Random

import pytest

from reliable_channel_audit.group_reliability.figures import Figures, Latencies


@pytest.mark.parametrize("seed", range(5))
def test_percentiles_are_exact_to_four_in_a_thousand(seed: int) -> None:
    random, latencies = Random(seed), Latencies()
    values = sorted(int(random.lognormvariate(12, 2)) for _ in range(5_000))
    for value in values:
        latencies.add(value)
    for share in (0.01, 0.5, 0.95, 0.99):
        exact = values[int(share * len(values)) - 1] / 1000
        assert latencies.at_ms(share) == pytest.approx(exact, rel=0.004)
    assert latencies.at_ms(1) == values[-1] / 1000
    assert len(latencies.counts) < 3_000


def test_several_runs_are_as_one_of_all() -> None:
    one, other, together = Figures(), Figures(), Figures(runs=2)
    for figures, least in ((one, 10), (other, 2_000)):
        for us in range(least, least + 500):
            figures.latency.add(us)
            together.latency.add(us)
        figures.expected, figures.delivered, figures.longest_hole = 10, 9, least
        figures.ways.update(live=8, store=1)
    together.expected, together.delivered, together.longest_hole = 20, 18, 2_000
    together.ways.update(live=16, store=2)
    one += other
    assert one.values() == together.values()
    assert one.repaired == 2


def test_what_logs_do_not_show_is_unknown_and_not_zero() -> None:
    values = Figures().values()
    assert values["repaired"] is None
    assert values["delivery_rate"] is None
    assert values["latency_p50_ms"] is None
    assert values["copies_per_delivery"] is None
