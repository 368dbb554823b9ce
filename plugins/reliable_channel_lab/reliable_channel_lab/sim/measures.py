"""What a run cost and how well it went, as flat records of numbers: what `metering.py` saw.

Times are virtual milliseconds, bytes those of the payloads of Waku messages. A broadcast counts
once, at its sender, however often the network below carries it on.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from reliable_channel.sds.events import OutgoingKind


@dataclass(frozen=True, slots=True)
class Measures:
    """The figures of one run; percentiles are by nearest rank, None where there is nothing to
    rank."""

    messages: int
    """Accepted from applications."""
    due: int
    """Deliveries that are promised: each message to each other participant of its channel."""
    delivered: int
    repeated: int
    """Deliveries of what had been delivered before; 0 is promised."""
    different_logs: int
    """Participants whose log differs from the first one's of their channel, at the end."""
    lost: int
    """Number of messages that were emitted as lost."""
    rejected: int
    failed: int
    """Messages whose sender gave up without an acknowledgement."""
    acknowledged: int

    latency_mean_ms: float | None
    """From `send` to the delivery to an application, of each delivery."""
    latency_p50_ms: int | None
    latency_p95_ms: int | None
    latency_p99_ms: int | None
    latency_max_ms: int | None
    noticed: int
    """Times that a participant learned that there is a message which it lacks."""
    notice_p50_ms: int | None
    """From `send` to that."""
    notice_p95_ms: int | None
    acknowledgement_p50_ms: int | None
    """From `send` to when its sender knows of a participant that has it."""
    acknowledgement_p95_ms: int | None

    busy_ms: int
    """From the first message until all participants had all messages and none waited for
    anything."""
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
    """All broadcasts before."""
    joining_bytes: int
    idle_ms: int
    idle_messages: int
    """All broadcasts after."""
    idle_bytes: int

    store_by_hash: int
    """Requests to Store for messages by their hashes, from the first message on."""
    store_by_time: int
    """Requests for all messages of a span."""
    store_messages: int
    """Messages that Store gave."""
    store_bytes: int
    receives: int
    """Messages given to cores: what a run costs to simulate."""

    @property
    def delivery_probability(self) -> float:
        """Share of the promised deliveries that were made."""
        return self.delivered / self.due if self.due else 1.0

    @property
    def wire_bytes(self) -> int:
        """Broadcast while the group was busy, of all kinds."""
        return sum(getattr(self, f"{kind.value}_bytes") for kind in KINDS)

    @property
    def wire_messages(self) -> int:
        return sum(getattr(self, f"{kind.value}_messages") for kind in KINDS)

    @property
    def bytes_per_message(self) -> float:
        """Broadcasts for a message that all participants got."""
        return self.wire_bytes / max(1.0, self.messages * self.delivery_probability)

    @property
    def broadcasts_per_message(self) -> float:
        return self.wire_messages / max(1.0, self.messages * self.delivery_probability)

    @property
    def acknowledged_p95_ms(self) -> int | None:
        """`acknowledgement_p95_ms` by its other name."""
        return self.acknowledgement_p95_ms

    @property
    def store_requests(self) -> int:
        """Requests to Store of either kind."""
        return self.store_by_hash + self.store_by_time

    @property
    def idle_bytes_per_hour(self) -> float:
        """Broadcast in a quiet group."""
        return self.idle_bytes * 3_600_000 / self.idle_ms if self.idle_ms else 0.0

    @property
    def idle_messages_per_minute(self) -> float:
        """Broadcasts in a quiet group."""
        return self.idle_messages * 60_000 / self.idle_ms if self.idle_ms else 0.0

    @property
    def is_kept(self) -> bool:
        """True if the promise was kept: all messages to all participants, once, in equal logs."""
        return self.delivered == self.due and not self.repeated and not self.different_logs

    def row(self) -> dict[str, Any]:
        """All numbers by name, derived ones as well, in a fixed order."""
        derived = {name: getattr(self, name) for name in _DERIVED}
        return {**asdict(self), **derived}


@dataclass(frozen=True, slots=True)
class RepairMeasures:
    """What it took to get what was missing. Not part of `Measures`, which has what all sync
    protocols have in common: MVDS misses nothing by reference."""

    recovered: int
    """Times that a message which was missing came."""
    given_up: int
    """Number of messages that were emitted as lost."""
    missing_mean_ms: float | None
    """For how long what came was missing."""
    missing_p95_ms: int | None
    store_requests: int
    """Requests to Store from the first message on, whether or not they were answered."""
    requests: int
    """Messages that asked other participants."""
    answers: int
    """Broadcasts for requesters."""

    @property
    def missing(self) -> int:
        """All that was missing, came or was given up."""
        return self.recovered + self.given_up


KINDS: Final = tuple(kind for kind in OutgoingKind if kind is not OutgoingKind.EPHEMERAL)
_DERIVED: Final = tuple(
    name for name, value in vars(Measures).items() if isinstance(value, property)
)


def mean(values: Sequence[int]) -> float | None:
    """To a tenth; None of nothing."""
    return round(sum(values) / len(values), 1) if values else None


def percentile(ranked: Sequence[int], percent: int) -> int | None:
    if not ranked:
        return None
    return ranked[max(0, -(-len(ranked) * percent // 100) - 1)]
