"""Figures of channels as rows, about latency, paths, repairs and clocks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from .facts import Repair
from .findings import Finding
from .misbehaviour import Deed
from .rates import LEVELS, levels
from .tables.arrivals import Arrivals
from .tables.ingest import Row
from .tables.judging import Judged
from .tables.tally import Tally
from .timeline import DELIVERIES_A_STRETCH, MAX_STRETCHES, TimeBucket


def by_way(judged: Judged) -> list[Row]:
    """Time of messages from their sender to others' logs (ms), by path. Without the sender's
    journal, the time starts at the first delivery. Late messages came after a message that refers
    to them."""
    rows = []
    for channel_id, came in judged.arrivals.items():
        for way, delays in sorted(came.by_way.items()):
            late = came.missing.get(way, ())
            row: Row = {"channel_id": channel_id, "way": way, "deliveries": len(delays)}
            row |= zip(LEVELS, levels(delays), strict=True)
            rows.append(row | {"late": len(late), "late_p50_ms": levels(late, [0.5])[0]})
    return rows


def repair_efficiency(judged: Judged) -> list[Row]:
    """Messages that were requested from others, with each participant's requests and answers."""
    sums: defaultdict[tuple[str, str], Row] = defaultdict(
        lambda: {"asked_for": 0, "requests": 0, "responses": 0}
    )
    each: Repair
    for each in judged.few.get(Repair, ()):
        own = sums[each[:2]]
        own["asked_for"] += each.requests > 0
        own["requests"] += each.requests
        own["responses"] += each.responses
    rows = []
    for (channel_id, participant_id), own in sorted(sums.items()):
        ratio = own["requests"] / own["asked_for"] if own["asked_for"] else None
        whose = {"channel_id": channel_id, "participant_id": participant_id}
        rows.append(whose | own | {"requests_per_loss": ratio})
    return rows


def acknowledgement_latency(judged: Judged) -> list[Row]:
    """Time from accepting an own message to its acknowledgement (ms), by participant and
    evidence."""
    return [each._asdict() for each in sorted(judged.acknowledged)]


def clocks(judged: Judged) -> list[Row]:
    """Lead of each participant's clock over the median clock (ms), from the quickest messages
    between peers. The error of a lead is at most half the difference between both directions."""
    return [
        {"channel_id": channel_id, "participant_id": participant_id, **offset._asdict()}
        for (channel_id, participant_id), offset in sorted(judged.offsets.items())
    ]


def members(judged: Judged) -> list[Row]:
    """Messages that no honest member sends, with the named sender and the number of participants
    that saw them."""
    found: defaultdict[tuple[str, str], list[Deed]] = defaultdict(list)
    for each in judged.few.get(Deed, ()):
        found[each.channel_id, f"{each.sender}: {each.what}"].append(each)
    return [
        {
            "channel_id": channel_id,
            "what": what,
            "times": sum(each.times for each in deeds),
            "seen_by": len({each.participant_id for each in deeds}),
            "at_ms": min(each.at_ms for each in deeds),
        }
        for (channel_id, what), deeds in sorted(found.items())
    ]


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
