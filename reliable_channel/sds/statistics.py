"""Counters and progress of a channel's core."""

from dataclasses import dataclass


@dataclass(slots=True)
class SdsCounters:
    """Counters since the core was made."""

    sent: int = 0
    delivered: int = 0
    duplicates: int = 0
    """Messages that arrived more than once."""
    own_echoes: int = 0
    """Own messages that the transport returned."""
    rejected: int = 0
    acknowledged: int = 0
    delivery_failed: int = 0
    retries: int = 0
    lost: int = 0
    references_dropped: int = 0
    """Evicted references to unknown messages."""
    syncs_sent: int = 0
    syncs_received: int = 0
    ephemeral_sent: int = 0
    ephemeral_received: int = 0
    repairs_requested: int = 0
    repairs_sent: int = 0


@dataclass(frozen=True, slots=True)
class SdsStatistics:
    """Snapshot of the counters, and the sizes of the buffers."""

    counters: SdsCounters
    lamport_timestamp: int
    log_length: int
    log_evicted: int
    outgoing: int
    """Own messages without an acknowledgement."""
    incoming: int
    """Messages that wait for others."""
    missing: int
    """Messages known only by reference."""
    lost_entries: int
    repair_requests: int
    repair_responses: int
    repair_cache_bytes: int
    bloom_filter_messages: int
    bloom_filter_rollovers: int
    participants: int
    """Other senders that were heard."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Completeness of a participant's log, compared with the known messages."""

    received: int
    """Delivered messages of other participants."""
    missing: int
    """Messages known only by reference, and messages that wait for them."""
    lost: int
    """Messages that were declared lost and have not arrived since."""
    different_from: tuple[str, ...] = ()
    """Participants whose logs permanently differ from the own one."""
    repair_failed: bool = False
    """True if no participant could repair the difference."""
