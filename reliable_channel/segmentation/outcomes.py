"""Results of processing a received segment."""

from dataclasses import dataclass
from enum import Enum


class SetDropReason(Enum):
    """Reason why the kept segments of a payload are dropped. The names of the reasons are those of
    nim-segmentation."""

    EXPIRED = "expired"
    """No further segment of the payload arrived in time."""
    EVICTED = "evicted"
    """A limit was reached, and the segments of this payload were the first to be evicted."""
    HASH_MISMATCH = "hash_mismatch"
    """The payload that the segments form has another hash than the segments say."""
    MALFORMED = "malformed"
    """The payload that the segments form has another length than the segments say."""


class DiscardReason(Enum):
    """Reason why a segment was not kept. The names of the reasons are those of nim-segmentation, if
    it has the reason."""

    UNDECODABLE = "undecodable"
    """The data is no segment, or is a segment in an unknown layout."""
    INVALID = "invalid"
    """Fields of the segment contradict each other, or exceed the maximum number of segments."""
    OVERSIZED = "oversized"
    """The segment, or the payload that it announces, is larger than the limits allow."""
    COUNT_MISMATCH = "count_mismatch"
    """Earlier segments of the same payload have other counts."""
    PARITY_IGNORED = "parity_ignored"
    """The segment is a valid parity segment, which is useless because SDS repairs missing
    segments."""


@dataclass(frozen=True, slots=True)
class SegmentProgress:
    """A segment of a longer payload arrived. The event is also emitted for the last segment of a
    payload."""

    payload_hash: bytes
    sender_id: str
    chunks: int
    """Number of segments of the payload that have arrived."""
    total_chunks: int
    """Number of segments that the payload needs."""


@dataclass(frozen=True, slots=True)
class PayloadReassembled:
    """A payload is complete, and its hash is correct."""

    payload: bytes
    payload_hash: bytes
    sender_id: str
    tokens: tuple[object, ...] = ()
    """Tokens that the caller passed with the segments of the payload."""


@dataclass(frozen=True, slots=True)
class SegmentSetDropped:
    """The kept segments of a payload were dropped. The payload is lost unless it is sent again."""

    payload_hash: bytes
    sender_id: str
    reason: SetDropReason
    chunks: int
    """Number of segments of the payload that had arrived."""
    total_chunks: int
    tokens: tuple[object, ...] = ()
    """Tokens that the caller passed with the segments of the payload."""


@dataclass(frozen=True, slots=True)
class SegmentRefused:
    """A segment was refused without any effect."""

    sender_id: str
    reason: DiscardReason
    detail: str


SegmentOutcome = SegmentProgress | PayloadReassembled | SegmentSetDropped | SegmentRefused
