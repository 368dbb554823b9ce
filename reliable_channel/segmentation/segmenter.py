"""Splitting of a payload into segments (LIP 243, Sending)."""

from typing import Final

from .layouts import SegmentLayout
from .segment import Segment, payload_hash

DEFAULT_SEGMENT_SIZE_BYTES: Final = 102_400
"""Segment size of nim-segmentation (bytes). The size leaves room for SDS and encryption within the
150 KiB of a Waku message."""
DEFAULT_MAX_TOTAL_SEGMENTS: Final = 256
"""Maximum number of segments in LIP 243, equal for all participants."""
LARGEST_MAX_TOTAL_SEGMENTS: Final = 65_536


class PayloadTooLarge(ValueError):
    """The payload needs more segments than the options allow."""

    def __init__(
        self, size_bytes: int, *, segments: int, max_segments: int, max_bytes: int
    ) -> None:
        super().__init__(
            f"a payload of {size_bytes} bytes needs {segments} segments and {max_segments} are "
            f"allowed, which is {max_bytes} bytes; raise max_total_segments, for all participants"
        )
        self.size_bytes = size_bytes
        self.max_payload_bytes = max_bytes


class Segmenter:
    """Splitter of payloads into segments of one layout, without state.

    `segment_size_bytes` limits the encoded segment or its payload, as the layout defines.

    Raises:
        ValueError: a value outside what its option allows.
    """

    def __init__(
        self,
        layout: SegmentLayout,
        *,
        segment_size_bytes: int = DEFAULT_SEGMENT_SIZE_BYTES,
        max_total_segments: int = DEFAULT_MAX_TOTAL_SEGMENTS,
    ) -> None:
        if segment_size_bytes < layout.min_segment_size_bytes:
            raise ValueError(
                f"`segment_size_bytes` is {segment_size_bytes}; layout {layout.name} needs at "
                f"least {layout.min_segment_size_bytes}"
            )
        max_segments = layout.max_segments(max_total_segments)
        if max_segments < 1 or max_total_segments > LARGEST_MAX_TOTAL_SEGMENTS:
            least = max_total_segments - max_segments + 1
            raise ValueError(
                f"`max_total_segments` is {max_total_segments}; layout {layout.name} allows "
                f"{least} to {LARGEST_MAX_TOTAL_SEGMENTS}"
            )
        self.layout = layout
        self.chunk_size_bytes = layout.chunk_size_bytes(segment_size_bytes)
        """How much of a payload one segment carries."""
        self.max_payload_bytes = max_segments * self.chunk_size_bytes
        """The largest payload that `split` takes."""
        self._max_segments = max_segments

    def count(self, size_bytes: int) -> int:
        """Return how many segments a payload of `size_bytes` needs, at least one."""
        return max(1, -(-size_bytes // self.chunk_size_bytes))

    def split(self, payload: bytes) -> list[bytes]:
        """Return the encoded segments of `payload` in order, one for each message.

        Raises:
            PayloadTooLarge: more segments would be needed than are allowed.
        """
        count = self.count(len(payload))
        if count > self._max_segments:
            raise PayloadTooLarge(
                len(payload),
                segments=count,
                max_segments=self._max_segments,
                max_bytes=self.max_payload_bytes,
            )
        digest = payload_hash(payload)
        size = self.chunk_size_bytes
        return [
            self.layout.encode(
                Segment(
                    original_payload_hash=digest,
                    original_payload_length=len(payload),
                    index=index,
                    data_segment_count=count,
                    # Repair is SDS's work: parity of our own would be sent twice as often as needed
                    # (LIP 243 v0.2 advises none with SDS).
                    parity_segment_count=0,
                    is_parity=False,
                    payload=payload[index * size : (index + 1) * size],
                )
            )
            for index in range(count)
        ]
