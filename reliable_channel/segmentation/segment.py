"""One segment of a payload, independent of its layout on the wire."""

from dataclasses import dataclass
from typing import Final

HASH_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Segment:
    """Piece of a payload, or a parity shard of it (LIP 243)."""

    original_payload_hash: bytes
    """Keccak-256 hash of the whole payload."""
    original_payload_length: int | None
    """Length of the payload in bytes. LIP 243 v0.1 does not have it."""
    index: int
    """Index from 0, among the data segments or among the parity segments."""
    data_segment_count: int
    parity_segment_count: int
    is_parity: bool
    payload: bytes


def payload_hash(payload: bytes) -> bytes:
    """Return the Keccak-256 hash in every segment of `payload`."""
    from Crypto.Hash import keccak  # loaded with the first segment: it loads a parser of C

    return keccak.new(digest_bits=8 * HASH_BYTES, data=payload).digest()
