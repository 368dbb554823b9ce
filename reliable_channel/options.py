"""The options of a channel, flat: one name an option, here, in `ReliableChannel(…)` and as a flag
of `peer`.

Names and defaults are those of the Reliable Channel API as js-waku has it, where it has them.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Final, Literal, Self, TypedDict, get_args

from .repair_policies import REPAIR_POLICIES, WITHOUT_OTHERS, WITHOUT_STORE, RepairPolicy
from .sds.bloom import BloomParameters
from .sds.options import (
    DAY_MS,
    MAX_CAUSAL_HISTORY_SIZE,
    MAX_MESSAGE_BYTES,
    MAX_REQUESTS_PER_MESSAGE,
    Limits,
    RepairOptions,
    SdsOptions,
)
from .sds.profile import PROFILES, WireProfile
from .sds.profile import wire_profile as wire_profile_of

__all__ = [
    "ChannelOptions",
    "EncryptionOrder",
    "HistoryName",
    "OptionValues",
    "RetrievalStrategy",
    "SegmentationName",
    "StateFailure",
    "SyncScheduleName",
    "WireProfileName",
]

RetrievalStrategy = str | RepairPolicy
SyncScheduleName = Literal["suppressed", "js-waku"]
WireProfileName = str | WireProfile
EncryptionOrder = Literal["profile", "sds-then-encrypt", "encrypt-then-sds"]
ENCRYPTION_ORDERS: Final = get_args(EncryptionOrder)[1:]
"""What a profile may have."""
HistoryName = Literal["all", "since", "none"]
StateFailure = Literal["raise", "accept"]
SegmentationName = Literal["profile", "none", "nim-segmentation", "lip-243-v0.1"]


MIN_BLOOM_ERROR_RATE: Final = 1e-9


class OptionValues(TypedDict, total=False):
    """The same options as keyword arguments."""

    sync_min_interval_ms: int
    sync_schedule: SyncScheduleName
    retry_interval_ms: int
    possibly_acknowledged_retry_interval_ms: int
    max_retry_attempts: int
    retrieve_frequency_ms: int
    retrieval_strategy: RetrievalStrategy
    history: HistoryName
    history_since_ms: int
    query_on_connect: bool
    query_on_connect_window_ms: int
    redundancy: int
    confirm_interval_ms: int
    sweep_in_buf_interval_ms: int
    timeout_for_lost_messages_ms: int
    causal_history_size: int
    possible_acks_threshold: int
    bloom_capacity: int
    bloom_error_rate: float
    repair_t_min_ms: int
    repair_t_max_ms: int
    repair_sweep_interval_ms: int
    num_response_groups: int
    max_requests_per_message: int
    max_request_attempts: int
    repair_buffer_size: int
    repair_cache_bytes: int
    repair_answers_per_minute: int
    repair_answer_bytes_per_minute: int
    repair_requester_answers_per_minute: int
    repair_requester_answer_bytes_per_minute: int
    max_lamport_ahead_ms: int
    max_message_bytes: int
    log_limit: int
    log_limit_bytes: int
    retention_ms: int
    outgoing_buffer_limit: int
    incoming_buffer_limit: int
    incoming_buffer_limit_bytes: int
    missing_limit: int
    participants_limit: int
    unknown_references_limit: int
    repair_requests_limit: int
    on_state_failure: StateFailure
    event_buffer_limit: int
    wire_profile: WireProfileName
    segmentation: SegmentationName
    encryption_order: EncryptionOrder
    segment_size_bytes: int
    max_payload_bytes: int
    segment_reconstruction_timeout_ms: int
    rate_limit_enabled: bool
    rate_limit_messages_per_epoch: int
    rate_limit_epoch_period_s: int


class FamilyInt(int):
    """A default that is replaced where `wire_profile` names a family with another one."""


class FamilyFloat(float):
    """The same for a float."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelOptions:
    """How a channel behaves. Every value is checked at construction.

    What is not given is the default of the `wire_profile`, also after `dataclasses.replace`.

    Raises:
        ValueError: a value outside what its option allows; the text names the option and the range.
    """

    sync_min_interval_ms: int = FamilyInt(30_000)
    """The interval in which the whole channel sends about one sync message; 0 sends none, as by
    default in `nim`: nim-sds would take them for content."""
    sync_schedule: SyncScheduleName = "suppressed"
    """`suppressed` keeps to that whatever the group's size; `js-waku` sends as many as there are
    participants."""
    retry_interval_ms: int = 30_000
    """Wait before an unacknowledged message is sent again."""
    possibly_acknowledged_retry_interval_ms: int = 60_000
    """The same for a message that somebody may have."""
    max_retry_attempts: int = 10
    """Retries before `delivery_failed`."""
    retrieve_frequency_ms: int = 10_000
    """How often Store is asked for missing messages."""
    retrieval_strategy: RetrievalStrategy = "both"
    """Where missing messages come from: `store-only`, other participants (`sds-r-only`), `both`, or
    `none`; `adaptive`, as `both` but for what did not help lately; one that a plugin knows; or a
    `reliable_channel.policies.RepairPolicy`."""
    history: HistoryName = "all"
    """What a participant who joins wants of the conversation before: `all` that Store has, what was
    said `since` `history_since_ms`, or `none`. What it did not ask for never blocks nor counts as
    lost."""
    history_since_ms: int = 0
    """With `history="since"`: from when, in milliseconds since 1970."""
    query_on_connect: bool = True
    """Ask Store for what was missed when the node is reached, and reached again."""
    query_on_connect_window_ms: int = 30 * DAY_MS
    """How far back the first of these queries goes."""
    redundancy: int = 2
    """Where the channel has several nodes: how many take each message at once, and how many must
    bring what others send for its topic to be `sufficiently_healthy`."""
    confirm_interval_ms: int = 60_000
    """How often Store is asked whether it has what was sent, and whether it has what did not come;
    0 never. It takes two looks to send again what is not stored and not acknowledged either."""
    sweep_in_buf_interval_ms: int = 5_000
    """How often messages that wait for others are looked through."""
    timeout_for_lost_messages_ms: int = 300_000
    """Wait before a missing message counts as lost; 0 waits for ever, as js-waku does by default,
    and then one message that is lost for good blocks the channel for good."""
    causal_history_size: int = FamilyInt(200)
    """Earlier messages that each message refers to; 10 in `nim`. Few (LIP 173 has 2) need a Store
    to recover all."""
    possible_acks_threshold: int = 2
    """Participants whose bloom filter must hold a message before it counts as acknowledged."""
    bloom_capacity: int = FamilyInt(10_000)
    """Messages that a bloom filter holds; equal for all participants."""
    bloom_error_rate: float = FamilyFloat(0.001)
    """Its false positives when full; equal for all participants."""
    repair_t_min_ms: int = FamilyInt(30_000)
    """Earliest time after which other participants are asked for a missing message."""
    repair_t_max_ms: int = FamilyInt(120_000)
    """Latest time, 300,000 in `nim`; also the span over which answers spread."""
    repair_sweep_interval_ms: int = 5_000
    """At most one sync message within it is sent for requests alone."""
    num_response_groups: int = 1
    """Groups that share the answering; equal for all participants."""
    max_requests_per_message: int = 3
    """Missing messages that one message asks for."""
    max_request_attempts: int = 5
    """How often a missing message is asked for."""
    repair_buffer_size: int = 1_000
    """Requests and answers that are planned at most."""
    repair_cache_bytes: int = 4 * 1024 * 1024
    """Messages kept whole to answer requests with; give more where there is no Store."""
    repair_answers_per_minute: int = 1_200
    """Messages that are broadcast again for others; what is asked for beyond goes unanswered."""
    repair_answer_bytes_per_minute: int = 16 * 1024 * 1024
    """The same in bytes."""
    repair_requester_answers_per_minute: int = 300
    """Messages that are broadcast again for one requester."""
    repair_requester_answer_bytes_per_minute: int = 4 * 1024 * 1024
    """The same in bytes."""
    max_lamport_ahead_ms: int = FamilyInt(DAY_MS)
    """How far ahead of local time a message's Lamport timestamp may be; 365 days in `nim`, whose
    clocks run ahead by a second with each message beyond one a second."""
    max_message_bytes: int = MAX_MESSAGE_BYTES
    """How long an encoded message may be: by default what passes every node."""
    log_limit: int = 1_000_000
    """Messages in the log; the oldest leave it, where there is `state` some thousands at a time."""
    log_limit_bytes: int = 1024 * 1024 * 1024
    """The same in bytes of content."""
    retention_ms: int = 0
    """How old messages in the log may become, by their Lamport timestamp, before they leave it; 0
    for any age."""
    outgoing_buffer_limit: int = 10_000
    """Own unacknowledged messages; `send` refuses more."""
    incoming_buffer_limit: int = 10_000
    """Messages that wait for others."""
    incoming_buffer_limit_bytes: int = 64 * 1024 * 1024
    """The same in bytes."""
    missing_limit: int = 20_000
    """Messages known by reference alone; beyond, references of the participant who refers to most
    are dropped, with `references_dropped`."""
    participants_limit: int = 20_000
    """Senders that are remembered."""
    unknown_references_limit: int = MAX_CAUSAL_HISTORY_SIZE
    """Unknown messages that one message may refer to; it is refused beyond."""
    repair_requests_limit: int = MAX_REQUESTS_PER_MESSAGE
    """Messages that one message may ask for; it is refused beyond."""
    on_state_failure: StateFailure = "raise"
    """What `send` does while the state cannot be written, as on a full disk: `raise`
    `StateUnavailable` and send nothing, or `accept` the message in memory, where it is lost if the
    process ends before the state can be written again."""
    event_buffer_limit: int = 10_000
    """Events in memory for readers of `events()`. A reader further behind never stops the channel:
    it gets messages and reports from the log, and one `events_missed` for the rest."""

    wire_profile: WireProfileName = "spec"
    """The dialect that is sent: `spec` for js-waku, `nim` for nim-sds (status-go, logos-delivery),
    or one that a plugin knows. The first two are understood in any case. It brings the defaults
    of its family: of `nim` `causal_history_size=10`, `repair_t_max_ms=300_000`,
    `max_lamport_ahead_ms` of 365 days and `sync_min_interval_ms=0`."""
    segmentation: SegmentationName = "profile"
    """How payloads are cut into segments: `none`, one of the layouts for every payload, or as the
    `profile` has it (`spec` none; `nim` its own, for payloads beyond `segment_size_bytes` only,
    while shorter ones go bare). A payload beyond a Waku message needs one, at all participants."""
    encryption_order: EncryptionOrder = "profile"
    """What a given encryption seals: whole SDS messages (`sds-then-encrypt`), their contents alone
    (`encrypt-then-sds`), or as the `profile` has it (both of them whole messages, as published).
    Equal for all participants."""
    segment_size_bytes: int = 102_400
    """How long an encoded segment may be."""
    max_payload_bytes: int = 16 * 1024 * 1024
    """How long a payload may be, where it is cut."""
    segment_reconstruction_timeout_ms: int = 600_000
    """How long the segments of a payload wait for the others; above `timeout_for_lost_messages_ms`,
    as a missing segment holds up those after it so long."""
    rate_limit_enabled: bool = False
    """Keep to a budget of messages an epoch, as RLN demands of whoever publishes."""
    rate_limit_messages_per_epoch: int = 100
    """The budget: the rate of the RLN membership; 0 lets nothing out."""
    rate_limit_epoch_period_s: int = 600
    """The epoch; equal to the network's."""

    def __post_init__(self) -> None:
        if (family := self._family()) is not None:
            for name, option_of in _OF_FAMILY.items():
                if isinstance(value := getattr(self, name), (FamilyInt, FamilyFloat)):
                    object.__setattr__(self, name, type(value)(option_of(family)))
        for name, (least, most) in _WHOLE_NUMBERS.items():
            _check_whole_number(name, getattr(self, name), least, most)
        rate = self.bloom_error_rate
        if not isinstance(rate, float) or not MIN_BLOOM_ERROR_RATE <= rate < 1:
            raise ValueError(
                f"bloom_error_rate is {rate!r}; allowed is a number of at least "
                f"{MIN_BLOOM_ERROR_RATE} and below 1"
            )
        filter_bytes = BloomParameters(self.bloom_capacity, rate).layout.byte_count
        if 2 * filter_bytes > self.max_message_bytes:
            raise ValueError(
                f"bloom_capacity is {self.bloom_capacity}; allowed is what makes a filter of at "
                f"most half of max_message_bytes, and this one takes {filter_bytes} bytes"
            )
        if self.repair_t_max_ms < self.repair_t_min_ms:
            raise ValueError(
                f"repair_t_max_ms is {self.repair_t_max_ms}; allowed is a whole number "
                f"of at least repair_t_min_ms, {self.repair_t_min_ms}"
            )
        for name, allowed in _WORDS.items():
            if (word := getattr(self, name)) not in allowed:
                *others, last = map(repr, allowed)
                raise ValueError(f"{name} is {word!r}; allowed are {', '.join(others)} and {last}")
        for name, own, is_one in (
            ("retrieval_strategy", REPAIR_POLICIES, callable(self.retrieval_strategy)),
            ("wire_profile", PROFILES, isinstance(self.wire_profile, WireProfile)),
        ):
            given = getattr(self, name)
            if not is_one and not (isinstance(given, str) and given):
                raise ValueError(
                    f"{name} is {given!r}; allowed are {', '.join(map(repr, own))}, and others by "
                    "a name that a plugin knows, or as they are"
                )
        for name in ("query_on_connect", "rate_limit_enabled"):
            if not isinstance(value := getattr(self, name), bool):
                raise ValueError(f"{name} is {value!r}; allowed are True and False")

    @classmethod
    def of_profile(cls, wire_profile: WireProfileName) -> Self:
        """The defaults of a dialect's family."""
        return cls(wire_profile=wire_profile)

    def _family(self) -> SdsOptions | None:
        """The options of the dialect's family; None for the name of one that a plugin knows, which
        a channel looks up."""
        given = self.wire_profile
        profile = PROFILES.get(given) if isinstance(given, str) else given
        return profile.options if isinstance(profile, WireProfile) else None

    @property
    def profile(self) -> WireProfile:
        """The dialect that is sent.

        Raises:
            ValueError: it is the name of one that a plugin knows; a channel looks it up.
        """
        given = self.wire_profile
        return given if isinstance(given, WireProfile) else wire_profile_of(given)

    @property
    def segment_layout(self) -> object:
        """The layout in which payloads are cut, or its name, or None."""
        if self.segmentation == "profile":
            return self.profile.segmentation
        return None if self.segmentation == "none" else self.segmentation

    @property
    def segments_every_payload(self) -> bool:
        """Whether payloads that fit one message are wrapped in a segment as well."""
        return self.segmentation != "profile"

    @property
    def encrypts_contents_alone(self) -> bool:
        """Whether a given encryption is inside SDS."""
        if self.encryption_order == "profile":
            return self.profile.encryption_order == "encrypt-then-sds"
        return self.encryption_order == "encrypt-then-sds"

    @property
    def asks_store(self) -> bool:
        """Whether Store is used."""
        return self.retrieval_strategy not in WITHOUT_STORE

    @property
    def asks_others(self) -> bool:
        """Whether other participants are asked, and answered (SDS-R)."""
        return self.retrieval_strategy not in WITHOUT_OTHERS

    def without_store(self) -> Self:
        """The same for a network that has no Store: what is missing is asked of other
        participants alone."""
        if self.retrieval_strategy not in REPAIR_POLICIES:
            return self  # it is shown that there is none
        return replace(self, retrieval_strategy="sds-r-only" if self.asks_others else "none")

    def sds_options(self) -> SdsOptions:
        """The part that the core obeys."""
        return SdsOptions(
            causal_history_size=self.causal_history_size,
            possible_acks_threshold=self.possible_acks_threshold,
            bloom=BloomParameters(self.bloom_capacity, self.bloom_error_rate),
            retry_interval_ms=self.retry_interval_ms,
            possibly_acknowledged_retry_interval_ms=self.possibly_acknowledged_retry_interval_ms,
            max_retry_attempts=self.max_retry_attempts,
            sync_min_interval_ms=self.sync_min_interval_ms,
            sync_schedule=self.sync_schedule,
            sweep_in_buf_interval_ms=self.sweep_in_buf_interval_ms,
            timeout_for_lost_messages_ms=self.timeout_for_lost_messages_ms,
            max_message_bytes=self.max_message_bytes,
            max_lamport_ahead_ms=self.max_lamport_ahead_ms,
            repair=RepairOptions(
                enabled=self.asks_others,
                t_min_ms=self.repair_t_min_ms,
                t_max_ms=self.repair_t_max_ms,
                num_response_groups=self.num_response_groups,
                max_requests_per_message=self.max_requests_per_message,
                buffer_size=self.repair_buffer_size,
                max_request_attempts=self.max_request_attempts,
                sweep_interval_ms=self.repair_sweep_interval_ms,
                cache_bytes=self.repair_cache_bytes,
                cache_durably=not self.asks_store,
                answers_per_minute=self.repair_answers_per_minute,
                answer_bytes_per_minute=self.repair_answer_bytes_per_minute,
                requester_answers_per_minute=self.repair_requester_answers_per_minute,
                requester_answer_bytes_per_minute=self.repair_requester_answer_bytes_per_minute,
            ),
            retention_ms=self.retention_ms,
            limits=Limits(
                log_entries=self.log_limit,
                log_bytes=self.log_limit_bytes,
                outgoing_messages=self.outgoing_buffer_limit,
                incoming_messages=self.incoming_buffer_limit,
                incoming_bytes=self.incoming_buffer_limit_bytes,
                missing_entries=self.missing_limit,
                participants=self.participants_limit,
                unknown_references=self.unknown_references_limit,
                repair_requests=self.repair_requests_limit,
            ),
        )


_OF_FAMILY: Final[dict[str, Callable[[SdsOptions], float]]] = {
    "sync_min_interval_ms": lambda sds: sds.sync_min_interval_ms,
    "causal_history_size": lambda sds: sds.causal_history_size,
    "bloom_capacity": lambda sds: sds.bloom.capacity,
    "bloom_error_rate": lambda sds: sds.bloom.error_rate,
    "repair_t_min_ms": lambda sds: sds.repair.t_min_ms,
    "repair_t_max_ms": lambda sds: sds.repair.t_max_ms,
    "max_lamport_ahead_ms": lambda sds: sds.max_lamport_ahead_ms,
}
"""What a family chooses, and where its profile has it."""

_MAY_BE_0 = frozenset(
    {
        "sync_min_interval_ms",
        "max_retry_attempts",
        "timeout_for_lost_messages_ms",
        "causal_history_size",
        "repair_t_min_ms",
        "repair_sweep_interval_ms",
        "repair_cache_bytes",
        "max_lamport_ahead_ms",
        "retention_ms",
        "rate_limit_messages_per_epoch",
        "history_since_ms",
        "confirm_interval_ms",
    }
)
_AT_MOST = {
    "causal_history_size": MAX_CAUSAL_HISTORY_SIZE,
    "max_requests_per_message": MAX_REQUESTS_PER_MESSAGE,
    "bloom_capacity": 50_000,
    "max_message_bytes": 1024 * 1024,
}
_AT_LEAST = {"max_message_bytes": 512}
_WHOLE_NUMBERS = {
    field.name: (
        _AT_LEAST.get(field.name, 0 if field.name in _MAY_BE_0 else 1),
        _AT_MOST.get(field.name),
    )
    for field in fields(ChannelOptions)
    if field.type is int
}
"""What each option that is a whole number allows, least and most."""


def _check_whole_number(name: str, value: object, least: int, most: int | None) -> None:
    if isinstance(value, int) and not isinstance(value, bool):
        if value >= least and (most is None or value <= most):
            return
    up_to = "" if most is None else f" and at most {most}"
    raise ValueError(f"{name} is {value!r}; allowed is a whole number of at least {least}{up_to}")


OPTION_NAMES = tuple(field.name for field in fields(ChannelOptions))
_WORDS = {
    "sync_schedule": get_args(SyncScheduleName),
    "history": get_args(HistoryName),
    "encryption_order": get_args(EncryptionOrder),
    "segmentation": get_args(SegmentationName),
    "on_state_failure": get_args(StateFailure),
}
"""What each option that is a word allows."""
