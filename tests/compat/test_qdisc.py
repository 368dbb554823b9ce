"""What netem and tbf do to packets: when each leaves, and which do not. Time is an argument."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Final

import pytest

from interop.compat.qdisc import Chance, Netem, Qdisc, Tbf

FRAME: Final = 1000
MANY: Final = 20_000


def outcomes(rule: Qdisc, number: int, *, every_s: float = 1.0) -> list[float | None]:
    """How long each of a row of packets takes; None for those that are dropped."""
    leaves = [(n * every_s, rule.leaves_at(FRAME, n * every_s)) for n in range(number)]
    return [None if left is None else left - came for came, left in leaves]


def share(number: int) -> float:
    return number / MANY


def test_without_anything_asked_a_packet_leaves_at_once() -> None:
    assert outcomes(Netem(seed=1), 3) == [0.0, 0.0, 0.0]


def test_a_delay_is_the_same_for_each_packet() -> None:
    assert outcomes(Netem(seed=1, delay_s=0.25), 3) == [0.25, 0.25, 0.25]


def test_jitter_spreads_delays_evenly() -> None:
    delays = [d or 0.0 for d in outcomes(Netem(seed=1, delay_s=0.5, jitter_s=0.25), MANY)]
    assert 0.25 <= min(delays) < 0.26 and 0.74 < max(delays) <= 0.75
    assert sum(delays) / MANY == pytest.approx(0.5, abs=0.01)


def test_jitter_above_the_delay_does_not_send_before_a_packet_came() -> None:
    assert min(d or 0.0 for d in outcomes(Netem(seed=1, delay_s=0.1, jitter_s=0.5), 1000)) == 0.0


def test_correlated_jitter_changes_little_from_packet_to_packet() -> None:
    def steps(correlation: float) -> float:
        rule = Netem(seed=1, delay_s=1.0, jitter_s=0.5, jitter_draws=Chance(1.0, correlation))
        delays = [d or 0.0 for d in outcomes(rule, MANY)]
        return sum(abs(a - b) for a, b in pairwise(delays))

    assert steps(0.9) < steps(0.0) / 5


@pytest.mark.parametrize("loss", [0.0, 0.3, 1.0])
def test_loss_drops_its_share(loss: float) -> None:
    rule = Netem(seed=1, loss=Chance(loss))
    dropped = outcomes(rule, MANY).count(None)
    assert share(dropped) == pytest.approx(loss, abs=0.01)
    assert rule.dropped_packets == dropped and rule.sent_packets == MANY - dropped
    assert rule.sent_bytes == FRAME * rule.sent_packets


def test_correlated_loss_comes_in_runs() -> None:
    def after_a_loss(correlation: float) -> float:
        lost = [d is None for d in outcomes(Netem(seed=1, loss=Chance(0.5, correlation)), MANY)]
        return sum(a and b for a, b in pairwise(lost)) / sum(lost)

    assert after_a_loss(0.0) == pytest.approx(0.5, abs=0.02)
    assert after_a_loss(0.75) > 0.7


def test_a_duplicate_is_sent_as_well_and_takes_its_share_of_the_rate() -> None:
    rule = Netem(seed=1, duplicate=Chance(1.0), rate_bits=8000)
    assert [rule.leaves_at(FRAME, 0.0) for _ in range(2)] == [1.0, 3.0]
    assert rule.sent_packets == 4


def test_a_duplicate_makes_up_for_a_loss() -> None:
    rule = Netem(seed=1, duplicate=Chance(1.0), loss=Chance(1.0))
    assert outcomes(rule, 3) == [0.0, 0.0, 0.0] and rule.sent_packets == 3


def test_packets_that_are_reordered_leave_at_once() -> None:
    early = outcomes(Netem(seed=1, delay_s=0.01, reorder=Chance(0.25)), MANY).count(0.0)
    assert share(early) == pytest.approx(0.25, abs=0.01)


def test_with_a_gap_every_so_many_th_packet_is_reordered() -> None:
    delays = outcomes(Netem(seed=1, delay_s=0.5, reorder=Chance(1.0), gap=3), 6)
    assert delays == [0.5, 0.5, 0.0, 0.5, 0.5, 0.0]


def test_a_rate_spaces_packets() -> None:
    assert outcomes(Netem(seed=1, rate_bits=8000), 3, every_s=0) == [1.0, 2.0, 3.0]


def test_what_waits_is_bounded() -> None:
    rule = Netem(seed=1, delay_s=1.0, limit_packets=2)
    assert [rule.leaves_at(FRAME, now_s) for now_s in (0.0, 0.0, 0.0, 1.0)] == [1.0, 1.0, None, 2.0]


def test_a_seed_gives_the_same_again_and_another_one_does_not() -> None:
    rule = Netem(seed=7, delay_s=1.0, jitter_s=0.5, loss=Chance(0.5))
    first = outcomes(rule, 50)
    again = replace(rule, loss=Chance(0.5), jitter_draws=Chance())
    assert outcomes(again, 50) == first
    other = replace(rule, seed=8, loss=Chance(0.5), jitter_draws=Chance())
    assert outcomes(other, 50) != first


def test_a_bucket_lets_a_burst_pass_then_keeps_to_its_rate() -> None:
    rule = Tbf(rate_bits=8000, burst_bytes=2000, limit_bytes=2000)
    assert outcomes(rule, 5, every_s=0) == [0.0, 0.0, 1.0, 2.0, None]
    # What was dropped took nothing from the bucket, which is full again two seconds later.
    assert [rule.leaves_at(FRAME, 4.0) for _ in range(3)] == [4.0, 4.0, 5.0]
