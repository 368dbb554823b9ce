"""What happens in a simulated group, as a value: the messages, the network, and what breaks.

A scenario is complete. Equal scenarios give equal runs; it is printed as JSON, and read back.
Times are milliseconds since the run began, participants are numbered from 0.
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
"""How long a node without a rate limit takes to accept a message."""
_SDS: Final = SdsOptions()
FOREVER_MS: Final = 10**12
"""`until_ms` of a fault that never heals: outside the majority alone (`liveness.py`)."""


@dataclass(frozen=True, slots=True)
class Latency:
    """How long something takes: `min_ms` to `max_ms`, drawn as a uniform number to the power
    of `skew`, so that with a high skew most are short and some reorder everything."""

    min_ms: int
    max_ms: int
    skew: int = 1


@dataclass(frozen=True, slots=True)
class Conditions:
    """What the network does to each copy of a message on its way to one participant, until the
    faults end."""

    latency: Latency = Latency(20, 300)
    loss: float = 0.0
    duplication: float = 0.0


@dataclass(frozen=True, slots=True)
class StoreConditions:
    """A Store, until the faults end; then it answers fast, whole and true."""

    answer: Latency = Latency(20, 100)
    loss: float = 0.0
    """Share of messages that it never hears."""
    lies: float = 0.0
    """Share of answers that hold other messages than asked for, or garbage."""
    refuses_hashes: bool = False
    """True if it answers no query by hash, during the faults and after them."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """The options of the core that are drawn, as it declares them; all others have their defaults.

    Raises:
        ValueError: a value that is not allowed; the text names it and what is.
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
    """What applications do, and have their channels do beside the core's part."""

    payload_bytes: int = 0
    """The longest payload; 0 for a few words each."""
    segmentation: Annotated[SegmentationName, Like(ChannelOptions)] = "none"
    segment_bytes: Annotated[int, Like(ChannelOptions, "segment_size_bytes")] = SEGMENT_SIZE_BYTES
    repeats: float = 0.0
    """Share of accepted messages that are sent again under their key. Where it is above 0, messages
    have keys, and what is not known to be accepted is sent again, too."""
    reading_ms: int = 0
    """How long it takes to handle one event."""
    confirms: float = 1.0
    """Share of the events that are confirmed once they are handled."""
    budget: int = 0
    """Messages of an epoch that the rate limit lets out; 0 where there is none."""
    epoch_s: Annotated[int, Like(RateLimitOptions, "epoch_period_s")] = 60
    confirm_interval_ms: Annotated[int, Like(ChannelOptions)] = 0

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, slots=True)
class Write:
    """A participant sends a message, if it is there."""

    at_ms: int
    who: int


@dataclass(frozen=True, slots=True)
class Partition:
    """An island is cut off; only what it says (`out`) or only what it would hear (`in`) where one
    direction is named."""

    kind: ClassVar[str] = "partition"
    at_ms: int
    until_ms: int
    island: tuple[int, ...]
    direction: Literal["both", "in", "out"] = "both"

    def cuts(self, sender: int, receiver: int) -> bool:
        """Return True if nothing goes from the one to the other."""
        leaves = sender in self.island
        if leaves == (receiver in self.island):
            return False
        return self.direction == "both" or self.direction == ("out" if leaves else "in")


@dataclass(frozen=True, slots=True)
class Outage:
    """A participant's own node is away: what it sends waits, and what is said is not heard."""

    kind: ClassVar[str] = "outage"
    at_ms: int
    until_ms: int
    who: int


@dataclass(frozen=True, slots=True)
class StoreAway:
    """Store does not answer, nor hear."""

    kind: ClassVar[str] = "store_away"
    at_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class ClockJump:
    """A participant's clock is set forward or back; at 0 it is a skew from the beginning."""

    kind: ClassVar[str] = "clock_jump"
    at_ms: int
    who: int
    by_ms: int


@dataclass(frozen=True, slots=True)
class Crash:
    """A participant's process dies, and is started again at `until_ms`: from what it had on disk,
    if it is `durable`, else from nothing."""

    kind: ClassVar[str] = "crash"
    at_ms: int
    until_ms: int
    who: int


@dataclass(frozen=True, slots=True)
class Join:
    """A participant is not there from the beginning."""

    kind: ClassVar[str] = "join"
    at_ms: int
    who: int


@dataclass(frozen=True, slots=True)
class Leave:
    kind: ClassVar[str] = "leave"
    at_ms: int
    who: int


class Attack(Enum):
    """What a dishonest member does."""

    LAMPORT_FAR_AHEAD = "lamport_far_ahead"
    LAMPORT_AHEAD = "lamport_ahead"
    """As far as honest participants still accept, though their clocks differ by hours."""
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
    """An attacker outside the group, which hears all and sends what no honest participant sends."""

    kind: ClassVar[str] = "hostile"
    at_ms: int
    attack: Attack
    count: int = 1
    """How often, a second apart."""


class Damage(Enum):
    """What a disk does to a state while its participant is down."""

    LOST_WRITES = "lost_writes"
    """The last writes are gone, though they were confirmed: a drive that lies about fsync, a WAL
    that was deleted or cut short, an older copy that was restored."""
    UNREADABLE = "unreadable"
    """A bit flipped, or the end of the file is missing: the state is refused, and its participant
    starts from nothing."""


@dataclass(frozen=True, slots=True)
class DiskDamage:
    """A participant's process dies, and its disk is damaged before it starts again."""

    kind: ClassVar[str] = "disk_damage"
    at_ms: int
    until_ms: int
    who: int
    damage: Damage
    writes: int = 1
    """How many of the last writes are lost."""


@dataclass(frozen=True, slots=True)
class DiskFull:
    """A participant's disk takes no write."""

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
    """Of all that is drawn while it runs: latencies, losses, sync back-off."""
    participants: int
    writes: tuple[Write, ...] = ()
    faults: tuple[Fault, ...] = ()
    conditions: Conditions = field(default_factory=Conditions)
    store: StoreConditions | None = field(default_factory=StoreConditions)
    """None where there is no Store."""
    parameters: Parameters = field(default_factory=Parameters)
    habits: Habits = field(default_factory=Habits)
    commit_ms: int = 0
    """How long a step's changes are on their way to a participant's disk, with durable state."""
    durable: tuple[int, ...] = ()
    """Participants with their state on disk."""
    self_tuning: tuple[int, ...] = ()
    """Participants that tune themselves."""
    publish_ms: int = PUBLISH_MS
    """How long each own node takes to accept a message, the rate limit of some: stock go-waku takes
    one light push a second. It holds for the whole run."""
    settle_within_ms: int = 3_600_000
    """How long after the faults all logs must be equal and nothing pending."""
    majority: tuple[int, ...] = ()
    """Participants that heal, where not all do: they alone must make progress."""

    @property
    def faults_end_ms(self) -> int:
        """From when on the network stays good and all participants, or a majority, are there."""
        times = [write.at_ms for write in self.writes]
        times += [_end_ms(fault) for fault in self.faults]
        return max(times, default=0)

    def to_json(self) -> str:
        """One line of JSON, with what differs from the defaults."""
        return json.dumps(_without_defaults(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Scenario":
        """Read what `to_json` wrote.

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
            raise ValueError(f"this is no scenario: {error}") from error


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
