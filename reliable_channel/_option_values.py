"""The names and types of a channel's options, for type checkers, and the presets.

The options themselves, with defaults, bounds and texts, are declared in `options.py`; a test holds
the names and types here to them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypedDict, get_args

from ._contracts.repair_policies import RepairPolicy
from .sds.ids import IdFunction
from .sds.options import SyncScheduleName
from .sds.outgoing import RetryPolicy
from .sds.profile import WireProfile

RetrievalStrategy = str | RepairPolicy
RetryPolicyName = str | RetryPolicy
IdFunctionName = str | IdFunction | None
WireProfileName = str | WireProfile
EncryptionOrder = Literal["profile", "sds-then-encrypt", "encrypt-then-sds"]
ENCRYPTION_ORDERS: Final = get_args(EncryptionOrder)[1:]
"""What a profile may have."""
HistoryName = Literal["all", "since", "none"]
Service = Literal["auto", "relay", "light"]
StateFailure = Literal["raise", "accept"]
SegmentationName = Literal["profile", "none", "nim-segmentation", "lip-243-v0.1"]
PresetName = Literal["documented", "small-group", "large-group", "no-store", "lan", "auto"]


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
    self_tuning: bool
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
    rate_limit_file: str | Path | None
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
        "bloom_capacity": 500,
        "repair_t_min_ms": 2_000,
        "repair_t_max_ms": 20_000,
        "retry_interval_ms": 15_000,
        "possibly_acknowledged_retry_interval_ms": 30_000,
        "sync_min_interval_ms": 10_000,
    },
    "large-group": {
        "causal_history_size": 50,
        "bloom_capacity": 1_000,
        "repair_t_min_ms": 1_000,
        "repair_t_max_ms": 60_000,
        "retry_interval_ms": 60_000,
        "possibly_acknowledged_retry_interval_ms": 120_000,
        "sync_min_interval_ms": 60_000,
    },
    "no-store": {
        "retrieval_strategy": "sds-r-only",
        "causal_history_size": 50,
        "bloom_capacity": 500,
        "repair_t_min_ms": 2_000,
        "repair_t_max_ms": 20_000,
        "retry_interval_ms": 15_000,
        "possibly_acknowledged_retry_interval_ms": 30_000,
        "sync_min_interval_ms": 10_000,
    },
    "lan": {
        "retrieval_strategy": "sds-r-only",
        "causal_history_size": 20,
        "bloom_capacity": 500,
        "repair_t_min_ms": 2_000,
        "repair_t_max_ms": 20_000,
        "retry_interval_ms": 15_000,
        "possibly_acknowledged_retry_interval_ms": 30_000,
        "sync_min_interval_ms": 5_000,
    },
    "auto": {
        "self_tuning": True,
        "retrieval_strategy": "prompt",
        "retrieve_frequency_ms": 300,
        "max_requests_per_message": 20,
        "max_request_attempts": 12,
        "repair_requester_answers_per_minute": 60,
    },
}
"""Options that go together, by the kind of group they are for; figures are in docs/choosing.md."""
