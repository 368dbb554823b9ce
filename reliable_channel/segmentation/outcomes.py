"""What becomes of a received segment."""

from dataclasses import dataclass
from enum import Enum


class SetDropReason(Enum):
    """Why segments that were kept are given up; the names are nim-segmentation's."""

    EXPIRED = "expired"
    """No further segment came in time."""
    EVICTED = "evicted"
    """A limit was reached, and this set was the first to go."""
    HASH_MISMATCH = "hash_mismatch"
    """All segments are here, and what they make is not what the hash says."""
    MALFORMED = "malformed"
    """All segments are here, and what they make has not the length they say."""


class DiscardReason(Enum):
    """Why a segment was not kept; the names are nim-segmentation's where it has them."""

    UNDECODABLE = "undecodable"
    """No segment, or one of a layout that is not known."""
    INVALID = "invalid"
    """Its fields contradict each other or the limit of segments."""
    OVERSIZED = "oversized"
    """It, or the payload it announces, is larger than the limits allow."""
    COUNT_MISMATCH = "count_mismatch"
    """Other segments of the same payload, here already, have other counts."""
    PARITY_IGNORED = "parity_ignored"
    """It is a valid parity segment. SDS repairs what is missing, so it is of no use."""


@dataclass(frozen=True, slots=True)
class SegmentProgress:
    """A segment of a payload of several arrived; emitted for the last one too."""

    payload_hash: bytes
    sender_id: str
    chunks: int
    """Segments held."""
    total_chunks: int
    """Segments needed."""


@dataclass(frozen=True, slots=True)
class PayloadReassembled:
    """A payload is complete, and its hash is right."""

    payload: bytes
    payload_hash: bytes
    sender_id: str
    tokens: tuple[object, ...] = ()
    """What the caller gave along with its segments."""


@dataclass(frozen=True, slots=True)
class SegmentSetDropped:
    """Segments that were kept are gone; their payload is lost unless it is sent again."""

    payload_hash: bytes
    sender_id: str
    reason: SetDropReason
    chunks: int
    """Segments that were held."""
    total_chunks: int
    tokens: tuple[object, ...] = ()
    """What the caller gave along with its segments."""


@dataclass(frozen=True, slots=True)
class SegmentRefused:
    """A segment was refused and left no trace."""

    sender_id: str
    reason: DiscardReason
    detail: str


SegmentOutcome = SegmentProgress | PayloadReassembled | SegmentSetDropped | SegmentRefused
