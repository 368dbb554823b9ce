"""Segment of a payload, independent of its layout on the wire."""

from dataclasses import dataclass
from typing import Final

HASH_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Segment:
    """Segment with a part of a payload, or with parity data for it (LIP 243)."""

    original_payload_hash: bytes
    """Keccak-256 hash of the whole payload."""
    original_payload_length: int | None
    """Length of the whole payload (bytes). LIP 243 v0.1 has no field for the length."""
    index: int
    """Index of the segment from 0, counted separately for data segments and parity segments."""
    data_segment_count: int
    parity_segment_count: int
    is_parity: bool
    payload: bytes


def payload_hash(payload: bytes) -> bytes:
    """Return the Keccak-256 hash that every segment of `payload` contains."""
    from Crypto.Hash import keccak  # loaded with the first segment: it loads a parser of C

    return keccak.new(digest_bits=8 * HASH_BYTES, data=payload).digest()
