"""Counters and progress of a channel's core."""

from dataclasses import dataclass


@dataclass(slots=True)
class SdsCounters:
    """What happened since the core was made."""

    sent: int = 0
    delivered: int = 0
    duplicates: int = 0
    """Messages that arrived again."""
    own_echoes: int = 0
    """Own messages that the transport gave back."""
    rejected: int = 0
    acknowledged: int = 0
    delivery_failed: int = 0
    retries: int = 0
    lost: int = 0
    references_dropped: int = 0
    """References to unknown messages that made room."""
    syncs_sent: int = 0
    syncs_received: int = 0
    ephemeral_sent: int = 0
    ephemeral_received: int = 0
    repairs_requested: int = 0
    repairs_sent: int = 0


@dataclass(frozen=True, slots=True)
class SdsStatistics:
    """A snapshot: the counters, and how full each buffer is."""

    counters: SdsCounters
    lamport_timestamp: int
    log_length: int
    log_evicted: int
    outgoing: int
    """Own messages without acknowledgement."""
    incoming: int
    """Messages that wait for others."""
    missing: int
    """Messages known by reference alone."""
    lost_entries: int
    repair_requests: int
    repair_responses: int
    repair_cache_bytes: int
    bloom_filter_messages: int
    bloom_filter_rollovers: int
    participants: int
    """Other senders heard."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of what a participant knows of it has."""

    received: int
    """Messages of others that were delivered."""
    missing: int
    """Messages known by reference alone, and those that wait for them."""
    lost: int
    """Messages that were given up and have not come since."""
    different_from: tuple[str, ...] = ()
    """Participants whose logs differ from the own one, and stay so."""
    repair_failed: bool = False
    """True if no participant could repair that."""
