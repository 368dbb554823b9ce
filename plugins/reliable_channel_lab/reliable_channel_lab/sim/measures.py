"""Costs and quality of a run, as flat records of numbers from `metering.py`.

Times are virtual milliseconds, and bytes those of the payloads of Waku messages. A broadcast counts
once, at its sender, however often the network passes it on.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from reliable_channel.sds.events import OutgoingKind


@dataclass(frozen=True, slots=True)
class Measures:
    """Figures of one run. Percentiles use the nearest rank, and are None without values."""

    messages: int
    """Messages that applications sent."""
    due: int
    """Promised deliveries: each message to each other participant of its channel."""
    delivered: int
    repeated: int
    """Repeated deliveries of the same message (0 is promised)."""
    different_logs: int
    """Participants whose log differs from that of their channel's first participant, at the end."""
    lost: int
    """Number of messages that were emitted as lost."""
    rejected: int
    failed: int
    """Messages whose sender gave up without an acknowledgement."""
    acknowledged: int

    latency_mean_ms: float | None
    """Times from `send` to the delivery to an application."""
    latency_p50_ms: int | None
    latency_p95_ms: int | None
    latency_p99_ms: int | None
    latency_max_ms: int | None
    noticed: int
    """Number of times that a participant learned of a missing message."""
    notice_p50_ms: int | None
    """Times from `send` to that moment."""
    notice_p95_ms: int | None
    acknowledgement_p50_ms: int | None
    """Times from `send` until the sender knows a participant that has the message."""
    acknowledgement_p95_ms: int | None

    busy_ms: int
    """Time from the first message until all participants had all messages and none waited."""
    content_messages: int
    """Broadcasts of this kind while the group was busy (`OutgoingKind`)."""
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
    """Broadcasts before the first message."""
    joining_bytes: int
    idle_ms: int
    idle_messages: int
    """Broadcasts after the busy time."""
    idle_bytes: int

    store_by_hash: int
    """Store queries for messages by hash, from the first message on."""
    store_by_time: int
    """Store queries for all messages of a time span."""
    store_messages: int
    """Messages that Store returned."""
    store_bytes: int
    receives: int
    """Messages given to cores, which is the cost of simulating the run."""

    @property
    def delivery_probability(self) -> float:
        """Share of the promised deliveries that were made."""
        return self.delivered / self.due if self.due else 1.0

    @property
    def wire_bytes(self) -> int:
        """Broadcasts of all kinds while the group was busy."""
        return sum(getattr(self, f"{kind.value}_bytes") for kind in KINDS)

    @property
    def wire_messages(self) -> int:
        return sum(getattr(self, f"{kind.value}_messages") for kind in KINDS)

    @property
    def bytes_per_message(self) -> float:
        """Bytes of broadcasts for each message that all participants received."""
        return self.wire_bytes / max(1.0, self.messages * self.delivery_probability)

    @property
    def broadcasts_per_message(self) -> float:
        return self.wire_messages / max(1.0, self.messages * self.delivery_probability)

    @property
    def acknowledged_p95_ms(self) -> int | None:
        """Alias of `acknowledgement_p95_ms`."""
        return self.acknowledgement_p95_ms

    @property
    def store_requests(self) -> int:
        """Store queries of both kinds."""
        return self.store_by_hash + self.store_by_time

    @property
    def idle_bytes_per_hour(self) -> float:
        """Bytes broadcast in a quiet group."""
        return self.idle_bytes * 3_600_000 / self.idle_ms if self.idle_ms else 0.0

    @property
    def idle_messages_per_minute(self) -> float:
        """Number of broadcasts in a quiet group."""
        return self.idle_messages * 60_000 / self.idle_ms if self.idle_ms else 0.0

    @property
    def is_kept(self) -> bool:
        """True if the promise was kept: all messages to all participants, once, in equal logs."""
        return self.delivered == self.due and not self.repeated and not self.different_logs

    def row(self) -> dict[str, Any]:
        """Return all numbers by name, derived ones included, in a fixed order."""
        derived = {name: getattr(self, name) for name in _DERIVED}
        return {**asdict(self), **derived}


@dataclass(frozen=True, slots=True)
class RepairMeasures:
    """Cost of fetching missing messages. It is not part of `Measures`, because not all sync
    protocols know missing messages by reference (MVDS does not)."""

    recovered: int
    """Number of times that a missing message arrived."""
    given_up: int
    """Number of messages that were emitted as lost."""
    missing_mean_ms: float | None
    """Times for which these messages were missing."""
    missing_p95_ms: int | None
    store_requests: int
    """Store queries from the first message on, answered or not."""
    requests: int
    """Messages with requests to other participants."""
    answers: int
    """Broadcasts that answer requests."""

    @property
    def missing(self) -> int:
        """Missing messages, arrived or lost."""
        return self.recovered + self.given_up


KINDS: Final = tuple(kind for kind in OutgoingKind if kind is not OutgoingKind.EPHEMERAL)
_DERIVED: Final = tuple(
    name for name, value in vars(Measures).items() if isinstance(value, property)
)


def mean(values: Sequence[int]) -> float | None:
    """Return a value to one decimal place, or None."""
    return round(sum(values) / len(values), 1) if values else None


def percentile(ranked: Sequence[int], percent: int) -> int | None:
    if not ranked:
        return None
    return ranked[max(0, -(-len(ranked) * percent // 100) - 1)]
