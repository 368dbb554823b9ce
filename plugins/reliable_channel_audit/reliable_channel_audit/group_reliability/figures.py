"""Figures of a run of a group. The figures of several runs can be added up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Final, Self

SIGNIFICANT_BITS: Final = 8
"""Number of exact bits of a latency, which give an error of at most 0.4 %."""


class Latencies:
    """Distribution of durations, which are added in µs and read in ms."""

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
        """Return the duration that the given share of all durations does not exceed, or None."""
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
    """Figures of one run, or of several runs together."""

    runs: int = 1
    participants: int = 0
    silent: int = 0
    """Number of participants that received no message at all."""
    messages: int = 0
    """Number of messages that should have arrived."""
    complete: int = 0
    """Number of messages that reached all participants which should have them."""
    expected: int = 0
    """Number of pairs of a message and a participant that should receive it."""
    delivered: int = 0
    not_due: int = 0
    """Number of pairs that are too near to the end of the run, and so count nowhere else."""
    failed: int = 0
    """Number of messages whose sender was told of a failure, so that no delivery is expected."""
    without_origin: int = 0
    """Number of messages without a log line about their sending. The latency of a message without a
    line about its sending counts from its first reception."""
    copies: int = 0
    """Number of arrivals of messages at participants, repeated arrivals included."""
    received: int = 0
    """Number of pairs of a message and a participant that received it, expected or not."""
    holes: int = 0
    """Number of holes, each of consecutive messages that a participant lacks before a later
    message."""
    longest_hole: int = 0
    """Number of messages in the longest hole."""
    in_holes: int = 0
    """Number of messages in all holes. Missing messages outside holes are at the end of a
    participant's messages."""
    ways: Counter[str] = field(default_factory=Counter)
    """Number of deliveries by path. If the logs do not show paths, `ways` is empty."""
    requests: int = 0
    """Number of repair requests of all participants. Each requested message counts each time."""
    responses: int = 0
    latency: Latencies = field(default_factory=Latencies)
    missing_for: Latencies = field(default_factory=Latencies)
    """Times for which delivered messages had been known only by reference."""

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
        """Share of the expected pairs of message and participant that were delivered. If no
        delivery was expected, `delivery_rate` is None."""
        return self.delivered / self.expected if self.expected else None

    @property
    def repaired(self) -> int | None:
        """Number of deliveries by other paths than the first broadcast. If the logs do not show
        paths, `repaired` is None."""
        return (
            None if not self.ways else self.ways.total() - self.ways["live"] - self.ways["unknown"]
        )

    def values(self) -> dict[str, float | int | None]:
        """Return the figures by their names in tables and JSON. An unknown figure is None."""
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
