"""Segmentation of status-go, which resembles LIP 243 v0.1 but has no field `is_parity`.

Only payloads larger than three quarters of a message are split. Parity segments of status-go are
neither sent nor used, because Store returns a lost segment.
"""

from typing import Final

from reliable_channel.segmentation import Segment

from . import status_pb2
from .codec import parsed

HASH_BYTES: Final = 32


class StatusSegmentation:
    """Segment layout of status-go for `reliable_channel.segmentation`."""

    name: Final = "status-go"
    min_segment_size_bytes: Final = 1

    def chunk_size_bytes(self, segment_size_bytes: int) -> int:
        """Return the number of payload bytes in each segment. The segment size limits only the
        payload, not the fields around it."""
        return segment_size_bytes

    def max_segments(self, max_total_segments: int) -> int:
        """Return the maximum number of segments, which is the given limit."""
        return max_total_segments

    def encode(self, segment: Segment) -> bytes:
        return status_pb2.SegmentMessage(
            entire_message_hash=segment.original_payload_hash,
            index=segment.index,
            segments_count=segment.data_segment_count,
            payload=segment.payload,
        ).SerializeToString()

    def decode(self, data: bytes) -> Segment | None:
        """Return the segment in the data, or None for other data, such as a whole payload.

        A bare `ApplicationMetadataMessage` resembles an encoded segment. Wire types, and the length
        of the signature in place of a hash, tell both apart.
        """
        raw = status_pb2.SegmentMessage()
        if not parsed(raw, data) or len(raw.entire_message_hash) != HASH_BYTES:
            return None
        is_parity = not raw.segments_count and raw.parity_segments_count > 0
        if not is_parity and raw.segments_count < 2:
            return None
        return Segment(
            raw.entire_message_hash,
            None,
            raw.parity_segment_index if is_parity else raw.index,
            raw.segments_count,
            raw.parity_segments_count,
            is_parity,
            raw.payload,
        )


STATUS_SEGMENTATION: Final = StatusSegmentation()
