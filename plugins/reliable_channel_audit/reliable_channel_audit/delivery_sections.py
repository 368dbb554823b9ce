"""Sections of the report about delivery rates, by channel, by hour, and by sender and receiver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from .page import matrix, section
from .rates import duration, percent
from .verdict import Rate, Verdict

MAX_HOURS: Final = 48
MAX_PAIRS: Final = 40
"""Maximum number of rows in a table of delivery rates, the worst first."""
MAX_IN_GRID: Final = 10
"""Maximum number of participants in a grid of senders and receivers. For larger groups, the report
lists the worst pairs instead."""
ABOUT: Final = (
    "Delivery to others than the sender, and the latency from the sender's log to theirs that so "
    "many percent of the deliveries do not exceed. Without the sender's journal, the latency "
    "starts at the first delivery."
)
_COUNTS: Final = ("delivered", "lost", "rate", "p50", "p90", "p99", "max")


def delivery_sections(found: Verdict) -> Iterator[str]:
    """Yield the sections about delivery rates and latencies, by channel if there are several."""
    channels = [each for each in found.rates if each.hour_ms is None and each.sender_id is None]
    hours = [each for each in found.rates if each.hour_ms is not None]
    pairs = [each for each in found.rates if each.sender_id is not None]
    if len(channels) > 1:
        rows = [(each.channel_id, *_counts(each)) for each in channels]
        yield section("Delivery by channel", ABOUT, ["channel_id", *_COUNTS], rows)
    by_rate = sorted(hours, key=lambda each: (*each.badness, -(each.hour_ms or 0)))
    worst = sorted(by_rate[:MAX_HOURS])
    of_hours = [(each.channel_id, each.hour_ms, *_counts(each)) for each in worst]
    about = f"By the hour in which messages were accepted (UTC). {ABOUT}"
    about += _some(len(worst), len(hours), "hours", "delivery_by_hour.parquet")
    yield section("Delivery by hour", about, ["channel_id", "hour_ms", *_COUNTS], of_hours)
    yield _of_pairs(pairs, is_one_channel=len(channels) == 1)


def _of_pairs(pairs: Sequence[Rate], *, is_one_channel: bool) -> str:
    title = "Delivery by sender and receiver"
    names = sorted({name for each in pairs for name in (each.sender_id, each.receiver_id) if name})
    if pairs and is_one_channel and len(names) <= MAX_IN_GRID:
        about = (
            "A row a sender, a column a receiver: delivery rate, and the latency of half and of "
            "99 % of the deliveries."
        )
        of = {(each.sender_id, each.receiver_id): each for each in pairs}
        heads = (f"<th>{escape(name[:40])}</th>" for name in names)
        rows = {name: [_square(of.get((name, other))) for other in names] for name in names}
        return section(title, about, drawn=matrix("from", heads, rows, " grid"))
    columns = ["channel_id", "sender", "receiver", *_COUNTS]
    rows_of_pairs = [
        (each.channel_id, each.sender_id, each.receiver_id, *_counts(each))
        for each in pairs[:MAX_PAIRS]
    ]
    about = f"The worst first. {ABOUT}"
    about += _some(len(rows_of_pairs), len(pairs), "pairs", "delivery_by_pair.parquet")
    return section(title, about, columns, rows_of_pairs)


def _counts(rate: Rate) -> tuple[int | str, ...]:
    latencies = rate.p50_ms, rate.p90_ms, rate.p99_ms, rate.max_ms
    return rate.delivered, rate.lost, percent(rate.rate), *map(duration, latencies)


def _some(shown: int, there: int, things: str, file: str) -> str:
    return f" {shown} of {there:,} {things}, the worst; {file} has all." if shown < there else ""


def _square(rate: Rate | None) -> str:
    if rate is None:
        return "<td>&ndash;</td>"
    value = "broken" if rate.lost else "kept"
    times = f"{duration(rate.p50_ms)}<br>{duration(rate.p99_ms)}"
    counts = f"{rate.delivered:,} of {rate.delivered + rate.lost:,}"
    return f'<td class="{value}" title="{counts}">{percent(rate.rate)}<small>{times}</small></td>'
