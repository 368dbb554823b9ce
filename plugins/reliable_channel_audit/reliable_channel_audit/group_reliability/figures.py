"""Figures of a run. The figures of several runs can be added."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Final, Self

SIGNIFICANT_BITS: Final = 8
"""Resolution of latencies: they are exact to 0.4 %, and any number of them takes a few hundred
counts."""


class Latencies:
    """Distribution of durations (µs in, ms out)."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.negative = 0
        """Earlier than sent, by clocks that disagree: counted here, and in no percentile."""
        self._most_us = 0

    def add(self, us: int) -> None:
        if us < 0:
            self.negative += 1
            return
        shift = max(us.bit_length() - SIGNIFICANT_BITS, 0)
        middle = (1 << shift) >> 1
        self.counts[(us >> shift << shift) + middle] += 1
        self._most_us = max(self._most_us, us)

    def __iadd__(self, other: Self) -> Self:
        """With those of another run."""
        self.counts += other.counts
        self.negative += other.negative
        self._most_us = max(self._most_us, other._most_us)
        return self

    def at_ms(self, share: float) -> float | None:
        """Return the duration that `share` of them do not exceed, or None."""
        total = self.counts.total()
        if not total:
            return None
        if share >= 1:
            return self._most_us / 1000
        rest = share * total
        for us in sorted(self.counts):
            rest -= self.counts[us]
            if rest <= 0:
                return min(us, self._most_us) / 1000
        return self._most_us / 1000


@dataclass(slots=True)
class Figures:
    """Counts of one run or of several."""

    runs: int = 1
    participants: int = 0
    silent: int = 0
    """Participants that received no message at all."""
    messages: int = 0
    """Messages that should have arrived."""
    complete: int = 0
    """Messages that all participants received which should have them."""
    expected: int = 0
    """Pairs of a message and a participant that should have it, without its origin."""
    delivered: int = 0
    not_due: int = 0
    """Pairs too near to the end for a judgement, which are in no other figure."""
    failed: int = 0
    """Messages whose failure was emitted to the sender, so that no delivery is expected."""
    without_origin: int = 0
    """Messages without a line about their sending. Latency counts from their first reception."""
    copies: int = 0
    """Arrivals of the same message at the same participant, the first one included."""
    received: int = 0
    """Pairs of a message and a participant that received it, expected or not."""
    holes: int = 0
    """Runs of messages that a participant lacks, after which it received another one."""
    longest_hole: int = 0
    """Length of the longest hole in messages."""
    in_holes: int = 0
    """Messages in holes. Other missing ones are at the end of a participant's messages."""
    ways: Counter[str] = field(default_factory=Counter)
    """Deliveries by path. Empty if the logs do not show it."""
    requests: int = 0
    """Repair requests of participants. A message counts each time."""
    responses: int = 0
    latency: Latencies = field(default_factory=Latencies)
    missing_for: Latencies = field(default_factory=Latencies)
    """Durations for which delivered messages were known only by reference."""

    def __iadd__(self, other: Self) -> Self:
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if each.name == "longest_hole":
                self.longest_hole = max(mine, theirs)
            else:
                mine += theirs
                setattr(self, each.name, mine)
        return self

    @property
    def delivery_rate(self) -> float | None:
        """Share of the expected pairs. None if nothing was expected."""
        return self.delivered / self.expected if self.expected else None

    @property
    def repaired(self) -> int | None:
        """Deliveries by another path than the first broadcast. None if logs do not show it."""
        return (
            None if not self.ways else self.ways.total() - self.ways["live"] - self.ways["unknown"]
        )

    def values(self) -> dict[str, float | int | None]:
        """Return each figure by its name in tables and JSON. None means unknown."""
        told = bool(self.ways)
        return {
            "runs": self.runs,
            "participants": self.participants,
            "silent_participants": self.silent,
            "messages": self.messages,
            "complete_messages": self.complete,
            "expected_deliveries": self.expected,
            "deliveries": self.delivered,
            "delivery_rate": self.delivery_rate,
            "missing": self.expected - self.delivered,
            "holes": self.holes,
            "longest_hole_messages": self.longest_hole,
            "missing_at_the_end": self.expected - self.delivered - self.in_holes,
            "latency_p50_ms": self.latency.at_ms(0.5),
            "latency_p95_ms": self.latency.at_ms(0.95),
            "latency_p99_ms": self.latency.at_ms(0.99),
            "latency_max_ms": self.latency.at_ms(1),
            "repaired": self.repaired,
            "from_store": self.ways["store"] if told else None,
            "by_retransmission": self.ways["retransmission"] if told else None,
            "by_repair": self.ways["repair"] if told else None,
            "repair_requests": self.requests if told else None,
            "repair_responses": self.responses if told else None,
            "missing_for_p50_ms": self.missing_for.at_ms(0.5),
            "missing_for_p99_ms": self.missing_for.at_ms(0.99),
            "copies_per_delivery": self.copies / self.received if self.received else None,
            "failed_messages": self.failed,
            "not_due": self.not_due,
            "messages_without_origin": self.without_origin,
            "negative_latencies": self.latency.negative,
        }
