"""Logs that differ become equal, and the same way each time."""

from bench.differing import halves, newcomer


def test_a_newcomer_gets_all_and_equal_seeds_give_equal_figures() -> None:
    first = newcomer(40, seed=1, participants=4)
    assert first.seconds is not None
    assert first.messages == 41
    assert first.megabytes > 40 * 100 / 1e6
    assert first == newcomer(40, seed=1, participants=4)
    assert first != newcomer(40, seed=2, participants=4)


def test_two_halves_get_what_the_other_one_has() -> None:
    reunion = halves(20, seed=1, participants=4, apart=30)
    assert reunion.seconds is not None
    assert reunion.messages == 20 + 2 * 30 + 1
