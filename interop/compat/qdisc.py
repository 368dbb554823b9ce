"""What Linux's queueing disciplines netem and tbf do to the packets that leave a container.

Time and randomness are arguments, so that a rule with its seed does the same again. The decisions
are those of `sch_netem.c` and `sch_tbf.c`; times are in seconds, sizes in bytes of a frame.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from random import Random
from typing import Final

__all__ = ["Chance", "Netem", "Qdisc", "Tbf"]

BITS: Final = 8


class Qdisc(ABC):
    """Decides when a packet leaves, and counts."""

    def __init__(self) -> None:
        self.sent_packets = 0
        self.sent_bytes = 0
        self.dropped_packets = 0

    def leaves_at(self, size_bytes: int, now_s: float) -> float | None:
        """Return when a packet leaves that comes now; None where it is dropped."""
        leaves_s = self._decide(size_bytes, now_s)
        if leaves_s is None:
            self.dropped_packets += 1
        else:
            self._count(size_bytes)
        return leaves_s

    def statistics(self) -> str:
        """Return the counters in the words of `tc -s`."""
        sent = f"Sent {self.sent_bytes} bytes {self.sent_packets} pkt"
        return f"{sent} (dropped {self.dropped_packets}, overlimits 0 requeues 0)"

    @abstractmethod
    def __str__(self) -> str:
        """Return the rule in the words of `tc`."""

    @abstractmethod
    def _decide(self, size_bytes: int, now_s: float) -> float | None: ...

    def _count(self, size_bytes: int) -> None:
        self.sent_packets += 1
        self.sent_bytes += size_bytes


@dataclass(slots=True)
class Chance:
    """A probability whose draws depend on the draw before, as netem's `get_crandom`."""

    probability: float = 0.0
    correlation: float = 0.0
    _last: float = field(default=0.0, repr=False)

    def draw(self, random: Random) -> float:
        """Return a number from 0 to 1."""
        drawn = random.random()
        self._last = drawn * (1 - self.correlation) + self._last * self.correlation
        return self._last

    def happens(self, random: Random) -> bool:
        """Whether it happens to this packet; nothing is drawn where it cannot."""
        return self.probability > 0 and self.draw(random) < self.probability

    def __str__(self) -> str:
        correlation = f" {self.correlation:.2%}" if self.correlation else ""
        return f"{self.probability:.2%}{correlation}"


@dataclass(eq=False)
class Netem(Qdisc):
    """Delay, jitter, loss, duplication, reordering and rate."""

    seed: int
    delay_s: float = 0.0
    jitter_s: float = 0.0
    """Delays are spread evenly over `delay_s` ± this."""
    jitter_draws: Chance = field(default_factory=Chance)
    """Its correlation alone is used."""
    loss: Chance = field(default_factory=Chance)
    duplicate: Chance = field(default_factory=Chance)
    reorder: Chance = field(default_factory=Chance)
    """Packets that leave at once, and so before those that came earlier."""
    gap: int = 1
    """Every so many-th packet at most is reordered."""
    rate_bits: float = 0.0
    """Bits per second; 0 is no limit."""
    limit_packets: int = 1000

    def __post_init__(self) -> None:
        super().__init__()
        self._random = Random(self.seed)
        self._waiting: list[float] = []
        self._last_s = 0.0
        self._since_reordered = 0

    def __str__(self) -> str:
        jitter = f" {self.jitter_s * 1000:g}ms" if self.jitter_s else ""
        parts = {
            f"delay {self.delay_s * 1000:g}ms{jitter}": self.delay_s,
            f"loss {self.loss}": self.loss.probability,
            f"duplicate {self.duplicate}": self.duplicate.probability,
            f"reorder {self.reorder} gap {self.gap}": self.reorder.probability,
            f"rate {self.rate_bits:.0f}bit": self.rate_bits,
        }
        named = [text for text, value in parts.items() if value]
        return " ".join(["netem", f"limit {self.limit_packets}", *named, f"seed {self.seed}"])

    def _decide(self, size_bytes: int, now_s: float) -> float | None:
        copies = 1 + self.duplicate.happens(self._random) - self.loss.happens(self._random)
        if copies == 0:
            return None
        first_s = self._enqueue(size_bytes, now_s)
        if copies == 2 and self._enqueue(size_bytes, now_s) is not None:
            self._count(size_bytes)
        return first_s

    def _enqueue(self, size_bytes: int, now_s: float) -> float | None:
        while self._waiting and self._waiting[0] <= now_s:
            heapq.heappop(self._waiting)
        if len(self._waiting) >= self.limit_packets:
            return None
        may_overtake = self._since_reordered >= self.gap - 1
        if may_overtake and self.reorder.happens(self._random):
            self._since_reordered = 0
            return now_s
        self._since_reordered += 1
        leaves_s = now_s + self._delay()
        if self.rate_bits:
            leaves_s = max(leaves_s, self._last_s) + size_bytes * BITS / self.rate_bits
        self._last_s = max(self._last_s, leaves_s)
        heapq.heappush(self._waiting, leaves_s)
        return leaves_s

    def _delay(self) -> float:
        if not self.jitter_s:
            return self.delay_s
        spread = 2 * self.jitter_draws.draw(self._random) - 1
        return max(0.0, self.delay_s + self.jitter_s * spread)


@dataclass(eq=False)
class Tbf(Qdisc):
    """A rate, with a bucket of bytes that leave at once, and a queue for what must wait."""

    rate_bits: float
    burst_bytes: float
    limit_bytes: float
    """What may wait for the bucket."""

    def __post_init__(self) -> None:
        super().__init__()
        self._full_s = 0.0
        """When the bucket is full again, if nothing else leaves."""

    def __str__(self) -> str:
        return (
            f"tbf rate {self.rate_bits:.0f}bit burst {self.burst_bytes:.0f}b "
            f"limit {self.limit_bytes:.0f}b"
        )

    def _decide(self, size_bytes: int, now_s: float) -> float | None:
        per_s = self.rate_bits / BITS
        begins_s = max(now_s, self._full_s)
        leaves_s = max(now_s, begins_s + (size_bytes - self.burst_bytes) / per_s)
        if (leaves_s - now_s) * per_s > self.limit_bytes:
            return None
        self._full_s = begins_s + size_bytes / per_s
        return leaves_s
