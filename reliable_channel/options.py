"""The options of a channel, flat: one name an option, here, in `ReliableChannel(…)` and as a flag
of the command line.

Each is declared once: the core's in `sds/options.py`, the others here. Names and defaults are those
of the Reliable Channel API as js-waku has it, where it has them.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, Unpack, get_args

from ._contracts.repair_policies import REPAIR_POLICIES, WITHOUT_OTHERS, WITHOUT_STORE
from ._option_values import (
    ENCRYPTION_ORDERS,
    PRESETS,
    EncryptionOrder,
    HistoryName,
    IdFunctionName,
    OptionValues,
    PresetName,
    RetrievalStrategy,
    RetryPolicyName,
    SegmentationName,
    Service,
    StateFailure,
    WireProfileName,
)
from .sds.bloom import BloomParameters
from .sds.declared import (
    OPTION,
    check,
    declared,
    given,
    number,
    share,
    switch,
    texts,
    whole_number,
    word,
)
from .sds.ids import reliable_channel_id
from .sds.options import (
    DAY_MS,
    ENVELOPE_BYTES,
    MAX_MESSAGE_BYTES,
    Limits,
    RepairOptions,
    SdsOptions,
    SyncScheduleName,
    check_order,
)
from .sds.profile import PROFILES, NamedLayout, WireProfile
from .sds.profile import wire_profile as wire_profile_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "ENCRYPTION_ORDERS",
    "PRESETS",
    "ChannelOptions",
    "EncryptionOrder",
    "HistoryName",
    "IdFunctionName",
    "OptionValues",
    "PresetName",
    "RetrievalStrategy",
    "RetryPolicyName",
    "SegmentationName",
    "Service",
    "StateFailure",
    "SyncScheduleName",
    "WireProfileName",
]

MAX_MARKER_BYTES: Final = 64
"""Size of the field `meta` of a Waku message (14/WAKU2-MESSAGE)."""


class Place(NamedTuple):
    """Where the core has an option."""

    kind: type[Any]
    name: str
    by_family: bool
    """Whether families of peers have different defaults."""


class FamilyInt(int):
    """A default that is replaced where `wire_profile` names a family with another one."""


class FamilyFloat(float):
    """The same for a float."""


class NetworkInt(int):
    """A default that a channel replaces where `network` names a network with another limit."""


def of_core(kind: type[Any], name: str, *, by_family: bool = False, **different: Any) -> Any:
    """An option that the core declares; `different` is what a channel has otherwise."""
    option = replace(declared(kind)[name], **different)
    default = option.default
    if by_family:
        default = FamilyInt(default) if isinstance(default, int) else FamilyFloat(default)
    metadata = {OPTION: option, Place: Place(kind, name, by_family)}
    return field(default=default, metadata=metadata)


def named(
    default: str | None, names: Iterable[str], what: str, kind: type[Any] | None = None
) -> Any:
    """An option that is a name, which a plugin may have registered, or the thing itself."""

    def fits(value: object) -> bool:
        if isinstance(value, str):
            return bool(value)
        return callable(value) if kind is None else isinstance(value, kind)

    known = ", ".join(map(repr, names))
    return given(default, f"{known}, a name that a plugin registers, or {what}", fits)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_marker(value: object) -> bool:
    return isinstance(value, bytes) and len(value) <= MAX_MARKER_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelOptions:
    """How a channel behaves. Every value is checked at construction.

    What is not given is the default of the `wire_profile`, also after `dataclasses.replace`.

    Raises:
        ValueError: a value that is not allowed; the text names the option and what is.
    """

    sync_min_interval_ms: int = of_core(SdsOptions, "sync_min_interval_ms", by_family=True)
    sync_schedule: SyncScheduleName = of_core(SdsOptions, "sync_schedule")
    retry_interval_ms: int = of_core(SdsOptions, "retry_interval_ms")
    possibly_acknowledged_retry_interval_ms: int = of_core(
        SdsOptions,
        "possibly_acknowledged_retry_interval_ms",
        default=60_000,
        problem=whole_number(1),
    )
    max_retry_attempts: int = of_core(SdsOptions, "max_retry_attempts")
    retrieve_frequency_ms: int = number(10_000, "ms", 1)
    """Interval at which Store is asked for missing messages."""
    retrieval_strategy: RetrievalStrategy = named("both", REPAIR_POLICIES, "a policy")
    """Where missing messages come from: `store-only`, other participants (`sds-r-only`), `both`,
    `none`, `adaptive`, which is `both` without what did not help lately, or `prompt`, which asks
    Store soon and others where it does not help. Also the name of a policy that a plugin registers,
    or a `reliable_channel.spi.RepairPolicy`."""
    history: HistoryName = word("all", get_args(HistoryName))
    """Earlier messages that a joining participant fetches: `all` that Store has, those `since`
    `history_since_ms`, or `none`. Other earlier messages neither block it nor count as lost."""
    history_since_ms: int = number(0, "ms", 0)
    """Start of the history that is asked for with `history="since"`, in milliseconds since 1970."""
    query_on_connect: bool = switch(True)
    """Ask Store for missed messages each time a node is reached."""
    query_on_connect_window_ms: int = number(30 * DAY_MS, "ms", 1)
    """How far back the first query of `query_on_connect` goes."""
    redundancy: int = number(2, "nodes", 1)
    """With several nodes: how many take each message at once, and how many must bring messages of
    the channel's topic to be `sufficiently_healthy`."""
    confirm_interval_ms: int = number(60_000, "ms", 0)
    """Interval at which Store is asked whether it has sent messages, and messages that were not
    received; 0 for never. A message is sent again if two queries do not find it and it is
    not acknowledged."""
    sweep_in_buf_interval_ms: int = of_core(SdsOptions, "sweep_in_buf_interval_ms")
    timeout_for_lost_messages_ms: int = of_core(SdsOptions, "timeout_for_lost_messages_ms")
    causal_history_size: int = of_core(SdsOptions, "causal_history_size", by_family=True)
    possible_acks_threshold: int = of_core(SdsOptions, "possible_acks_threshold")
    bloom_capacity: int = of_core(BloomParameters, "capacity", by_family=True)
    bloom_error_rate: float = of_core(BloomParameters, "error_rate", by_family=True)
    repair_t_min_ms: int = of_core(RepairOptions, "t_min_ms", by_family=True)
    repair_t_max_ms: int = of_core(RepairOptions, "t_max_ms", by_family=True)
    repair_sweep_interval_ms: int = of_core(RepairOptions, "sweep_interval_ms")
    num_response_groups: int = of_core(RepairOptions, "num_response_groups")
    max_requests_per_message: int = of_core(RepairOptions, "max_requests_per_message")
    max_request_attempts: int = of_core(RepairOptions, "max_request_attempts")
    repair_buffer_size: int = of_core(RepairOptions, "buffer_size")
    repair_cache_bytes: int = of_core(RepairOptions, "cache_bytes")
    repair_answers_per_minute: int = of_core(RepairOptions, "answers_per_minute")
    repair_answer_bytes_per_minute: int = of_core(RepairOptions, "answer_bytes_per_minute")
    repair_requester_answers_per_minute: int = of_core(
        RepairOptions, "requester_answers_per_minute"
    )
    repair_requester_answer_bytes_per_minute: int = of_core(
        RepairOptions, "requester_answer_bytes_per_minute"
    )
    self_tuning: bool = of_core(SdsOptions, "self_tuning")
    max_lamport_ahead_ms: int = of_core(SdsOptions, "max_lamport_ahead_ms", by_family=True)
    max_message_bytes: int = of_core(
        SdsOptions,
        "max_message_bytes",
        default=NetworkInt(MAX_MESSAGE_BYTES),
        problem=whole_number(512, 1024 * 1024),
    )
    log_limit: int = of_core(Limits, "log_entries")
    log_limit_bytes: int = of_core(Limits, "log_bytes")
    retention_ms: int = of_core(SdsOptions, "retention_ms")
    outgoing_buffer_limit: int = of_core(Limits, "outgoing_messages")
    incoming_buffer_limit: int = of_core(Limits, "incoming_messages")
    incoming_buffer_limit_bytes: int = of_core(Limits, "incoming_bytes")
    missing_limit: int = of_core(Limits, "missing_entries")
    participants_limit: int = of_core(Limits, "participants")
    unknown_references_limit: int = of_core(Limits, "unknown_references")
    repair_requests_limit: int = of_core(Limits, "repair_requests")
    on_state_failure: StateFailure = word("raise", get_args(StateFailure))
    """What `send` does while the state cannot be written, as on a full disk: `raise`
    `StateUnavailable` and send nothing, or `accept` the message in memory, where it is lost if the
    process ends before the state can be written again."""
    event_buffer_limit: int = number(10_000, "events", 1)
    """Maximum number of events in memory for readers of `events()`. A reader further behind never
    stops the channel: it gets messages and reports from the log, and one `events_missed` for the
    rest."""

    wire_profile: WireProfileName = named("spec", PROFILES, "a WireProfile", WireProfile)
    """The dialect that is sent: `spec` for js-waku, `nim` for nim-sds (status-go, logos-delivery),
    or one that a plugin registers. The first two are always understood. It brings the defaults of
    its family: of `nim` `causal_history_size=10`, `repair_t_max_ms=300_000`,
    `max_lamport_ahead_ms` of 365 days and `sync_min_interval_ms=0`."""
    segmentation: SegmentationName = word("profile", get_args(SegmentationName))
    """How payloads are cut into segments: `none`, one of the layouts for every payload, or as the
    `profile` has it. `spec` has none. `nim` wraps every payload in a segment, until another
    participant sends one bare or in another layout: the form heard last is the next one's. A
    payload beyond a Waku message needs segments, at all participants."""
    encryption_order: EncryptionOrder = word("profile", get_args(EncryptionOrder))
    """What a given encryption encrypts: whole SDS messages (`sds-then-encrypt`), their contents
    alone (`encrypt-then-sds`), or as the `profile` has it (both of them whole messages, as
    published). Must be equal for all participants."""
    segment_size_bytes: int = number(NetworkInt(102_400), "bytes", 1)
    """Maximum size of an encoded segment; two thirds of what a Waku message takes, for the
    `network` that is named."""
    max_payload_bytes: int = number(16 * 1024 * 1024, "bytes", 1)
    """Maximum size of a payload that is cut into segments."""
    segment_reconstruction_timeout_ms: int = number(600_000, "ms", 1)
    """Reassembly timeout of a segmented payload. Keep it above `timeout_for_lost_messages_ms`,
    because a lost segment blocks later ones for that long."""
    rate_limit_enabled: bool = switch(False)
    """Keep to a budget of messages an epoch, as RLN demands of publishers."""
    rate_limit_messages_per_epoch: int = number(100, "messages per epoch", 0)
    """Budget of the rate limit: the rate of the RLN membership; 0 sends nothing."""
    rate_limit_epoch_period_s: int = number(600, "s", 1)
    """Length of an epoch of the rate limit. Must be equal to the network's."""
    rate_limit_file: str | Path | None = given(
        None, "the path of a file", lambda value: isinstance(value, (str, Path))
    )
    """File in which the spent budget of the rate limit outlives the process; with `state` it does
    anyway."""
    retry_policy: RetryPolicyName = named("fixed", ("fixed", "doubling"), "a policy")
    """When an unacknowledged message is sent again: `fixed`, as the options say;
    `doubling`, twice as long each time, up to an hour; the name of a policy that a plugin
    registers; or a `reliable_channel.spi.RetryPolicy`."""
    id_function: IdFunctionName = named(None, ("lip-173", "js-waku"), "a function")
    """Makes the ids of messages, in place of the wire profile's: `lip-173`, `js-waku`, one that a
    plugin registers, or a function of sender, nanoseconds and content. Only with `lip-173` do
    receivers notice forged ids."""

    content_topic: str | None = given(None, "a content topic", _is_text)
    """Content topic of the channel on Waku; made from the channel id if not given."""
    pubsub_topic: str | None = given(None, "a pubsub topic", _is_text)
    """Static shard of the channel; autosharding derives it from `cluster_id` and `num_shards` if
    not given."""
    cluster_id: int = number(1, "", 0, 65_535)
    """Cluster of the Waku network."""
    num_shards: int = number(8, "shards", 1, 65_536)
    """Number of shards of the cluster."""
    network: str | None = given(None, "the name of a network or the path of a TOML file", _is_text)
    """Named network, such as `status.prod`, or a TOML file (docs/discovery.md): gives cluster and
    shards, and the service peers where no `node` is given."""
    ca_file: str | Path | None = given(
        None, "the path of a file", lambda value: isinstance(value, (str, Path))
    )
    """PEM file of the certificates to trust for `wss` peers and `https` nodes, in place of the
    system's."""
    service: Service = word("auto", get_args(Service))
    """Services of the Waku node to use: `relay`, `light` (light push and filter), or `auto`, which
    is relay where the node offers it."""
    store_peer: str | None = given(None, "a multiaddress", _is_text)
    """Multiaddress of the Store node that the Waku node asks; nwaku finds one by itself."""
    wait_for_node: bool = switch(False)
    """Open although no node answers: the channel accepts messages, emits `transport_degraded` and
    `node_health_changed`, and starts as soon as a node answers. Otherwise opening raises
    `ChannelUnavailable`."""
    require_signatures: bool = switch(False)
    """Refuse, with `message_rejected`, messages that are not proven to be of their sender. Needs
    `signing`."""
    marker: bytes | None = given(None, f"bytes, at most {MAX_MARKER_BYTES}", _is_marker)
    """Bytes that are attached to each message as Waku's `meta`. If not given the wire profile
    decides: `nim` has `b"RELIABLE-CHANNEL-API/1"`, `spec` none; `b""` is none in any case."""
    marker_required: bool = switch(True)
    """Ignore messages without the `marker`."""
    drop_incoming: float | None = share(None)
    """Share of live messages to throw away, for tests of reliability."""
    seed: int | None = given(None, "a whole number", lambda value: isinstance(value, int))
    """Seed that makes the random choices of the channel repeatable."""

    def __post_init__(self) -> None:
        if (family := self._family()) is not None:
            for one in fields(self):
                if isinstance(value := getattr(self, one.name), (FamilyInt, FamilyFloat)):
                    object.__setattr__(self, one.name, type(value)(_in_core(family, one)))
        check(self)
        rate = BloomParameters(self.bloom_capacity, self.bloom_error_rate)
        if 2 * (size := rate.layout.byte_count) > self.max_message_bytes:
            raise ValueError(
                "`bloom_capacity` must make a filter of at most half of `max_message_bytes` (got "
                f"{self.bloom_capacity}, which takes {size} bytes)"
            )
        check_order(
            "repair_t_min_ms", self.repair_t_min_ms, "repair_t_max_ms", self.repair_t_max_ms
        )

    @classmethod
    def of_profile(cls, wire_profile: WireProfileName) -> Self:
        """The defaults of a dialect's family."""
        return cls(wire_profile=wire_profile)

    @classmethod
    def of_preset(cls, preset: PresetName, **values: Unpack[OptionValues]) -> Self:
        """The options of a preset; single ones that are given override it.

        Raises:
            ValueError: there is no such preset, or a value is not allowed.
        """
        if preset not in PRESETS:
            *others, last = map(repr, PRESETS)
            raise ValueError(f"`preset` must be {', '.join(others)} or {last} (got {preset!r})")
        return replace(cls(**PRESETS[preset]), **values)

    def on_network(self, max_waku_message_bytes: int) -> Self:
        """The same on a network with this limit of an encoded Waku message; what was given stays.

        A KiB counts as 1,000 bytes: stock nodes drop messages between the two (docs/interop.md).
        """
        of_network: dict[str, Any] = {
            "max_message_bytes": max_waku_message_bytes * 1_000 // 1_024 - ENVELOPE_BYTES,
            "segment_size_bytes": max_waku_message_bytes * 2 // 3,
        }
        names = [name for name in of_network if isinstance(getattr(self, name), NetworkInt)]
        return replace(self, **{name: of_network[name] for name in names})

    def _family(self) -> SdsOptions | None:
        """The options of the dialect's family; None for the name of one that a plugin registers,
        which a channel looks up."""
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
    def segment_layout(self) -> str | NamedLayout | None:
        """The layout in which payloads are cut, or its name, or None."""
        if self.segmentation == "profile":
            return self.profile.segmentation
        return None if self.segmentation == "none" else self.segmentation

    @property
    def follows_segment_form(self) -> bool:
        """True if payloads are sent in the form that was heard last in the channel."""
        return self.segmentation == "profile"

    @property
    def encrypts_contents_alone(self) -> bool:
        """Whether a given encryption is inside SDS."""
        if self.encryption_order == "profile":
            return self.profile.encryption_order == "encrypt-then-sds"
        return self.encryption_order == "encrypt-then-sds"

    @property
    def proves_copies(self) -> bool:
        """Whether ids are those of LIP 173, which show which copy of a message arrived."""
        given = self.id_function
        function = self.profile.id_function if given is None else given
        return function in ("lip-173", reliable_channel_id)

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
        return core_options(self, enabled=self.asks_others, cache_durably=not self.asks_store)


def core_options(options: "DataclassInstance", **repair: Any) -> SdsOptions:
    """The options of the core that a dataclass has (`of_core`), all others with their defaults;
    `repair` are more of `RepairOptions`."""
    parts: dict[type[Any], dict[str, Any]] = defaultdict(dict)
    for one in fields(options):
        if place := one.metadata.get(Place):
            parts[place.kind][place.name] = getattr(options, one.name)
    return SdsOptions(
        bloom=BloomParameters(**parts[BloomParameters]),
        repair=RepairOptions(**parts[RepairOptions], **repair),
        limits=Limits(**parts[Limits]),
        **parts[SdsOptions],
    )


def _in_core(sds: SdsOptions, option: "Field[Any]") -> Any:
    """An option in the options of a core."""
    place: Place = option.metadata[Place]
    part = {RepairOptions: sds.repair, Limits: sds.limits, BloomParameters: sds.bloom}
    return getattr(part.get(place.kind, sds), place.name)


def of_channel(name: str, **different: Any) -> Any:
    """An option that a channel declares, for a dataclass that has some of them as well."""
    return replace(declared(ChannelOptions)[name], **different).option()


OPTION_NAMES = tuple(one.name for one in fields(ChannelOptions))
CORE_OPTION_NAMES = tuple(one.name for one in fields(ChannelOptions) if Place in one.metadata)
"""Those that the core declares."""


def option_texts() -> dict[str, str]:
    """The text of each option, by name."""
    own = texts(ChannelOptions)
    core = {kind: texts(kind) for kind in (SdsOptions, RepairOptions, Limits, BloomParameters)}
    found = {}
    for one in fields(ChannelOptions):
        place: Place | None = one.metadata.get(Place)
        found[one.name] = own[one.name] if place is None else core[place.kind][place.name]
    return found
