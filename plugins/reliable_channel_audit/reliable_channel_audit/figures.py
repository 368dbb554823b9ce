"""Figures of channels as tables, about latency, paths, repairs and clocks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, get_type_hints

import pyarrow as pa

from .facts import Repair
from .findings import Finding
from .misbehaviour import Deed
from .rates import LEVELS, levels
from .tables.arrivals import Arrivals
from .tables.judging import Judged
from .tables.participants import Acknowledged
from .tables.tally import Tally
from .timeline import DELIVERIES_A_STRETCH, MAX_STRETCHES, TimeBucket

_ARROW: Final = {
    kind: arrow
    for plain, arrow in (
        *((str, pa.string()), (int, pa.int64())),
        *((float, pa.float64()), (bool, pa.bool_())),
    )
    for kind in (plain, plain | None)
}
_NUMBERS: Final = {True: pa.float64(), False: pa.int64()}
_TEXTS: Final = frozenset({"channel_id", "participant_id", "way", "source", "kind", "what", "why"})


def by_way(judged: Judged) -> pa.Table:
    """Time of messages from their sender to others' logs (ms), by path. Without the sender's
    journal, the time starts at the first delivery. Late messages came after a message that refers
    to them."""
    rows = []
    for channel_id, came in judged.arrivals.items():
        for way, delays in sorted(came.by_way.items()):
            missing = came.missing.get(way, ())
            late_p50_ms = levels(missing, [0.5])[0]
            late = len(missing), late_p50_ms
            rows.append((channel_id, way, len(delays), *levels(delays), *late))
    return _table(("channel_id", "way", "deliveries", *LEVELS, "late", "late_p50_ms"), rows)


def repair_efficiency(judged: Judged) -> pa.Table:
    """Messages that were requested from others, with each participant's requests and answers."""
    sums: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    each: Repair
    for each in judged.few.get(Repair, ()):
        own = sums[each[:2]]
        own["asked_for"] += each.requests > 0
        own["requests"] += each.requests
        own["responses"] += each.responses
    names = "asked_for", "requests", "responses"
    rows = [
        (*whose, *(own[name] for name in names), _ratio(own["requests"], own["asked_for"]))
        for whose, own in sorted(sums.items())
    ]
    return _table(("channel_id", "participant_id", *names, "requests_per_loss"), rows)


def acknowledgement_latency(judged: Judged) -> pa.Table:
    """Time from accepting an own message to its acknowledgement (ms), by participant and
    evidence."""
    return table_of(Acknowledged, sorted(judged.acknowledged))


def clocks(judged: Judged) -> pa.Table:
    """Lead of each participant's clock over the median clock (ms), from the quickest messages
    between peers. The error of a lead is at most half the difference between both directions."""
    rows = [(*whose, *offset) for whose, offset in sorted(judged.offsets.items())]
    names = "offset_ms", "least_ms", "most_ms", "why"
    return _table(("channel_id", "participant_id", *names), rows)


def members(judged: Judged) -> pa.Table:
    """Messages that no honest member sends, with the named sender and the number of participants
    that saw them."""
    found: defaultdict[tuple[str, str], list[Deed]] = defaultdict(list)
    for each in judged.few.get(Deed, ()):
        found[each.channel_id, f"{each.sender}: {each.what}"].append(each)
    rows = [
        (
            *key,
            sum(each.times for each in deeds),
            len({each.participant_id for each in deeds}),
            min(each.at_ms for each in deeds),
        )
        for key, deeds in sorted(found.items())
    ]
    return _table(("channel_id", "what", "times", "seen_by", "at_ms"), rows)


def time_buckets(
    arrivals: Mapping[str, Arrivals],
    findings: Sequence[Finding],
    ahead_ms: Mapping[tuple[str, str], int],
) -> list[TimeBucket]:
    """Return time bins with their deliveries and findings, over the time in which messages were
    accepted."""
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
    delays, again = Tally(), Counter[int]()
    for bins in every:
        places = (bins.begin_ms - begin_ms) // wide_ms
        delays.add(places, bins.delay_ms, bins.deliveries)
        is_again = bins.is_again.tolist()
        for place, count, is_it in zip(
            places.tolist(), bins.deliveries.tolist(), is_again, strict=True
        ):
            again[place] += count * is_it
    found = dict(delays.by_group())
    buckets = []
    for place in range(-((begin_ms - end_ms) // wide_ms)):
        at_ms, here = begin_ms + place * wide_ms, found.get(place, ())
        p50_ms, p90_ms = levels(here, [0.5, 0.9])
        buckets.append(
            TimeBucket(
                at_ms, at_ms + wide_ms, len(here), p50_ms, p90_ms, again[place], broken[place]
            )
        )
    return buckets


def _ratio(one: int, other: int) -> float | None:
    return one / other if other else None


def table_of(kind: Any, rows: Iterable[Any], names: Sequence[str] = ()) -> pa.Table:
    """Return named tuples as a table, with the given columns or with all columns."""
    hints = get_type_hints(kind)
    every = list(rows)
    columns = {
        name: pa.array([getattr(row, name) for row in every], _ARROW[hints[name]])
        for name in names or kind._fields
    }
    return pa.table(columns)


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> pa.Table:
    """A table of text, ratios and else whole numbers."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    arrays = [
        pa.array(each, pa.string() if name in _TEXTS else _NUMBERS.get("_per_" in name))
        for name, each in zip(names, columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=names)
