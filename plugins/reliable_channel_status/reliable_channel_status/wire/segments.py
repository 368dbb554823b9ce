"""Segmentation of status-go: the layout from which LIP 243 v0.1 grew, without its `is_parity`.

Only payloads above three quarters of a message are split. Parity (from 8 segments on, one eighth,
Reed-Solomon of klauspost) is neither sent nor used, because a lost segment is in Store.
"""

from typing import Final

from reliable_channel.segmentation import Segment

from . import status_pb2
from .codec import parsed

HASH_BYTES: Final = 32


class StatusSegmentation:
    """Segment layout for `reliable_channel.segmentation`."""

    name: Final = "status-go"
    min_segment_size_bytes: Final = 1

    def chunk_size_bytes(self, segment_size_bytes: int) -> int:
        """Return how much of a payload one segment carries. The segment size limits only the
        payload."""
        return segment_size_bytes

    def max_segments(self, max_total_segments: int) -> int:
        """Return how many segments the limit allows: the limit itself."""
        return max_total_segments

    def encode(self, segment: Segment) -> bytes:
        return status_pb2.SegmentMessage(
            entire_message_hash=segment.original_payload_hash,
            index=segment.index,
            segments_count=segment.data_segment_count,
            payload=segment.payload,
        ).SerializeToString()

    def decode(self, data: bytes) -> Segment | None:
        """Read a segment, or return None for other data, such as a whole payload.

        A bare `ApplicationMetadataMessage` resembles a segment. The wire types of its fields
        differ, and the length of its signature, which is at the place of a segment's hash.
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
