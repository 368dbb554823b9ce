"""Figures of a run of a group. The figures of several runs can be added up."""

from __future__ import annotations

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ..clocks import clock_offsets, own_lags
from ..facts import Delivery, Dispatch, Lag, Outcome, Repair, way_of
from ..findings import ALWAYS_MS, Finding, Gap, HeardSender
from ..promises import Context, MessageKey, Messages, Whose
from ..rates import LEVELS, accepted, levels
from ..replay import Life


@dataclass(slots=True)
class Figures:
    """Figures of one run, or of several runs together."""

    runs: int = 1
    participants: int = 0
    messages: int = 0
    lost: int = 0
    """Number of deliveries that did not happen, as in the verdict of `check`."""
    on_the_way: int = 0
    """Number of pairs of message and participant that are too near to the end of the run."""
    holes: int = 0
    """Number of holes, each of consecutive messages that a participant lacks before a later
    message."""
    longest_hole: int = 0
    """Number of messages in the longest hole."""
    lost_at_the_end: int = 0
    """Number of lost messages that no later message of the same participant follows."""
    delays_ms: list[int] = field(default_factory=list)
    """Time of each delivery to another participant."""
    missing_ms: list[int] = field(default_factory=list)
    """Times for which delivered messages had been known only by reference."""
    ways: Counter[str] = field(default_factory=Counter)
    """Number of deliveries by path. If the logs do not show paths, `ways` is empty."""
    requests: int = 0
    """Number of repair requests of all participants. Each requested message counts each time."""
    responses: int = 0

    def add(self, other: Figures) -> None:
        """Add the figures of other runs."""
        longest = max(self.longest_hole, other.longest_hole)
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))
        self.longest_hole = longest

    @property
    def expected(self) -> int:
        """Number of deliveries that should have happened."""
        return len(self.delays_ms) + self.lost

    def values(self) -> dict[str, float | int | None]:
        """Return the figures by their names in tables and JSON. An unknown figure is None."""
        delivered, ways = len(self.delays_ms), self.ways
        latencies = zip(LEVELS, levels(sorted(self.delays_ms)), strict=True)
        missing_for = levels(sorted(self.missing_ms), (0.5, 0.99))
        repairs = {
            "repaired": ways.total() - ways["live"] - ways["unknown"],
            "from_store": ways["store"],
            "by_retransmission": ways["retransmission"],
            "by_repair": ways["repair"],
            "repair_requests": self.requests,
            "repair_responses": self.responses,
        }
        return {
            "runs": self.runs,
            "participants": self.participants,
            "messages": self.messages,
            "expected_deliveries": self.expected,
            "deliveries": delivered,
            "delivery_rate": delivered / self.expected if self.expected else None,
            "missing": self.lost,
            "on_the_way": self.on_the_way,
            "holes": self.holes,
            "longest_hole_messages": self.longest_hole,
            "missing_at_the_end": self.lost_at_the_end,
            **{f"latency_{name}": value for name, value in latencies},
            **(repairs if ways else dict.fromkeys(repairs)),
            "missing_for_p50_ms": missing_for[0],
            "missing_for_p99_ms": missing_for[1],
        }


def figures_of(facts: Mapping[type, list[Any]], settle_ms: int | None) -> tuple[Figures, list[str]]:
    """Return the figures in the facts of a run, and reasons why they may be unreliable.

    A participant whose clock is unknown, or whose journal lacks lines, is left out. Its times would
    show losses and latencies that did not happen, or hide real ones.
    """
    lives: list[Life] = facts[Life]
    offsets = clock_offsets(own_lags(facts[Lag], facts[Dispatch]), lives)
    context = Context(lives, offsets, facts[Gap], facts[HeardSender], settle_ms)
    every = sorted({life[:2] for life in lives})
    unknown = {whose: why for whose in every if (why := _why_not(context, whose))}
    context.lives = [life for life in lives if life[:2] not in unknown]
    deliveries = [
        each
        for each in facts[Delivery]
        if unknown.keys().isdisjoint((each[:2], (each.channel_id, each.sender_id)))
    ]
    messages = Messages(context, deliveries)
    messages.undelivered(facts[Outcome])
    compared = messages.result
    there = {life[:2] for life in context.lives}
    accepted_ms = accepted(deliveries, context.ahead_ms)
    others = [
        each
        for each in deliveries
        if each.first_segment_id is None and each.participant_id != each.sender_id
    ]
    holes, lost_at_the_end = _holes(compared.findings, others, accepted_ms)
    kinds = {(each.channel_id, each.message_hash): each.kind for each in facts[Dispatch]}
    figures = Figures(
        participants=len(there),
        messages=len(messages.holders),
        lost=len(compared.findings),
        on_the_way=compared.on_the_way,
        holes=len(holes),
        longest_hole=max(holes, default=0),
        lost_at_the_end=lost_at_the_end,
        delays_ms=[
            each.at_ms - context.ahead_ms[each[:2]] - accepted_ms[each.channel_id, each.message_id]
            for each in others
        ],
        missing_ms=[
            each.at_ms - each.missing_since_ms
            for each in others
            if each.missing_since_ms is not None
        ],
        ways=Counter(
            way_of(each.source, kinds.get((each.channel_id, each.message_hash or b"")))
            for each in (others if kinds else ())
        ),
        requests=sum(each.requests for each in facts[Repair]),
        responses=sum(each.responses for each in facts[Repair]),
    )
    warnings = [f"{whose[1]} is left out: {why}" for whose, why in unknown.items()]
    if not figures.expected:
        warnings.append("nothing was measured: no message was due at a second participant")
    if silent := len(there - {each[:2] for each in deliveries}):
        warnings.append(f"{silent} participants had no message at all")
    return figures, warnings


def _why_not(context: Context, whose: Whose) -> str:
    """Why a participant is left out."""
    gap = context.gap(whose, *ALWAYS_MS)
    return context.unknown_clock(whose) or (gap.why if gap else "")


def _holes(
    lost: Iterable[Finding], others: Iterable[Delivery], accepted_ms: Mapping[MessageKey, int]
) -> tuple[list[int], int]:
    """The sizes of holes, each of messages that a participant lacks between two that it has, and
    how many messages are lost at the end."""
    missed: defaultdict[tuple[str, str, int], list[int]] = defaultdict(list)
    for finding in lost:
        missed[finding[1:4]].append(accepted_ms[finding.channel_id, finding.message_id])
    had: defaultdict[tuple[str, str, int], list[int]] = defaultdict(list)
    for each in others:
        had[each[:3]].append(accepted_ms[each.channel_id, each.message_id])
    found, at_the_end = list[int](), 0
    for life, times_ms in missed.items():
        before = sorted(had[life])
        holes = Counter(bisect(before, at_ms) for at_ms in times_ms)
        at_the_end += holes.pop(len(before), 0)
        found += holes.values()
    return found, at_the_end
