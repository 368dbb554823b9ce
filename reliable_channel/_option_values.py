"""The types of a channel's options, the groups of limits, and the presets.

The options are declared in `options.py`. A test compares names and types.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, TypedDict, get_args

from ._contracts.repair_policies import RepairPolicy
from .sds.bloom import BloomParameters
from .sds.declared import Bound, Doc, Unit, UnsetType, check
from .sds.ids import IdFunction
from .sds.options import CoreLimits, RepairOptions
from .sds.outgoing import RetryPolicy
from .sds.profile import WireProfile

RetrievalStrategy = str | RepairPolicy
RetryPolicyName = str | RetryPolicy
IdFunctionName = str | IdFunction | None
WireProfileName = str | WireProfile
EncryptionOrder = Literal["profile", "sds-then-encrypt", "encrypt-then-sds"]
ENCRYPTION_ORDERS: Final = get_args(EncryptionOrder)[1:]
"""Values of a wire profile."""
HistoryName = Literal["all", "since", "none"]
Service = Literal["auto", "relay", "light"]
StateFailure = Literal["raise", "accept"]
SegmentationName = Literal["profile", "none", "nim-segmentation", "lip-243-v0.1"]
PresetName = Literal["documented", "small-group", "large-group", "auto"]


@dataclass(frozen=True, slots=True)
class Limits(CoreLimits):
    """Limits of each buffer and payload. Reaching one is an event or an error, never silence.

    Raises:
        ValueError: a value is not allowed. The text names it and the allowed values.
    """

    payload_bytes: Annotated[
        int, Bound(1), Doc("Maximum size of a payload that is cut into segments.")
    ] = 16 * 1024 * 1024
    events: Annotated[
        int,
        Bound(1),
        Unit("events"),
        Doc("""Maximum number of events in memory for readers of `events()`. A reader further
        behind never stops the channel: it gets messages and reports from the log, and one
        `events_missed` for the rest."""),
    ] = 10_000


@dataclass(frozen=True, slots=True)
class RateLimitOptions:
    """A budget of messages an epoch, as RLN demands of publishers.

    Raises:
        ValueError: a value is not allowed. The text names it and the allowed values.
    """

    enabled: Annotated[bool, Doc("True if the channel keeps to the budget.")] = False
    messages_per_epoch: Annotated[
        int,
        Bound(0),
        Unit("messages per epoch"),
        Doc("Rate of the RLN membership (0 sends nothing)."),
    ] = 100
    epoch_period_s: Annotated[
        int, Bound(1), Doc("Length of an epoch. Must be equal to the network's.")
    ] = 600
    file: Annotated[
        str | Path | None,
        Doc("File that keeps the spent budget across restarts. Not needed with `state`."),
    ] = None

    def __post_init__(self) -> None:
        check(self)


class OptionValues(TypedDict, total=False):
    """The same options as keyword arguments."""

    sync_min_interval_ms: int | UnsetType
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
    causal_history_size: int | UnsetType
    possible_acks_threshold: int
    bloom: BloomParameters | Mapping[str, float] | UnsetType
    repair: RepairOptions | Mapping[str, int] | UnsetType
    self_tuning: bool
    max_lamport_ahead_ms: int | UnsetType
    max_message_bytes: int | UnsetType
    limits: Limits
    on_state_failure: StateFailure
    wire_profile: WireProfileName
    segmentation: SegmentationName
    encryption_order: EncryptionOrder
    segment_size_bytes: int | UnsetType
    segment_reconstruction_timeout_ms: int
    rate_limit: RateLimitOptions
    retry_policy: RetryPolicyName
    id_function: IdFunctionName
    content_topic: str | None
    pubsub_topic: str | None
    cluster_id: int
    num_shards: int
    network: str | None
    ca_file: str | Path | None
    service: Service
    store_peer: str | None
    wait_for_node: bool
    require_signatures: bool
    marker: bytes | None
    marker_required: bool
    drop_incoming: float | None
    seed: int | None


PRESETS: Final[Mapping[PresetName, OptionValues]] = {
    "documented": {},
    "small-group": {
        "causal_history_size": 20,
        "bloom": {"capacity": 500},
        "repair": {"t_min_ms": 2_000, "t_max_ms": 20_000},
        "retry_interval_ms": 15_000,
        "possibly_acknowledged_retry_interval_ms": 30_000,
        "sync_min_interval_ms": 10_000,
    },
    "large-group": {
        "causal_history_size": 50,
        "bloom": {"capacity": 1_000},
        "repair": {"t_min_ms": 1_000, "t_max_ms": 60_000},
        "retry_interval_ms": 60_000,
        "possibly_acknowledged_retry_interval_ms": 120_000,
        "sync_min_interval_ms": 60_000,
    },
    "auto": {
        "self_tuning": True,
        "retrieval_strategy": "prompt",
        "retrieve_frequency_ms": 300,
        "repair": {
            "max_requests_per_message": 20,
            "max_request_attempts": 12,
            "requester_answers_per_minute": 60,
        },
    },
}
"""Options by kind of group. Figures are in docs/choosing.md."""
