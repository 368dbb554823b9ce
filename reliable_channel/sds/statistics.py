"""Counters and progress of the SDS core of a channel."""

from dataclasses import dataclass


@dataclass(slots=True)
class SdsCounters:
    """Counters of a participant since its start."""

    sent: int = 0
    delivered: int = 0
    duplicates: int = 0
    """Number of received messages that had arrived before."""
    own_echoes: int = 0
    """Number of own messages that the transport returned to their sender."""
    rejected: int = 0
    acknowledged: int = 0
    delivery_failed: int = 0
    retries: int = 0
    lost: int = 0
    references_dropped: int = 0
    """Number of dropped references to unknown messages."""
    syncs_sent: int = 0
    syncs_received: int = 0
    ephemeral_sent: int = 0
    ephemeral_received: int = 0
    repairs_requested: int = 0
    repairs_sent: int = 0


@dataclass(frozen=True, slots=True)
class SdsStatistics:
    """Snapshot of the counters, and of the sizes of the buffers."""

    counters: SdsCounters
    lamport_timestamp: int
    log_length: int
    log_evicted: int
    outgoing: int
    """Number of own messages without an acknowledgement."""
    incoming: int
    """Number of messages that wait for other messages."""
    missing: int
    """Number of messages that are known only by reference."""
    lost_entries: int
    repair_requests: int
    repair_responses: int
    repair_cache_bytes: int
    bloom_filter_messages: int
    bloom_filter_rollovers: int
    participants: int
    """Number of other senders that were heard."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Completeness of a participant's log, compared with the known messages."""

    received: int
    """Number of delivered messages of other participants."""
    missing: int
    """Number of messages known only by reference, and of messages that wait for them."""
    lost: int
    """Number of messages that were declared lost and have not arrived since."""
    different_from: tuple[str, ...] = ()
    """Participants whose logs permanently differ from the own log."""
    repair_failed: bool = False
    """True if no participant was able to repair the difference between logs."""
