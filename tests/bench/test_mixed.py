"""Participants that tune themselves are not slower for the others, and equal seeds are equal."""

from bench.mixed import mixed


def test_a_mixed_group_gets_all_and_equal_seeds_give_equal_figures() -> None:
    first = mixed(2, seed=1, participants=4)
    assert first.tuned is not None and first.others is not None
    assert first.tuned.kilobytes > 0.1 and first.others.kilobytes > 0.1
    assert first == mixed(2, seed=1, participants=4)
    alone = mixed(0, seed=1, participants=4)
    assert alone.tuned is None and alone.others is not None
    assert first.others.latency_p95_s <= alone.others.latency_p95_s
