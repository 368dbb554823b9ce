"""Latency over time as a picture."""

from __future__ import annotations

import re

import pytest

from reliable_channel_audit.timeline import TimeBucket, draw_timeline

BEGIN_MS = 1_700_000_000_000


def drawn(span_ms: int, count: int = 40) -> str:
    wide_ms = max(span_ms // count, 1)
    buckets = []
    for n in range(count):
        begin_ms = BEGIN_MS + n * wide_ms
        counts = n % 2, int(n == 3)
        buckets.append(TimeBucket(begin_ms, begin_ms + wide_ms, 9, 80.0, 900.0, *counts))
    return draw_timeline(buckets)


@pytest.mark.parametrize("span_ms", [40, 900, 92_000, 7_200_000, 86_400_000, 40 * 86_400_000])
def test_no_time_is_written_twice(span_ms: int) -> None:
    times = re.findall(r'text-anchor="middle"[^>]*>([^<]+)<', drawn(span_ms))
    assert 2 <= len(times) <= 10
    assert len(set(times)) == len(times)


@pytest.mark.parametrize("slowest_ms", [10.0, 900.0, 2_000_000.0, 900_000_000.0])
def test_no_latency_is_cut_off_on_the_left(slowest_ms: float) -> None:
    """A letter of 12 pixels is less than 7 wide; a clock may be ten days off."""
    text = draw_timeline([TimeBucket(BEGIN_MS, BEGIN_MS + 9, 9, 1.0, slowest_ms, 0, 0)])
    levels = re.findall(r'<text x="(\d+)"[^>]*text-anchor="end"[^>]*>([^<]+)<', text)
    assert len(levels) >= 2
    assert all(int(right) >= 7 * len(level) for right, level in levels)


def test_findings_and_repairs_are_shaded() -> None:
    shades = re.findall(r'<rect [^>]*fill="(#\w+)"[^>]*><title>([^<]+)<', drawn(92_000))
    assert len({colour for colour, _ in shades}) == 2
    assert [title for _, title in shades if title.startswith("findings: 1;")] == [
        "findings: 1; 1 of 9 deliveries by another way"
    ]


def test_where_nothing_was_delivered_there_is_no_picture() -> None:
    assert draw_timeline([]) == ""
    assert draw_timeline([TimeBucket(0, 1, 0, None, None, 0, 0)]) == ""
