"""The options of the core. Defaults are those that js-waku documents, or better ones that say
why."""

from dataclasses import dataclass, field, fields
from typing import Final, Literal

from .bloom import BloomParameters
from .retries import RetryPolicy, fixed

MAX_MESSAGE_BYTES: Final = 150_000 - 1024
"""What a Waku message leaves beside its own fields where it passes every node: nwaku relays
150 KiB, and go-waku 150,000 bytes; it takes what is longer, and drops it without a word."""
DAY_MS: Final = 24 * 60 * 60 * 1000
LOG_WINDOW_ENTRIES: Final = 20_000
"""More than any causal history looks back, or any bloom filter of the default capacity."""
MAX_CAUSAL_HISTORY_SIZE: Final = 1_000
"""Nobody sends a longer causal history: js-waku 200 by default, nim-sds 10."""
MAX_REQUESTS_PER_MESSAGE: Final = 100
"""Nobody asks for more at once: js-waku and nim-sds for 3."""


@dataclass(frozen=True, slots=True)
class RepairOptions:
    """SDS-R, the repair of missing messages by other participants.

    Raises:
        ValueError: a value outside what its field allows.
    """

    enabled: bool = True
    t_min_ms: int = 30_000
    """Earliest time after a gap was noticed at which it is asked for."""
    t_max_ms: int = 120_000
    """Latest time; also the span over which the answers of different participants are spread."""
    num_response_groups: int = 1
    """Groups that share the answering: `max(1, participants / 128)` is advised, equal for
    everybody."""
    max_requests_per_message: int = 3
    buffer_size: int = 1_000
    """Entries in each of the two repair buffers; the entry that is due last makes room."""
    max_request_attempts: int = 5
    """How often a missing message is asked for before a rest as long as it has been wanted, after
    which a new reference starts over. DIVERGES: js-waku asks once, whether or not anybody heard
    it."""
    sweep_interval_ms: int = 5_000
    """At most one sync message is sent within it for requests alone."""
    cache_bytes: int = 4 * 1024 * 1024
    """Whole messages kept to answer requests with; the oldest make room."""
    cache_durably: bool = False
    """Whether those of others outlive a restart as own ones do, where anything does: of use where
    there is no Store, at the cost of writing each message whole."""
    answers_per_minute: int = 1_200
    """Messages that are broadcast again for others; what is asked for beyond goes unanswered."""
    answer_bytes_per_minute: int = 16 * 1024 * 1024
    """The same in bytes."""
    requester_answers_per_minute: int = 300
    """Messages that are broadcast again for one requester."""
    requester_answer_bytes_per_minute: int = 4 * 1024 * 1024
    """The same in bytes: all of the cache once a minute."""
    asks_when_told: bool = False
    """Whether the owner says from when on a missing message is asked for (`SdsProtocol.wanted`);
    else it is from the first."""

    def __post_init__(self) -> None:
        _require(self, "t_min_ms", 0)
        _require(self, "t_max_ms", 1)
        if self.t_max_ms < self.t_min_ms:
            raise ValueError(
                f"t_max_ms is {self.t_max_ms}; it must not be below t_min_ms, {self.t_min_ms}"
            )
        for name in (
            "num_response_groups",
            "buffer_size",
            "max_request_attempts",
            "answers_per_minute",
            "answer_bytes_per_minute",
            "requester_answers_per_minute",
            "requester_answer_bytes_per_minute",
        ):
            _require(self, name, 1)
        _require(self, "max_requests_per_message", 1, MAX_REQUESTS_PER_MESSAGE)
        _require(self, "cache_bytes", 0)
        _require(self, "sweep_interval_ms", 0)


@dataclass(frozen=True, slots=True)
class Limits:
    """What each buffer holds at most. Reaching a limit is an event or an error, never silence.

    Raises:
        ValueError: a limit below 1.
    """

    log_entries: int = 1_000_000
    """The oldest entries leave the log, from an archive some thousands at a time; messages older
    than these are refused from then on."""
    log_bytes: int = 1024 * 1024 * 1024
    """The same in bytes of content."""
    log_window_entries: int = LOG_WINDOW_ENTRIES
    """Of a log that is archived, the newest entries that stay in memory."""
    outgoing_messages: int = 10_000
    """Own messages without acknowledgement; `send` refuses more."""
    incoming_messages: int = 10_000
    """Messages that wait for others; of the sender with most, the one that has waited longest is
    refused and may come again."""
    incoming_bytes: int = 64 * 1024 * 1024
    """The same in bytes of memory, references included."""
    missing_entries: int = 20_000
    """Messages known by reference alone; of the participant who refers to most, the oldest
    references make room, all of a message that are not looked for yet before any that are."""
    participants: int = 20_000
    """Senders that are remembered; the one not heard for longest is forgotten."""
    unknown_references: int = MAX_CAUSAL_HISTORY_SIZE
    """Unknown messages that one message may refer to; it is refused beyond."""
    repair_requests: int = MAX_REQUESTS_PER_MESSAGE
    """Messages that one message may ask for; it is refused beyond."""

    def __post_init__(self) -> None:
        for name in fields(self):
            _require(self, name.name, 1)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Choices in which js-waku leaves the specification, or takes from it what harms; ours are the
    defaults.

    `JS_WAKU` is the other end: what a comparison with recordings of js-waku sets.
    """

    deliver: Literal["at_once", "on_sweep"] = "at_once"
    """When a message whose last dependency arrived is delivered."""
    log_own_message: Literal["on_send", "on_dispatch"] = "on_send"
    """When an own message enters log and bloom filter. On dispatch, two messages sent while the
    transport is down do not know of each other, and their order is lost."""
    sync_without_history: bool = True
    """Whether a participant with an empty log sends sync messages: a newcomer that does not cannot
    be noticed."""
    adopt_own_messages: bool = True
    """Whether an own message that is not in the log is taken as anybody's."""
    threshold_fits_group: bool = True
    """Whether `possible_acks_threshold` is lowered to the number of other participants heard."""
    compare_logs: bool = True
    """Whether sync messages carry the root of the log, where the dialect has a field for it."""


JS_WAKU: Final = Behaviour(
    deliver="on_sweep",
    log_own_message="on_dispatch",
    sync_without_history=False,
    adopt_own_messages=False,
    threshold_fits_group=False,
    compare_logs=False,
)


@dataclass(frozen=True, slots=True)
class SdsOptions:
    """How one participant of one channel behaves.

    Raises:
        ValueError: a value outside what its field allows; the text names the field and the range.
    """

    causal_history_size: int = 200
    """Entries of the log that each message carries."""
    possible_acks_threshold: int = 2
    """Participants whose bloom filter must hold a message before that counts as an
    acknowledgement."""
    bloom: BloomParameters = field(default_factory=BloomParameters)
    retry_interval_ms: int = 30_000
    """How long an unacknowledged message waits before it is sent again."""
    possibly_acknowledged_retry_interval_ms: int | None = None
    """The same for a message that somebody may have; twice `retry_interval_ms` where None."""
    max_retry_attempts: int = 10
    retry_policy: RetryPolicy = fixed
    """Makes of these intervals when a message goes again."""
    sync_min_interval_ms: int = 30_000
    """The interval in which the whole channel, not each participant, sends about one sync message;
    0 for none."""
    sync_schedule: Literal["suppressed", "js-waku"] = "suppressed"
    """`suppressed` stays at about one message an interval whatever the group's size; `js-waku`
    sends N an interval."""
    sweep_in_buf_interval_ms: int = 5_000
    timeout_for_lost_messages_ms: int = 300_000
    """How long messages wait for a missing one before it counts as lost; 0 for ever. DIVERGES:
    js-waku waits for ever by default, and one message lost for good then blocks the channel for
    good."""
    max_message_bytes: int = MAX_MESSAGE_BYTES
    """How long an encoded message may be."""
    retention_ms: int = 0
    """How old by its Lamport timestamp an entry of the log may become before it leaves; 0 for any
    age."""
    max_lamport_ahead_ms: int = DAY_MS
    """How far ahead of local time a Lamport timestamp may be; one message beyond would move
    everybody for good."""
    repair: RepairOptions = field(default_factory=RepairOptions)
    limits: Limits = field(default_factory=Limits)
    behaviour: Behaviour = field(default_factory=Behaviour)

    def __post_init__(self) -> None:
        _require(self, "causal_history_size", 0, MAX_CAUSAL_HISTORY_SIZE)
        for name in (
            "possible_acks_threshold",
            "retry_interval_ms",
            "sweep_in_buf_interval_ms",
            "max_message_bytes",
        ):
            _require(self, name, 1)
        for name in (
            "max_retry_attempts",
            "sync_min_interval_ms",
            "timeout_for_lost_messages_ms",
            "max_lamport_ahead_ms",
            "retention_ms",
        ):
            _require(self, name, 0)
        if self.possibly_acknowledged_retry_interval_ms is not None:
            _require(self, "possibly_acknowledged_retry_interval_ms", 1)
        if self.sync_schedule not in ("suppressed", "js-waku"):
            raise ValueError(
                f"sync_schedule is {self.sync_schedule!r}; allowed are 'suppressed' and 'js-waku'"
            )

    @property
    def possibly_acknowledged_interval_ms(self) -> int:
        """The retry interval of possibly acknowledged messages, its default resolved."""
        return self.possibly_acknowledged_retry_interval_ms or 2 * self.retry_interval_ms


def _require(options: object, name: str, least: int, most: int | None = None) -> None:
    value = getattr(options, name)
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or value < least
        or (most is not None and value > most)
    ):
        allowed = f"a whole number of at least {least}" + (
            f" and at most {most}" if most is not None else ""
        )
        raise ValueError(f"{name} is {value!r}; allowed is {allowed}")
