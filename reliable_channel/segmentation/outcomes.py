"""Results of a received segment."""

from dataclasses import dataclass
from enum import Enum


class SetDropReason(Enum):
    """Reason why kept segments are dropped. The names are those of nim-segmentation."""

    EXPIRED = "expired"
    """No further segment arrived in time."""
    EVICTED = "evicted"
    """A limit was reached, and this set was the first to be evicted."""
    HASH_MISMATCH = "hash_mismatch"
    """The payload of all segments has another hash."""
    MALFORMED = "malformed"
    """The payload of all segments has another length."""


class DiscardReason(Enum):
    """Reason why a segment was not kept. The names are those of nim-segmentation if it has them."""

    UNDECODABLE = "undecodable"
    """The data is no segment, or has an unknown layout."""
    INVALID = "invalid"
    """Fields of the segment contradict each other or the limit of segments."""
    OVERSIZED = "oversized"
    """The segment, or the payload that it announces, is larger than the limits allow."""
    COUNT_MISMATCH = "count_mismatch"
    """Earlier segments of the same payload have other counts."""
    PARITY_IGNORED = "parity_ignored"
    """The segment is a valid parity segment, which is useless because SDS repairs missing
    segments."""


@dataclass(frozen=True, slots=True)
class SegmentProgress:
    """A segment of a longer payload arrived. Also emitted for the last one."""

    payload_hash: bytes
    sender_id: str
    chunks: int
    """Segments of the payload that have arrived."""
    total_chunks: int
    """Segments that the payload needs."""


@dataclass(frozen=True, slots=True)
class PayloadReassembled:
    """A payload is complete, and its hash is correct."""

    payload: bytes
    payload_hash: bytes
    sender_id: str
    tokens: tuple[object, ...] = ()
    """Tokens that the caller passed with its segments."""


@dataclass(frozen=True, slots=True)
class SegmentSetDropped:
    """Kept segments were dropped. Their payload is lost unless it is sent again."""

    payload_hash: bytes
    sender_id: str
    reason: SetDropReason
    chunks: int
    """Segments of the payload that had arrived."""
    total_chunks: int
    tokens: tuple[object, ...] = ()
    """Tokens that the caller passed with its segments."""


@dataclass(frozen=True, slots=True)
class SegmentRefused:
    """A segment was refused without any effect."""

    sender_id: str
    reason: DiscardReason
    detail: str


SegmentOutcome = SegmentProgress | PayloadReassembled | SegmentSetDropped | SegmentRefused
