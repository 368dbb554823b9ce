"""The options of a channel: keyword arguments of `ReliableChannel`, flags, and settings of a file.

Each option is declared once: those of the core in `sds/options.py`, the others here. Names and
defaults follow js-waku's Reliable Channel API if it defines them. Four options are groups: `bloom`,
`limits`, `rate_limit` and `repair`. In texts, an option of a group has a flat name:
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
"""Maximum size of the field `meta` of a Waku message (14/WAKU2-MESSAGE)."""
SEGMENT_SIZE_BYTES: Final = 102_400
"""Default segment size without a named network: two thirds of a Waku message."""

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
    """Options of a channel. Every value is checked at construction.

    `UNSET` stands for the default of the `wire_profile` or `network`. `resolved` fills in the
    values.

    Raises:
        ValueError: a value is not allowed.
    """

    sync_min_interval_ms: Annotated[int | UnsetType, _OF_CORE] = UNSET
    retry_interval_ms: Annotated[int, _OF_CORE] = 30_000
    possibly_acknowledged_retry_interval_ms: Annotated[int, _OF_CORE] = 60_000
    max_retry_attempts: Annotated[int, _OF_CORE] = 10
    retrieve_frequency_ms: Annotated[
        int, Bound(1), Doc("Polling interval for missing messages at the Store node.")
    ] = 10_000
    retrieval_strategy: Annotated[
        RetrievalStrategy,
        _named(REPAIR_POLICIES, "a policy"),
        Doc("""Sources of missing messages: `store-only`, `sds-r-only` (other participants), `both`
        or `none`. `adaptive` is `both` with fewer queries of the kinds that recently failed.
        `prompt` queries Store at once and asks participants if Store fails. Also the name of a
        plugin's policy, or a `reliable_channel.spi.RepairPolicy`."""),
    ] = "both"
    history: Annotated[
        HistoryName,
        Doc("""Earlier messages that a joining participant fetches from Store: `all`, `since` (from
        `history_since_ms` on) or `none`. Messages before that point are ignored."""),
    ] = "all"
    history_since_ms: Annotated[
        int,
        Bound(0),
        Doc("""Start of the history for `history="since"` (ms since 1970)."""),
    ] = 0
    query_on_connect: Annotated[
        bool, Doc("Query Store for missed messages after each connection to a node.")
    ] = True
    query_on_connect_window_ms: Annotated[
        int, Bound(1), Doc("Time span of the first query of `query_on_connect`.")
    ] = 30 * DAY_MS
    redundancy: Annotated[
        int,
        Bound(1),
        Unit("nodes"),
        Doc("""Nodes that publish each message at once. The topic is `sufficiently_healthy` if as
        many nodes deliver its messages."""),
    ] = 2
    confirm_interval_ms: Annotated[
        int,
        Bound(0),
        Doc("""Polling interval for own messages and missed messages at the Store node (0: never).
        An unacknowledged message is sent again if two queries do not find it."""),
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
        Doc("""Repair by other participants, SDS-R (`RepairOptions`), or a mapping of some of its
        options. The other options keep the values of preset and wire profile."""),
    ] = UNSET
    self_tuning: Annotated[bool, _OF_CORE] = False
    max_lamport_ahead_ms: Annotated[int | UnsetType, _OF_CORE] = UNSET
    max_message_bytes: Annotated[int | UnsetType, Bound(512, 1024 * 1024), _OF_CORE] = UNSET
    limits: Annotated[Limits, Doc("Limits of buffers and payloads (`Limits`).")] = Limits()
    on_state_failure: Annotated[
        StateFailure,
        Doc("""Reaction of `send` while the state cannot be written, as on a full disk. `raise`
        raises `StateUnavailable` and sends nothing. `accept` accepts the message in memory, where
        it is lost if the process ends first."""),
    ] = "raise"
    wire_profile: Annotated[
        WireProfileName,
        _named(PROFILES, "a WireProfile", WireProfile),
        Doc("""Dialect of sent messages: `spec` for js-waku, `nim` for nim-sds (status-go,
        logos-delivery), or a plugin's. A channel reads `spec` and `nim` in any case. `nim` sets
        `causal_history_size=10`, `repair.t_max_ms=300_000`, `max_lamport_ahead_ms` to 365 days and
        `sync_min_interval_ms=0`."""),
    ] = "spec"
    segmentation: Annotated[
        SegmentationName,
        Doc("""Layout of segments: `none`, a layout for every payload, or `profile` for that of the
        wire profile. `spec` uses no segments. `nim` wraps every payload until another participant
        sends another form, and then uses that form. A payload longer than a Waku message needs
        segments at all participants."""),
    ] = "profile"
    encryption_order: Annotated[
        EncryptionOrder,
        Doc("""Encrypted part: whole SDS messages (`sds-then-encrypt`), only contents
        (`encrypt-then-sds`), or `profile` for that of the wire profile (whole messages). Must be
        equal for all participants."""),
    ] = "profile"
    segment_size_bytes: Annotated[
        int | UnsetType,
        Bound(1),
        Doc("""Maximum size of an encoded segment. Default: two thirds of a Waku message of the
        `network`."""),
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
        Doc("""Schedule of retries: `fixed` uses the intervals of the options, `doubling` doubles
        them each time, up to an hour. Also the name of a plugin's policy, or a
        `reliable_channel.spi.RetryPolicy`."""),
    ] = "fixed"
    id_function: Annotated[
        IdFunctionName,
        _named(("lip-173", "js-waku"), "a function"),
        Doc("""Function for message ids, instead of the wire profile's: `lip-173`, `js-waku`, a
        plugin's, or a function of sender, nanoseconds and content. Receivers notice forged ids only
        with `lip-173`."""),
    ] = None
    content_topic: Annotated[
        str | None,
        Doc("Content topic of the channel on Waku. Default: derived from the channel id."),
    ] = None
    pubsub_topic: Annotated[
        str | None,
        Doc("Static shard of the channel. Default: autosharding by `cluster_id` and `num_shards`."),
    ] = None
    cluster_id: Annotated[int, Bound(0, 65_535), Doc("Cluster of the Waku network.")] = 1
    num_shards: Annotated[int, Bound(1, 65_536), Doc("Number of shards of the cluster.")] = 8
    network: Annotated[
        str | None,
        Doc("""Named network, such as `status.prod`, or a TOML file (docs/light-client.md). It sets
        cluster and shards, and the service peers if no `node` is given."""),
    ] = None
    ca_file: Annotated[
        str | Path | None,
        Doc("""PEM file with the trusted certificates for `wss` peers and `https` nodes, instead of
        the system's."""),
    ] = None
    service: Annotated[
        Service,
        Doc("""Services of the Waku node: `relay`, `light` (light push and filter), or `auto` (relay
        if the node offers it)."""),
    ] = "auto"
    store_peer: Annotated[
        str | None,
        Doc("""Multiaddress of the Store node that the Waku node queries. nwaku finds one without
        it."""),
    ] = None
    wait_for_node: Annotated[
        bool,
        Doc("""Open the channel even if no node answers. The channel accepts messages, emits
        `transport_degraded` and `node_health_changed`, and starts when a node answers. Otherwise
        opening raises `ChannelUnavailable`."""),
    ] = False
    require_signatures: Annotated[
        bool,
        Doc("""Reject messages without a valid signature of their sender (`message_rejected`). Needs
        `signing`."""),
    ] = False
    marker: Annotated[
        bytes | None,
        Fits(f"bytes, at most {MAX_MARKER_BYTES}", _is_marker),
        Doc("""Bytes in the field `meta` of each Waku message. Default: `b"RELIABLE-CHANNEL-API/1"`
        with `nim`, no marker with `spec`. `b""` switches the marker off."""),
    ] = None
    marker_required: Annotated[bool, Doc("Ignore messages without the `marker`.")] = True
    drop_incoming: Annotated[
        float | None, SHARE, Doc("Share of live messages to drop, for tests of reliability.")
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
        """Return the options of a preset. Given options override the preset.

        Raises:
            ValueError: there is no such preset, or a value is not allowed.
        """
        if preset not in PRESETS:
            *others, last = map(repr, PRESETS)
            raise ValueError(f"`preset` must be {', '.join(others)} or {last} (got {preset!r})")
        return cls(**PRESETS[preset]).changed(**values)

    def changed(self, **values: Unpack[OptionValues]) -> Self:
        """Return a copy with other values. A mapping changes single options of a group.

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
        """Return a copy in which the defaults of wire profile and network replace `UNSET`."""
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
        """Return a copy for a network with this limit of an encoded Waku message.

        Given options stay. A KiB counts as 1,000 bytes, because stock nodes drop messages between
        150,000 bytes and 150 KiB (docs/interop.md).
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
        """Dialect of sent messages.

        Raises:
            ValueError: it is the name of one that a plugin knows; a channel looks it up.
        """
        given = self.wire_profile
        return given if isinstance(given, WireProfile) else wire_profile_of(given)

    @property
    def segment_layout(self) -> str | NamedLayout | None:
        """Layout of the segments of payloads, its name, or None."""
        if self.segmentation == "profile":
            return self.profile.segmentation
        return None if self.segmentation == "none" else self.segmentation

    @property
    def follows_segment_form(self) -> bool:
        """True if payloads are sent in the form that the channel received last."""
        return self.segmentation == "profile"

    @property
    def encrypts_contents_alone(self) -> bool:
        """True if the given encryption is inside SDS."""
        if self.encryption_order == "profile":
            return self.profile.encryption_order == "encrypt-then-sds"
        return self.encryption_order == "encrypt-then-sds"

    @property
    def proves_copies(self) -> bool:
        """True if ids are those of LIP 173, which show which copy of a message arrived."""
        given = self.id_function
        function = self.profile.id_function if given is None else given
        return function in ("lip-173", reliable_channel_id)

    @property
    def asks_store(self) -> bool:
        """True if the channel queries Store."""
        return self.retrieval_strategy not in WITHOUT_STORE

    @property
    def asks_others(self) -> bool:
        """True if the channel sends and answers repair requests (SDS-R)."""
        return self.retrieval_strategy not in WITHOUT_OTHERS

    def without_store(self) -> Self:
        """Return a copy for a network without a Store, where only other participants repair."""
        if self.retrieval_strategy not in REPAIR_POLICIES:
            return self  # because its input shows that no Store exists
        return replace(self, retrieval_strategy="sds-r-only" if self.asks_others else "none")

    def sds_options(self) -> SdsOptions:
        """Return the options of the core."""
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
"""Options that are groups of options."""


def close_to(name: str, names: Iterable[str]) -> str:
    """Return advice for a misspelt name (empty if no name is close)."""
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
