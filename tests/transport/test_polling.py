"""Polling: fast enough for the traffic and for the smallest cache, and no faster."""

from collections.abc import Iterator
from itertools import chain, repeat
from random import Random

import pytest

from reliable_channel.transport.polling import CACHE_CAPACITY, AdaptivePolling
from reliable_channel.transport.settings import WakuSettings

DEFAULTS = WakuSettings("/app/1/chat/proto")


def polling() -> AdaptivePolling:
    return AdaptivePolling(
        min_interval_ms=DEFAULTS.poll_min_interval_ms, max_interval_ms=DEFAULTS.poll_max_interval_ms
    )


def looks(arrivals_ms: Iterator[float], *, latency_ms: float, until_ms: float) -> list[int]:
    """Poll a cache that is filled at these times; return what each look brought."""
    rule = polling()
    now_ms = last_ms = 0.0
    coming = next(arrivals_ms)
    found: list[int] = []
    interval_ms = 0
    while now_ms < until_ms:
        now_ms += interval_ms + latency_ms
        count = 0
        while coming <= now_ms:
            count += 1
            coming = next(arrivals_ms)
        interval_ms = rule.next_interval_ms(count, now_ms - last_ms)
        last_ms = now_ms
        found.append(count)
    return found


def evenly(per_second: float, *, after_ms: float = 0) -> Iterator[float]:
    gap_ms = 1_000 / per_second
    number = 0
    while True:
        number += 1
        yield after_ms + number * gap_ms


def bursts(random: Random, size: int, per_second: float, pause_ms: float) -> Iterator[float]:
    """`size` messages at a rate, then silence, and again."""
    at_ms = 0.0
    while True:
        at_ms += random.uniform(0, 2 * pause_ms)
        for _ in range(size):
            at_ms += 1_000 / per_second
            yield at_ms


@pytest.mark.parametrize("latency_ms", [1, 5, 20, 40])
def test_200_messages_a_second_out_of_silence_overflow_no_cache(latency_ms: float) -> None:
    found = looks(evenly(200, after_ms=60_000), latency_ms=latency_ms, until_ms=120_000)
    assert sum(found) > 11_000
    assert max(found) < CACHE_CAPACITY == 30


@pytest.mark.parametrize("seed", range(20))
def test_bursts_of_200_a_second_overflow_no_cache(seed: int) -> None:
    arrivals = bursts(Random(seed), size=50, per_second=200, pause_ms=3_000)
    assert max(looks(arrivals, latency_ms=5, until_ms=120_000)) < CACHE_CAPACITY


def test_silence_is_polled_at_the_longest_interval() -> None:
    found = looks(chain(repeat(1e12)), latency_ms=0, until_ms=60_000)
    assert len(found) == pytest.approx(60_000 / DEFAULTS.poll_max_interval_ms, rel=0.01)


def test_steady_traffic_fills_about_a_quarter_of_the_cache() -> None:
    found = looks(evenly(200), latency_ms=1, until_ms=60_000)[10:]
    assert 5 <= sum(found) / len(found) <= 10


def test_the_interval_stays_in_its_bounds_and_relaxes_slowly() -> None:
    rule = polling()
    assert rule.next_interval_ms(50, 0) == DEFAULTS.poll_min_interval_ms
    intervals = [rule.next_interval_ms(0, 10) for _ in range(60)]
    assert intervals == sorted(intervals)
    assert intervals[0] == DEFAULTS.poll_min_interval_ms
    assert intervals[-1] == DEFAULTS.poll_max_interval_ms


def test_a_look_that_brings_a_cache_full_is_suspected() -> None:
    assert [polling().overflow_suspected(count) for count in (0, 29, 30, 50)] == [
        False, False, True, True,
    ]  # fmt: skip
