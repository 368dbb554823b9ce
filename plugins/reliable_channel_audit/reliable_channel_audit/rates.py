"""Delivery rates and latencies of a channel, also by hour, and by sender and receiver."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil, trunc
from typing import Final

from .facts import Delivery
from .promises import hour_of
from .verdict import MAX_FINDINGS, Lost, Rate

LEVELS: Final = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "max_ms": 1.0}
"""Shares of deliveries whose latencies are reported (such as the median)."""
Group = tuple[str, int | None, str | None, str | None]
"""Channel, with the hour or the sender and receiver of a group of deliveries."""


def rates(
    deliveries: Sequence[Delivery],
    lost: Iterable[Lost],
    ahead_ms: Mapping[tuple[str, str], int],
) -> list[Rate]:
    """Return delivery rates, from deliveries to others and from losses. Times are corrected by the
    leads of clocks."""
    accepted_ms = accepted(deliveries, ahead_ms)
    delays: defaultdict[Group, list[int]] = defaultdict(list)
    for each in deliveries:
        if each.first_segment_id is None and each.participant_id != each.sender_id:
            since_ms = accepted_ms[each.channel_id, each.message_id]
            delay_ms = each.at_ms - ahead_ms.get(each[:2], 0) - since_ms
            pair = each.sender_id, each.participant_id
            for group in _groups(each.channel_id, *pair, hour_of(since_ms)):
                delays[group].append(delay_ms)
    return rated({group: sorted(each) for group, each in delays.items()}, lost)


def accepted(
    deliveries: Iterable[Delivery], ahead_ms: Mapping[tuple[str, str], int]
) -> dict[tuple[str, str], int]:
    """Return the time at which each message was accepted, by channel and message id. If its
    sender's journal lacks the message, the time is that of the first delivery."""
    found: dict[tuple[str, str], tuple[bool, int]] = {}
    for each in deliveries:
        key = each.channel_id, each.message_id
        first = each.first_segment_id is None, each.at_ms - ahead_ms.get(each[:2], 0)
        found[key] = min(first, found.get(key, first))
    return {key: at_ms for key, (_, at_ms) in found.items()}


def rated(delays: Mapping[Group, Sequence[int]], lost: Iterable[Lost]) -> list[Rate]:
    """Return delivery rates, from sorted latencies and from losses."""
    losses = Counter[Group]()
    for one in lost:
        for group in _groups(*one[:4]):
            losses[group] += one.messages
    every = {*delays, *losses}
    return listed(_rate(group, delays.get(group, ()), losses[group]) for group in every)


def levels(delays: Sequence[int], shares: Iterable[float] = LEVELS.values()) -> list[int | None]:
    """Return for each share the smallest value that this share of the values does not exceed."""
    count = len(delays)
    return [int(delays[max(ceil(count * share), 1) - 1]) if count else None for share in shares]


def listed(found: Iterable[Rate]) -> list[Rate]:
    """Return rates in the order of `Verdict.rates`: channels, hours, and the worst pairs."""
    every = sorted(found, key=lambda each: (*each.badness, *map(str, each[:4])))
    pairs = [each for each in every if each.sender_id is not None]
    others = [each for each in every if each.sender_id is None]
    others.sort(key=lambda each: (each.hour_ms is not None, each.channel_id, each.hour_ms))
    return others + pairs[:MAX_FINDINGS]


def percent(share: float) -> str:
    """Return a share as a percentage, rounded down, so that only a complete share is 100 %."""
    return f"{trunc(share * 10_000) / 100:g} %"


def duration(ms: float | None) -> str:
    """Return a duration as text for people. For a duration of None, the text is empty."""
    if ms is None:
        return ""
    if ms < 999.5:
        return f"{ms:.3g} ms"
    return f"{ms / 1_000:.3g} s" if ms < 600_000 else f"{ms / 60_000:,.0f} min"


def latency(rate: Rate) -> str:
    """Return the latencies of a rate in words, or an empty text without deliveries."""
    if not rate.delivered:
        return ""
    return f"half in {duration(rate.p50_ms)}, 99 % in {duration(rate.p99_ms)}"


def _groups(channel_id: str, sender_id: str, receiver_id: str, hour_ms: int) -> Iterator[Group]:
    yield channel_id, None, None, None
    yield channel_id, hour_ms, None, None
    yield channel_id, None, sender_id, receiver_id


def _rate(group: Group, delays: Sequence[int], lost: int) -> Rate:
    count = len(delays)
    return Rate(*group, count, lost, count / (count + lost), *levels(delays))
