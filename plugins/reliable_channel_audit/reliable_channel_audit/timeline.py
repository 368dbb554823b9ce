"""Picture of latency over time, with marks where promises were broken or messages repaired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil, floor, log10
from typing import Final, NamedTuple

from .findings import Finding
from .lines import time_text
from .rates import levels
from .tables.arrivals import Arrivals
from .tables.tally import Tally

MAX_STRETCHES: Final = 120
"""Maximum number of time bins in the picture."""
DELIVERIES_A_STRETCH: Final = 20
"""Mean number of deliveries in a time bin. With fewer deliveries, the median would be of no use."""
_WIDTH, _HEIGHT = 960, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 88, 12, 14, 40
_TICKS: Final = 8
_STEPS: Final = (
    *((ms, "%H:%M:%S.%f") for ms in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *((s * 1_000, "%H:%M:%S") for s in (1, 2, 5, 10, 15, 30)),
    *((m * 60_000, "%H:%M") for m in (1, 2, 5, 10, 15, 30, 60, 120)),
    *((h * 3_600_000, "%m-%d %H:%M") for h in (3, 6, 12)),
    (86_400_000, "%Y-%m-%d"),
)
"""Distances of times below (ms), and how they read."""
_BROKEN, _REPAIRED = "#f3b3b8", "#f6e3b4"
_LINES: Final = (("p50_ms", "#0072B2", ""), ("p90_ms", "#D55E00", "6 3"))


class TimeBucket(NamedTuple):
    """Deliveries and findings in one time bin."""

    begin_ms: int
    end_ms: int
    deliveries: int
    p50_ms: float | None
    p90_ms: float | None
    repaired: int
    """Number of deliveries by other paths than the first broadcast."""
    broken: int
    """Number of findings in the time bin."""


def time_buckets(
    arrivals: Mapping[str, Arrivals],
    findings: Sequence[Finding],
    ahead_ms: Mapping[tuple[str, str], int],
) -> list[TimeBucket]:
    """Return deliveries and findings in bins of the time in which messages were accepted."""
    every = [each.bins for each in arrivals.values() if len(each.bins.deliveries)]
    if not every:
        return []
    begin_ms = min(int(each.begin_ms[0]) for each in every)
    end_ms = max(int(each.begin_ms[-1]) + each.wide_ms for each in every)
    deliveries = sum(int(each.deliveries.sum()) for each in every)
    most = max(1, min(MAX_STRETCHES, deliveries // DELIVERIES_A_STRETCH))
    wide_ms = max(each.wide_ms for each in every)
    while (end_ms - begin_ms) / wide_ms > most:
        wide_ms *= 2
    broken = Counter[int]()
    for each in findings:
        # By the clock of the participant, or of the sender of the message: by one that is there.
        is_there = begin_ms <= each.at_ms < end_ms
        at_ms = each.at_ms if is_there else each.at_ms - ahead_ms.get(each[1:3], 0)
        broken[(at_ms - begin_ms) // wide_ms] += 1
    delays, again = Tally(), Tally()
    for bins in every:
        places = (bins.begin_ms - begin_ms) // wide_ms
        delays.add(places, bins.delay_ms, bins.deliveries)
        again.add(*(each[bins.is_again] for each in (places, bins.delay_ms, bins.deliveries)))
    found, repaired = dict(delays.by_group()), dict(again.by_group())
    buckets = []
    for place in range(-((begin_ms - end_ms) // wide_ms)):
        at_ms, here = begin_ms + place * wide_ms, found.get(place, ())
        p50_ms, p90_ms = levels(here, [0.5, 0.9])
        again_here, broken_here = len(repaired.get(place, ())), broken[place]
        span = at_ms, at_ms + wide_ms
        buckets.append(TimeBucket(*span, len(here), p50_ms, p90_ms, again_here, broken_here))
    return buckets


def draw_timeline(buckets: Sequence[TimeBucket]) -> str:
    """Return an SVG of latencies (logarithmic) over time with its legend, or an empty text."""
    latencies = [each for stretch in buckets for each in stretch[3:5] if each is not None]
    if not latencies:
        return ""
    low = floor(log10(max(min(latencies), 1)))
    high = max(ceil(log10(max(*latencies, 1))), low + 1)
    begin_ms, end_ms = buckets[0].begin_ms, buckets[-1].end_ms

    def x(at_ms: float) -> float:
        return _LEFT + (at_ms - begin_ms) / max(end_ms - begin_ms, 1) * (_WIDTH - _LEFT - _RIGHT)

    def y(value_ms: float) -> float:
        share = (log10(max(value_ms, 1)) - low) / (high - low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)

    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="12" role="img">'
        "<title>Time from sender to log, by when messages were accepted</title>"
    )
    parts = [
        head,
        *_shades(buckets, x),
        *_levels(low, high, y),
        *_times(begin_ms, end_ms, x),
        *_curves(buckets, x, y),
        f"</svg>{_LEGEND}",
    ]
    return "\n".join(parts)


_LEGEND: Final = (
    '<p class="legend">'
    '<span style="border-top: 3px solid #0072B2"></span>half of deliveries within '
    '<span style="border-top: 3px dashed #D55E00"></span>nine of ten within '
    f'<span class="area" style="background: {_BROKEN}"></span>a promise was broken '
    f'<span class="area" style="background: {_REPAIRED}"></span>messages were sent again, repaired '
    "or fetched from Store</p>"
)


def _shades(buckets: Iterable[TimeBucket], x: Callable[[float], float]) -> Iterator[str]:
    for each in buckets:
        if not (each.broken or each.repaired):
            continue
        left, right = x(each.begin_ms), x(each.end_ms)
        share = each.repaired / max(each.deliveries, 1)
        colour, opacity = (_BROKEN, 1.0) if each.broken else (_REPAIRED, 0.1 + 0.9 * share)
        yield (
            f'<rect x="{left:.1f}" y="{_TOP}" width="{max(right - left, 1):.1f}" '
            f'height="{_HEIGHT - _TOP - _BOTTOM}" fill="{colour}" fill-opacity="{opacity:.2f}">'
            f"<title>findings: {each.broken}; {each.repaired} of {each.deliveries} deliveries by "
            "another way</title></rect>"
        )


def _levels(low: int, high: int, y: Callable[[float], float]) -> Iterator[str]:
    for power in range(low, high + 1):
        at, value_ms = y(10**power), 10**power
        text = f"{value_ms} ms" if value_ms < 1_000 else f"{value_ms // 1_000:,} s"
        yield (
            f'<line x1="{_LEFT}" y1="{at:.1f}" x2="{_WIDTH - _RIGHT}" y2="{at:.1f}" '
            'stroke="#d8d8d8"/>'
        )
        yield f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end" fill="#444">{text}</text>'


def _times(begin_ms: int, end_ms: int, x: Callable[[float], float]) -> Iterator[str]:
    """Round times below, as exact as their distance takes: each is another text."""
    span_ms = max(end_ms - begin_ms, 1)
    step_ms, form = next((each for each in _STEPS if span_ms <= _TICKS * each[0]), _STEPS[-1])
    step_ms *= ceil(span_ms / (_TICKS * step_ms))
    for at_ms in range(-(-begin_ms // step_ms) * step_ms, end_ms + 1, step_ms):
        yield (
            f'<text x="{x(at_ms):.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle" '
            f'fill="#444">{time_text(at_ms, form)}</text>'
        )
    day = time_text(begin_ms, "%Y-%m-%d")
    yield f'<text x="{_LEFT}" y="{_HEIGHT - 6}" fill="#777">{day}, UTC</text>'


def _curves(
    buckets: Sequence[TimeBucket], x: Callable[[float], float], y: Callable[[float], float]
) -> Iterator[str]:
    """Broken where nothing was delivered."""
    for name, colour, dashes in _LINES:
        path, is_open = [], False
        for each in buckets:
            value_ms = getattr(each, name)
            if value_ms is not None:
                middle = x((each.begin_ms + each.end_ms) / 2)
                path.append(f"{'L' if is_open else 'M'}{middle:.1f} {y(value_ms):.1f}")
                path += [] if is_open else ["h0.1"]
            is_open = value_ms is not None
        style = f'stroke="{colour}" stroke-dasharray="{dashes}" stroke-width="2"'
        yield f'<path d="{" ".join(path)}" fill="none" stroke-linecap="round" {style}/>'
