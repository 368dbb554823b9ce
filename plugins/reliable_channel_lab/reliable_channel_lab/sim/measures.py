"""Costs and quality of a run, as flat records of numbers that `metering.py` measures.

Times are virtual milliseconds, and bytes count the payloads of Waku messages. A broadcast counts
once, at its sender, however often the network forwards the message.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from reliable_channel.sds.events import OutgoingKind


@dataclass(frozen=True, slots=True)
class Measures:
    """Figures of one run of a sync protocol. Percentiles use the nearest rank, and are None if
    there are no values."""

    messages: int
    """Number of messages that applications sent."""
    due: int
    """Number of promised deliveries, of each message to each other participant of its channel."""
    delivered: int
    repeated: int
    """Number of repeated deliveries of the same message (0 is promised)."""
    different_logs: int
    """Number of participants whose final log differs from that of their channel's first
    participant."""
    lost: int
    """Number of messages that the channel reported as lost."""
    rejected: int
    failed: int
    """Number of messages whose sender gave up without an acknowledgement."""
    acknowledged: int

    latency_mean_ms: float | None
    """Mean time from `send` to the delivery to an application (ms)."""
    latency_p50_ms: int | None
    latency_p95_ms: int | None
    latency_p99_ms: int | None
    latency_max_ms: int | None
    noticed: int
    """Number of times that a participant learned that a message is missing."""
    notice_p50_ms: int | None
    """Median time from `send` to learning that the message is missing (ms)."""
    notice_p95_ms: int | None
    acknowledgement_p50_ms: int | None
    """Median time from `send` until the sender knows a participant that has the message (ms)."""
    acknowledgement_p95_ms: int | None

    busy_ms: int
    """Time from the first message until all participants have all messages and nothing waits
    (ms)."""
    content_messages: int
    """Number of content messages that were broadcast while the group was busy (`OutgoingKind`)."""
    content_bytes: int
    retry_messages: int
    retry_bytes: int
    repair_messages: int
    repair_bytes: int
    control_messages: int
    control_bytes: int
    sync_messages: int
    sync_bytes: int
    joining_messages: int
    """Number of broadcasts before the first message."""
    joining_bytes: int
    idle_ms: int
    idle_messages: int
    """Number of broadcasts after the busy time of the group."""
    idle_bytes: int

    store_by_hash: int
    """Number of Store queries by message hash, from the first message on."""
    store_by_time: int
    """Number of Store queries for all messages of a time span."""
    store_messages: int
    """Number of messages that Store returned."""
    store_bytes: int
    receives: int
    """Number of messages that cores received, which determines the cost of simulating the run."""

    @property
    def delivery_probability(self) -> float:
        """Share of the promised deliveries that happened."""
        return self.delivered / self.due if self.due else 1.0

    @property
    def wire_bytes(self) -> int:
        """Bytes of all broadcasts while the group was busy."""
        return sum(getattr(self, f"{kind.value}_bytes") for kind in KINDS)

    @property
    def wire_messages(self) -> int:
        return sum(getattr(self, f"{kind.value}_messages") for kind in KINDS)

    @property
    def bytes_per_message(self) -> float:
        """Bytes of broadcasts per message that all participants received."""
        return self.wire_bytes / max(1.0, self.messages * self.delivery_probability)

    @property
    def broadcasts_per_message(self) -> float:
        return self.wire_messages / max(1.0, self.messages * self.delivery_probability)

    @property
    def acknowledged_p95_ms(self) -> int | None:
        """95th percentile of the acknowledgement time (ms), under a second name."""
        return self.acknowledgement_p95_ms

    @property
    def store_requests(self) -> int:
        """Number of Store queries by hash and by time together."""
        return self.store_by_hash + self.store_by_time

    @property
    def idle_bytes_per_hour(self) -> float:
        """Bytes that a quiet group broadcasts per hour."""
        return self.idle_bytes * 3_600_000 / self.idle_ms if self.idle_ms else 0.0

    @property
    def idle_messages_per_minute(self) -> float:
        """Number of broadcasts of a quiet group per minute."""
        return self.idle_messages * 60_000 / self.idle_ms if self.idle_ms else 0.0

    @property
    def is_kept(self) -> bool:
        """True if all participants got all messages exactly once, in equal logs."""
        return self.delivered == self.due and not self.repeated and not self.different_logs

    def row(self) -> dict[str, Any]:
        """Return all numbers by name, derived numbers included, in a fixed order."""
        derived = {name: getattr(self, name) for name in _DERIVED}
        return {**asdict(self), **derived}


@dataclass(frozen=True, slots=True)
class RepairMeasures:
    """Cost of fetching missing messages in a run. MVDS has no references to missing messages, so
    these figures are not part of `Measures`."""

    recovered: int
    """Number of times that a missing message arrived later."""
    given_up: int
    """Number of messages that the channel reported as lost."""
    missing_mean_ms: float | None
    """Mean time for which missing messages were missing (ms)."""
    missing_p95_ms: int | None
    store_requests: int
    """Number of Store queries from the first message on, answered or not."""
    requests: int
    """Number of messages that request missing messages from other participants."""
    answers: int
    """Number of broadcasts that answer repair requests."""

    @property
    def missing(self) -> int:
        """Number of missing messages, arrived later or lost."""
        return self.recovered + self.given_up


KINDS: Final = tuple(kind for kind in OutgoingKind if kind is not OutgoingKind.EPHEMERAL)
_DERIVED: Final = tuple(
    name for name, value in vars(Measures).items() if isinstance(value, property)
)


def mean(values: Sequence[int]) -> float | None:
    """Return the mean of values, rounded to one decimal place, or None without values."""
    return round(sum(values) / len(values), 1) if values else None


def percentile(ranked: Sequence[int], percent: int) -> int | None:
    if not ranked:
        return None
    return ranked[max(0, -(-len(ranked) * percent // 100) - 1)]
