"""The options of a channel: keyword arguments of `ReliableChannel`, flags, and settings of a file.

Each is declared once: those of the core in `sds/options.py`, the others here. Names and defaults
are those of the Reliable Channel API as js-waku has it, where it has them. Four options are groups:
`bloom`, `limits`, `rate_limit` and `repair`. A text gives one of a group under its flat name:
`repair.t_min_ms` is `repair_t_min_ms`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeVar, Unpack

from ._contracts.repair_policies import REPAIR_POLICIES, WITHOUT_OTHERS, WITHOUT_STORE
from ._option_values import (
    ENCRYPTION_ORDERS,
    PRESETS,
    EncryptionOrder,
    HistoryName,
    IdFunctionName,
    Limits,
    OptionValues,
    PresetName,
    RateLimitOptions,
    RetrievalStrategy,
    RetryPolicyName,
    SegmentationName,
    Service,
    StateFailure,
    WireProfileName,
)
from .sds.bloom import BloomParameters
from .sds.declared import (
    SHARE,
    UNSET,
    Bound,
    Doc,
    Fits,
    Like,
    Unit,
    UnsetType,
    check,
    declared,
    known,
)
from .sds.ids import reliable_channel_id
from .sds.options import DAY_MS, ENVELOPE_BYTES, RepairOptions, SdsOptions
from .sds.profile import PROFILES, SPEC, NamedLayout, WireProfile
from .sds.profile import wire_profile as wire_profile_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "ENCRYPTION_ORDERS",
    "PRESETS",
    "UNSET",
    "BloomParameters",
    "ChannelOptions",
    "EncryptionOrder",
    "HistoryName",
    "IdFunctionName",
    "Limits",
    "OptionValues",
    "PresetName",
    "RateLimitOptions",
    "RepairOptions",
    "RetrievalStrategy",
    "RetryPolicyName",
    "SegmentationName",
    "Service",
    "StateFailure",
    "UnsetType",
    "WireProfileName",
]

MAX_MARKER_BYTES: Final = 64
"""Size of the field `meta` of a Waku message (14/WAKU2-MESSAGE)."""
SEGMENT_SIZE_BYTES: Final = 102_400
"""Two thirds of what a Waku message takes where no network is named."""

T = TypeVar("T")
Group = TypeVar("Group", bound="DataclassInstance")


_OF_CORE: Final = Like(SdsOptions)


def _named(names: Iterable[str], what: str, kind: type[object] | None = None) -> Fits:
    """Return the check of a name, which a plugin may have registered, or of the thing itself."""

    def fits(value: object) -> bool:
        if isinstance(value, str):
            return bool(value)
        return callable(value) if kind is None else isinstance(value, kind)

    return Fits(f"{', '.join(map(repr, names))}, a name that a plugin registers, or {what}", fits)


def _is_marker(value: object) -> bool:
    return isinstance(value, bytes) and len(value) <= MAX_MARKER_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelOptions:
    """How a channel behaves. Every value is checked at construction.

    `UNSET` stands for the default of the `wire_profile` or `network`; `resolved` puts it in.

    Raises:
        ValueError: a value that is not allowed; the text names the option and what is.
    """

    sync_min_interval_ms: Annotated[int | UnsetType, _OF_CORE] = UNSET
    retry_interval_ms: Annotated[int, _OF_CORE] = 30_000
    possibly_acknowledged_retry_interval_ms: Annotated[int, _OF_CORE] = 60_000
    max_retry_attempts: Annotated[int, _OF_CORE] = 10
    retrieve_frequency_ms: Annotated[
        int, Bound(1), Doc("Interval at which Store is asked for missing messages.")
    ] = 10_000
    retrieval_strategy: Annotated[
        RetrievalStrategy,
        _named(REPAIR_POLICIES, "a policy"),
        Doc("""Where missing messages come from: `store-only`, other participants
        (`sds-r-only`), `both`, `none`, `adaptive`, which is `both` without what did not help
        lately, or `prompt`, which asks Store soon and others where it does not help. Also the
        name of a policy that a plugin registers, or a `reliable_channel.spi.RepairPolicy`."""),
    ] = "both"
    history: Annotated[
        HistoryName,
        Doc("""Earlier messages that a joining participant fetches: `all` that Store has, those
        `since` `history_since_ms`, or `none`. Other earlier messages neither block it nor
        count as lost."""),
    ] = "all"
    history_since_ms: Annotated[
        int,
        Bound(0),
        Doc("""Start of the history that is asked for with `history="since"`, in milliseconds
        since 1970."""),
    ] = 0
    query_on_connect: Annotated[
        bool, Doc("Ask Store for missed messages each time a node is reached.")
    ] = True
    query_on_connect_window_ms: Annotated[
        int, Bound(1), Doc("How far back the first query of `query_on_connect` goes.")
    ] = 30 * DAY_MS
    redundancy: Annotated[
        int,
        Bound(1),
        Unit("nodes"),
        Doc("""With several nodes: how many take each message at once, and how many must bring
        messages of the channel's topic to be `sufficiently_healthy`."""),
    ] = 2
    confirm_interval_ms: Annotated[
        int,
        Bound(0),
        Doc("""Interval at which Store is asked whether it has sent messages, and messages that
        were not received; 0 for never. A message is sent again if two queries do not find it
        and it is not acknowledged."""),
    ] = 60_000
    sweep_in_buf_interval_ms: Annotated[int, _OF_CORE] = 5_000
    timeout_for_lost_messages_ms: Annotated[int, _OF_CORE] = 300_000
    causal_history_size: Annotated[int | UnsetType, _OF_CORE] = UNSET
    possible_acks_threshold: Annotated[int, _OF_CORE] = 2
    bloom: Annotated[
        BloomParameters | Mapping[str, float] | UnsetType,
        Doc("Size of bloom filters (`BloomParameters`), or a mapping of some of its options."),
    ] = UNSET
    repair: Annotated[
        RepairOptions | Mapping[str, int] | UnsetType,
        Doc("""Repair by other participants, SDS-R (`RepairOptions`), or a mapping of some of
        its options: the others stay as preset and wire profile have them."""),
    ] = UNSET
    self_tuning: Annotated[bool, _OF_CORE] = False
    max_lamport_ahead_ms: Annotated[int | UnsetType, _OF_CORE] = UNSET
    max_message_bytes: Annotated[int | UnsetType, Bound(512, 1024 * 1024), _OF_CORE] = UNSET
    limits: Annotated[Limits, Doc("Limits of buffers and payloads (`Limits`).")] = Limits()
    on_state_failure: Annotated[
        StateFailure,
        Doc("""What `send` does while the state cannot be written, as on a full disk: `raise`
        `StateUnavailable` and send nothing, or `accept` the message in memory, where it is
        lost if the process ends before the state can be written again."""),
    ] = "raise"
    wire_profile: Annotated[
        WireProfileName,
        _named(PROFILES, "a WireProfile", WireProfile),
        Doc("""The dialect that is sent: `spec` for js-waku, `nim` for nim-sds (status-go,
        logos-delivery), or one that a plugin registers. The first two are always understood.
        It brings the defaults of its family: of `nim` `causal_history_size=10`,
        `repair.t_max_ms=300_000`, `max_lamport_ahead_ms` of 365 days and
        `sync_min_interval_ms=0`."""),
    ] = "spec"
    segmentation: Annotated[
        SegmentationName,
        Doc("""How payloads are cut into segments: `none`, one of the layouts for every
        payload, or as the `profile` has it. `spec` has none. `nim` wraps every payload in a
        segment, until another participant sends one bare or in another layout: the form heard
        last is the next one's. A payload beyond a Waku message needs segments, at all
        participants."""),
    ] = "profile"
    encryption_order: Annotated[
        EncryptionOrder,
        Doc("""What a given encryption encrypts: whole SDS messages (`sds-then-encrypt`), their
        contents alone (`encrypt-then-sds`), or as the `profile` has it (both of them whole
        messages, as published). Must be equal for all participants."""),
    ] = "profile"
    segment_size_bytes: Annotated[
        int | UnsetType,
        Bound(1),
        Doc("""Maximum size of an encoded segment; two thirds of what a Waku message takes, for
        the `network` that is named."""),
    ] = UNSET
    segment_reconstruction_timeout_ms: Annotated[
        int,
        Bound(1),
        Doc("""Reassembly timeout of a segmented payload. Keep it above
        `timeout_for_lost_messages_ms`, because a lost segment blocks later ones for that long."""),
    ] = 600_000
    rate_limit: Annotated[
        RateLimitOptions, Doc("Budget of messages an epoch (`RateLimitOptions`).")
    ] = RateLimitOptions()
    retry_policy: Annotated[
        RetryPolicyName,
        _named(("fixed", "doubling"), "a policy"),
        Doc("""When an unacknowledged message is sent again: `fixed`, as the options say;
        `doubling`, twice as long each time, up to an hour; the name of a policy that a plugin
        registers; or a `reliable_channel.spi.RetryPolicy`."""),
    ] = "fixed"
    id_function: Annotated[
        IdFunctionName,
        _named(("lip-173", "js-waku"), "a function"),
        Doc("""Makes the ids of messages, in place of the wire profile's: `lip-173`, `js-waku`,
        one that a plugin registers, or a function of sender, nanoseconds and content. Only
        with `lip-173` do receivers notice forged ids."""),
    ] = None
    content_topic: Annotated[
        str | None,
        Doc("Content topic of the channel on Waku; made from the channel id if not given."),
    ] = None
    pubsub_topic: Annotated[
        str | None,
        Doc("""Static shard of the channel; autosharding derives it from `cluster_id` and
        `num_shards` if not given."""),
    ] = None
    cluster_id: Annotated[int, Bound(0, 65_535), Doc("Cluster of the Waku network.")] = 1
    num_shards: Annotated[int, Bound(1, 65_536), Doc("Number of shards of the cluster.")] = 8
    network: Annotated[
        str | None,
        Doc("""Named network, such as `status.prod`, or a TOML file (docs/light-client.md): gives
        cluster and shards, and the service peers where no `node` is given."""),
    ] = None
    ca_file: Annotated[
        str | Path | None,
        Doc("""PEM file of the certificates to trust for `wss` peers and `https` nodes, in
        place of the system's."""),
    ] = None
    service: Annotated[
        Service,
        Doc("""Services of the Waku node to use: `relay`, `light` (light push and filter), or
        `auto`, which is relay where the node offers it."""),
    ] = "auto"
    store_peer: Annotated[
        str | None,
        Doc("Multiaddress of the Store node that the Waku node asks; nwaku finds one by itself."),
    ] = None
    wait_for_node: Annotated[
        bool,
        Doc("""Open although no node answers: the channel accepts messages, emits
        `transport_degraded` and `node_health_changed`, and starts as soon as a node answers.
        Otherwise opening raises `ChannelUnavailable`."""),
    ] = False
    require_signatures: Annotated[
        bool,
        Doc("""Refuse, with `message_rejected`, messages that are not proven to be of their
        sender. Needs `signing`."""),
    ] = False
    marker: Annotated[
        bytes | None,
        Fits(f"bytes, at most {MAX_MARKER_BYTES}", _is_marker),
        Doc("""Bytes that are attached to each message as Waku's `meta`. If not given the wire
        profile decides: `nim` has `b"RELIABLE-CHANNEL-API/1"`, `spec` none; `b""` is none in
        any case."""),
    ] = None
    marker_required: Annotated[bool, Doc("Ignore messages without the `marker`.")] = True
    drop_incoming: Annotated[
        float | None, SHARE, Doc("Share of live messages to throw away, for tests of reliability.")
    ] = None
    seed: Annotated[
        int | None, Doc("Seed that makes the random choices of the channel repeatable.")
    ] = None

    def __post_init__(self) -> None:
        for name in ("limits", "rate_limit"):
            if isinstance(given := getattr(self, name), Mapping):
                kind = Limits if name == "limits" else RateLimitOptions
                object.__setattr__(self, name, _changed(name, kind(), given))
        check(self)
        sds = self.sds_options()
        if 2 * (size := sds.bloom.layout.byte_count) > sds.max_message_bytes:
            raise ValueError(
                "`bloom.capacity` must make a filter of at most half of `max_message_bytes` (got "
                f"{sds.bloom.capacity}, which takes {size} bytes)"
            )

    @classmethod
    def of_preset(cls, preset: PresetName, **values: Unpack[OptionValues]) -> Self:
        """Return the options of a preset; single ones that are given override it.

        Raises:
            ValueError: there is no such preset, or a value is not allowed.
        """
        if preset not in PRESETS:
            *others, last = map(repr, PRESETS)
            raise ValueError(f"`preset` must be {', '.join(others)} or {last} (got {preset!r})")
        return cls(**PRESETS[preset]).changed(**values)

    def changed(self, **values: Unpack[OptionValues]) -> Self:
        """Return the same with other values. A mapping changes single options of a group.

        Raises:
            ValueError: a value is not allowed.
        """
        merged: dict[str, Any] = dict(values)
        for name in GROUPS.keys() & merged.keys():
            given, below = merged[name], getattr(self, name)
            if isinstance(given, Mapping) and below is not UNSET:
                is_partial = isinstance(below, Mapping)
                merged[name] = {**below, **given} if is_partial else _changed(name, below, given)
        return replace(self, **merged)

    def resolved(self) -> Self:
        """Return the same with the defaults of wire profile and network in place of `UNSET`."""
        sds, family = self.sds_options(), self._family()
        return replace(
            self,
            sync_min_interval_ms=sds.sync_min_interval_ms,
            causal_history_size=sds.causal_history_size,
            max_lamport_ahead_ms=sds.max_lamport_ahead_ms,
            max_message_bytes=sds.max_message_bytes,
            segment_size_bytes=known(self.segment_size_bytes, SEGMENT_SIZE_BYTES),
            bloom=sds.bloom,
            repair=_group("repair", self.repair, family.repair),
        )

    def on_network(self, max_waku_message_bytes: int) -> Self:
        """Return the same on a network with this limit of an encoded Waku message.

        What was given stays. A KiB counts as 1,000 bytes: stock nodes drop messages between the
        two (docs/interop.md).
        """
        message_bytes = max_waku_message_bytes * 1_000 // 1_024 - ENVELOPE_BYTES
        segment_bytes = max_waku_message_bytes * 2 // 3
        return replace(
            self,
            max_message_bytes=known(self.max_message_bytes, message_bytes),
            segment_size_bytes=known(self.segment_size_bytes, segment_bytes),
        )

    def _family(self) -> SdsOptions:
        """Return the defaults of the dialect's family.

        A channel puts in the profile itself for the name that a plugin registers.
        """
        given = self.wire_profile
        profile = PROFILES.get(given, SPEC) if isinstance(given, str) else given
        return profile.options

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
        """Return the part that the core obeys."""
        family = self._family()
        repair = _group("repair", self.repair, family.repair)
        return replace(
            family,
            sync_min_interval_ms=known(self.sync_min_interval_ms, family.sync_min_interval_ms),
            retry_interval_ms=self.retry_interval_ms,
            possibly_acknowledged_retry_interval_ms=self.possibly_acknowledged_retry_interval_ms,
            max_retry_attempts=self.max_retry_attempts,
            sweep_in_buf_interval_ms=self.sweep_in_buf_interval_ms,
            timeout_for_lost_messages_ms=self.timeout_for_lost_messages_ms,
            causal_history_size=known(self.causal_history_size, family.causal_history_size),
            possible_acks_threshold=self.possible_acks_threshold,
            self_tuning=self.self_tuning,
            max_lamport_ahead_ms=known(self.max_lamport_ahead_ms, family.max_lamport_ahead_ms),
            max_message_bytes=known(self.max_message_bytes, family.max_message_bytes),
            bloom=_group("bloom", self.bloom, family.bloom),
            limits=self.limits,
            repair=replace(
                repair,
                enabled=repair.enabled and self.asks_others,
                cache_durably=repair.cache_durably or not self.asks_store,
            ),
        )


GROUPS: Final[Mapping[str, "type[DataclassInstance]"]] = {
    "bloom": BloomParameters,
    "limits": Limits,
    "rate_limit": RateLimitOptions,
    "repair": RepairOptions,
}
"""The options that are groups of options."""


def close_to(name: str, names: Iterable[str]) -> str:
    """Return advice for a misspelt name; empty if no name is close."""
    from difflib import get_close_matches  # only an error needs it

    close = get_close_matches(name, list(names), 1)
    return f"; did you mean `{close[0]}`?" if close else ""


def _changed(name: str, group: Group, values: Mapping[str, object]) -> Group:
    """Return a group with other values.

    Raises:
        ValueError: a value is not allowed, or there is no option of such a name.
    """
    for one in values:
        if one not in (names := declared(type(group))):
            raise ValueError(f"there is no option `{name}.{one}`{close_to(one, names)}")
    try:
        return replace(group, **values)
    except ValueError as error:
        raise ValueError(str(error).replace("`", f"`{name}.", 1)) from None


def _group(name: str, given: Group | Mapping[str, object] | UnsetType, family: Group) -> Group:
    if isinstance(given, UnsetType):
        return family
    return _changed(name, family, given) if isinstance(given, Mapping) else given
