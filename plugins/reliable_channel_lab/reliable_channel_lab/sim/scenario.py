"""Scenario of a simulated group as a value, with its messages, network and faults.

A scenario determines its run, so equal scenarios give equal runs. A scenario can be printed as JSON
and read back. Times are milliseconds since the beginning of the run, and participants have numbers
from 0.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from reliable_channel.options import (
    SEGMENT_SIZE_BYTES,
    ChannelOptions,
    RateLimitOptions,
    SegmentationName,
)
from reliable_channel.sds import CoreLimits, RepairOptions, SdsOptions
from reliable_channel.sds.bloom import BloomParameters
from reliable_channel.sds.declared import Like, check

PUBLISH_MS: Final = 5
"""Time that a node without a rate limit needs to accept a message."""
_SDS: Final = SdsOptions()
FOREVER_MS: Final = 10**12
"""Value of `until_ms` for a fault that never ends, which only a minority may have
(`liveness.py`)."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Random durations from `min_ms` to `max_ms`, distributed as a uniform number to the power of
    `skew`. With a high `skew` most durations are short, and a few long durations change the order
    of messages."""

    min_ms: int
    max_ms: int
    skew: int = 1


@dataclass(frozen=True, slots=True)
class Conditions:
    """Effects of the network on each copy of a message to a participant, until the faults end."""

    latency: Latency = Latency(20, 300)
    loss: float = 0.0
    duplication: float = 0.0


@dataclass(frozen=True, slots=True)
class StoreConditions:
    """Behaviour of Store until the faults end. After the faults, Store answers fast, completely and
    correctly."""

    answer: Latency = Latency(20, 100)
    loss: float = 0.0
    """Share of messages that Store never receives."""
    lies: float = 0.0
    """Share of Store's answers with unrequested messages or garbage."""
    refuses_hashes: bool = False
    """True if Store answers no query by hash, even after the faults."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Options of the core that a seed chooses, as the core declares them. All other options of the
    core have their defaults.

    Raises:
        ValueError: a value is not allowed. The text names it and the allowed values.
    """

    bloom_capacity: Annotated[int, Like(BloomParameters, "capacity")] = 1_000
    bloom_error_rate: Annotated[float, Like(BloomParameters, "error_rate")] = _SDS.bloom.error_rate
    causal_history_size: Annotated[int, Like(SdsOptions)] = _SDS.causal_history_size
    retry_interval_ms: Annotated[int, Like(SdsOptions)] = _SDS.retry_interval_ms
    max_retry_attempts: Annotated[int, Like(SdsOptions)] = _SDS.max_retry_attempts
    sync_min_interval_ms: Annotated[int, Like(SdsOptions)] = _SDS.sync_min_interval_ms
    timeout_for_lost_messages_ms: Annotated[int, Like(SdsOptions)] = (
        _SDS.timeout_for_lost_messages_ms
    )
    incoming_messages: Annotated[int, Like(CoreLimits)] = _SDS.limits.incoming_messages
    log_window_entries: Annotated[int, Like(CoreLimits)] = _SDS.limits.log_window_entries
    repair_buffer_size: Annotated[int, Like(RepairOptions, "buffer_size")] = _SDS.repair.buffer_size
    repair_cache_bytes: Annotated[int, Like(RepairOptions, "cache_bytes")] = _SDS.repair.cache_bytes
    retrieval_strategy: Annotated[str, Like(ChannelOptions)] = "both"

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class Habits:
    """Behaviour of applications, and options of their channels outside the core."""

    payload_bytes: int = 0
    """Maximum length of a payload in bytes (0 for payloads of a few words)."""
    segmentation: Annotated[SegmentationName, Like(ChannelOptions)] = "none"
    segment_bytes: Annotated[int, Like(ChannelOptions, "segment_size_bytes")] = SEGMENT_SIZE_BYTES
    repeats: float = 0.0
    """Share of accepted messages that the application sends again under their key. With a share
    above 0, messages have keys, and messages without a known result are sent again."""
    reading_ms: int = 0
    """Time that the application needs to handle one event."""
    confirms: float = 1.0
    """Share of the handled events that the application confirms."""
    budget: int = 0
    """Number of messages that the rate limit allows in an epoch (0 for no limit)."""
    epoch_s: Annotated[int, Like(RateLimitOptions, "epoch_period_s")] = 60
    confirm_interval_ms: Annotated[int, Like(ChannelOptions)] = 0

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class Write:
    """Write of a message by a participant, if the participant is present."""

    at_ms: int
    who: int


@dataclass(frozen=True, slots=True)
class Partition:
    """Partition that cuts some participants, an island, off from the others. With `out` only
    messages of the island are lost, and with `in` only messages to the island."""

    kind: ClassVar[str] = "partition"
    at_ms: int
    until_ms: int
    island: tuple[int, ...]
    direction: Literal["both", "in", "out"] = "both"

    def cuts(self, sender: int, receiver: int) -> bool:
        """Return True if the partition cuts messages from the sender to the receiver."""
        leaves = sender in self.island
        if leaves == (receiver in self.island):
            return False
        return self.direction == "both" or self.direction == ("out" if leaves else "in")


@dataclass(frozen=True, slots=True)
class Outage:
    """Absence of a participant's own node, during which sent messages wait and none is received."""

    kind: ClassVar[str] = "outage"
    at_ms: int
    until_ms: int
    who: int


@dataclass(frozen=True, slots=True)
class StoreAway:
    """Absence of Store, which during that time neither answers queries nor receives messages."""

    kind: ClassVar[str] = "store_away"
    at_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class ClockJump:
    """Change of a participant's clock, forward or back. A change at time 0 makes the clock wrong
    from the beginning."""

    kind: ClassVar[str] = "clock_jump"
    at_ms: int
    who: int
    by_ms: int


@dataclass(frozen=True, slots=True)
class Crash:
    """Crash of a participant's process, which restarts at `until_ms`, without state unless it is
    `durable`."""

    kind: ClassVar[str] = "crash"
    at_ms: int
    until_ms: int
    who: int


@dataclass(frozen=True, slots=True)
class Join:
    """Late arrival of a participant in the group."""

    kind: ClassVar[str] = "join"
    at_ms: int
    who: int


@dataclass(frozen=True, slots=True)
class Leave:
    kind: ClassVar[str] = "leave"
    at_ms: int
    who: int


class Attack(Enum):
    """Attack of a dishonest member."""

    LAMPORT_FAR_AHEAD = "lamport_far_ahead"
    LAMPORT_AHEAD = "lamport_ahead"
    """Message with a Lamport timestamp so far ahead that honest participants just accept it."""
    FULL_FILTER = "full_filter"
    UNKNOWN_DEPENDENCIES = "unknown_dependencies"
    CYCLE = "cycle"
    REQUEST_STORM = "request_storm"
    FORGED_SENDER = "forged_sender"
    FALSE_ROOT = "false_root"
    FALSE_DIFFERENCE = "false_difference"
    REPLAY = "replay"
    GARBAGE = "garbage"


@dataclass(frozen=True, slots=True)
class Hostile:
    """Attacker outside the group, which receives all messages and sends dishonest messages."""

    kind: ClassVar[str] = "hostile"
    at_ms: int
    attack: Attack
    count: int = 1
    """Number of repetitions of the attack, a second apart."""


class Damage(Enum):
    """Damage to a participant's state on disk while the participant is stopped."""

    LOST_WRITES = "lost_writes"
    """Loss of the last confirmed writes, as after a false fsync or with a restored older copy."""
    UNREADABLE = "unreadable"
    """Flipped bit or missing end of the state file. The unreadable state is refused, and its
    participant starts without a state."""


@dataclass(frozen=True, slots=True)
class DiskDamage:
    """Crash of a participant's process, with damage to the disk before the next start."""

    kind: ClassVar[str] = "disk_damage"
    at_ms: int
    until_ms: int
    who: int
    damage: Damage
    writes: int = 1
    """Number of last writes that the disk loses."""


@dataclass(frozen=True, slots=True)
class DiskFull:
    """Time during which a participant's disk is full."""

    kind: ClassVar[str] = "disk_full"
    at_ms: int
    until_ms: int
    who: int


Fault = (
    Partition
    | Outage
    | StoreAway
    | ClockJump
    | Crash
    | Join
    | Leave
    | Hostile
    | DiskDamage
    | DiskFull
)
_KINDS: Final[dict[str, type[Any]]] = {kind.kind: kind for kind in get_args(Fault)}


@dataclass(frozen=True, slots=True)
class Scenario:
    seed: int
    """Seed of everything random in the run, such as latencies, losses and sync back-off."""
    participants: int
    writes: tuple[Write, ...] = ()
    faults: tuple[Fault, ...] = ()
    conditions: Conditions = field(default_factory=Conditions)
    store: StoreConditions | None = field(default_factory=StoreConditions)
    """Behaviour of Store in the run. In a run without a Store, `store` is None."""
    parameters: Parameters = field(default_factory=Parameters)
    habits: Habits = field(default_factory=Habits)
    commit_ms: int = 0
    """Time of a write to the disk of a participant with durable state."""
    durable: tuple[int, ...] = ()
    """Numbers of the participants that have their state on disk."""
    self_tuning: tuple[int, ...] = ()
    """Numbers of the participants that tune their own options."""
    publish_ms: int = PUBLISH_MS
    """Time that each participant's own node needs to accept a message. For some seeds this time
    equals the rate limit of stock go-waku, one light push per second. The time to accept a message
    applies to the whole run."""
    settle_within_ms: int = 3_600_000
    """Time after the faults within which all logs must become equal and nothing may be pending."""
    majority: tuple[int, ...] = ()
    """Numbers of the participants that are reconnected, if some stay cut off. Only participants in
    the majority must make progress."""

    @property
    def faults_end_ms(self) -> int:
        """Time from which the network is good and all participants, or a majority, are present."""
        times = [write.at_ms for write in self.writes]
        times += [_end_ms(fault) for fault in self.faults]
        return max(times, default=0)

    def to_json(self) -> str:
        """Return the differences from the default scenario as one line of JSON."""
        return json.dumps(_without_defaults(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Scenario":
        """Return the scenario in a line of `to_json`.

        Raises:
            ValueError: the text is no scenario.
        """
        try:
            values = json.loads(text)
            for name, kind in _PARTS.items():
                if values.get(name) is not None:
                    values[name] = _part(kind, values[name])
            values["writes"] = tuple(Write(*pair) for pair in values.get("writes", ()))
            values["faults"] = tuple(map(_fault, values.get("faults", ())))
            for name in ("durable", "self_tuning", "majority"):
                values[name] = tuple(values.get(name, ()))
            return cls(**values)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"the value is not a scenario: {error}") from error


_PARTS: Final = {
    "conditions": Conditions,
    "store": StoreConditions,
    "parameters": Parameters,
    "habits": Habits,
}


def _end_ms(fault: Fault) -> int:
    if isinstance(fault, Hostile):
        return fault.at_ms + 1_000 * fault.count
    if isinstance(fault, ClockJump | Join | Leave) or fault.until_ms == FOREVER_MS:
        return fault.at_ms
    return fault.until_ms


def _part(kind: type[Any], values: dict[str, Any]) -> Any:
    for name in ("latency", "answer"):
        if name in values:
            values[name] = Latency(*values[name])
    return kind(**values)


def _fault(values: dict[str, Any]) -> Fault:
    given = dict(values)
    kind = _KINDS[given.pop("kind")]
    if "island" in given:
        given["island"] = tuple(given["island"])
    if "attack" in given:
        given["attack"] = Attack(given["attack"])
    if "damage" in given:
        given["damage"] = Damage(given["damage"])
    fault: Fault = kind(**given)
    return fault


def _without_defaults(scenario: Scenario) -> dict[str, Any]:
    plain: dict[str, Any] = {"seed": scenario.seed, "participants": scenario.participants}
    plain["writes"] = [[write.at_ms, write.who] for write in scenario.writes]
    plain["faults"] = [{"kind": f.kind, **_plain(asdict(f).items())} for f in scenario.faults]
    for name, kind in _PARTS.items():
        if (part := getattr(scenario, name)) is None:
            plain[name] = None
        elif part != kind():
            changed = [
                (f.name, getattr(part, f.name))
                for f in fields(kind)
                if getattr(part, f.name) != getattr(kind(), f.name)
            ]
            plain[name] = _plain(changed)
    for name in (
        *("commit_ms", "durable", "self_tuning", "publish_ms", "settle_within_ms", "majority"),
    ):
        if (value := getattr(scenario, name)) != Scenario.__dataclass_fields__[name].default:
            plain[name] = value
    return plain


def _plain(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    simple: dict[str, Any] = {}
    for name, value in pairs:
        if isinstance(value, Latency):
            simple[name] = [value.min_ms, value.max_ms, value.skew]
        else:
            simple[name] = value.value if isinstance(value, Enum) else value
    return simple
