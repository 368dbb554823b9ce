"""Layouts of a segment on the wire. Only this module knows the field numbers of the layouts.

LIP 243 was published with four layouts, all with the hash in field 1. A field with an unexpected
wire type shows that the bytes have another layout. The payload is field 7 in nim-segmentation, 6 in
its early form, 4 in v0.1, and 5 in v0.2. In the other three layouts, each of these fields is a
number. Without a payload, nim-segmentation is recognised by field 4, which v0.1 leaves out. In the
early form and in v0.2, a segment without a payload is not read. A segment without a payload looks
the same in these layouts and in nim-segmentation or v0.1.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from .segment import HASH_BYTES, Segment
from .segmentation_pb2 import (
    EarlySegmentMessage,
    SegmentMessage,
    SegmentMessageProto,
    SegmentMessageV02,
)

if TYPE_CHECKING:
    from google.protobuf.message import Message

LAST_FIELD_NUMBER: Final = 7
"""Highest field number in all layouts. Later versions may add fields with higher numbers, which are
ignored."""
HEADER_BYTES: Final = 128
"""Number of bytes that nim-segmentation reserves for all fields besides the payload. The fields
besides the payload need at most 71 bytes."""
CHUNK_ALIGNMENT_BYTES: Final = 64
"""Alignment of Reed-Solomon chunks in nim-segmentation (bytes), which applies even without
parity."""


@runtime_checkable
class SegmentLayout(Protocol):
    """Layout of the segments of a payload on the wire."""

    @property
    def name(self) -> str:
        """Name of the layout in options and texts."""

    @property
    def min_segment_size_bytes(self) -> int:
        """Smallest segment size (bytes) that leaves room for a payload."""

    def chunk_size_bytes(self, segment_size_bytes: int) -> int:
        """Return the number of payload bytes that one segment carries."""

    def max_segments(self, max_total_segments: int) -> int:
        """Return the number of segments that the limit allows."""

    def encode(self, segment: Segment) -> bytes:
        """Encode one segment in this layout."""

    def decode(self, data: bytes) -> Segment | None:
        """Decode one segment, or return None if `data` has another layout."""


class _BoundedSegments:
    """A layout whose segment size bounds the encoded segment."""

    min_segment_size_bytes: int = HEADER_BYTES + CHUNK_ALIGNMENT_BYTES

    def chunk_size_bytes(self, segment_size_bytes: int) -> int:
        """Return how much of a payload one segment carries: its size bounds the encoded segment."""
        available = segment_size_bytes - HEADER_BYTES
        return available - available % CHUNK_ALIGNMENT_BYTES

    def max_segments(self, max_total_segments: int) -> int:
        """Return how many segments that limit allows: as many."""
        return max_total_segments


class NimSegmentation(_BoundedSegments):
    """Layout of `logos-messaging/nim-segmentation`, used by logos-delivery."""

    name: str = "nim-segmentation"

    def encode(self, segment: Segment) -> bytes:
        """Encode one segment in this layout. The field `parity_segment_count` is left out if it is
        0.

        Raises:
            ValueError: the length of the payload is not set.
        """
        if segment.original_payload_length is None:
            raise ValueError(f"layout {self.name} needs the length of the payload in each segment")
        return SegmentMessage(
            original_payload_hash=segment.original_payload_hash,
            original_payload_length=segment.original_payload_length,
            index=segment.index,
            data_segment_count=segment.data_segment_count,
            parity_segment_count=segment.parity_segment_count or None,
            is_parity=segment.is_parity,
            segment_payload=segment.payload,
        ).SerializeToString()

    def decode(self, data: bytes) -> Segment | None:
        """Decode one segment, or return None if `data` has another layout."""
        raw = SegmentMessage()
        if not _parse(raw, data) or not raw.data_segment_count:
            return None
        if len(raw.original_payload_hash) != HASH_BYTES:
            return None
        return Segment(
            raw.original_payload_hash,
            raw.original_payload_length,
            raw.index,
            raw.data_segment_count,
            raw.parity_segment_count,
            raw.is_parity,
            raw.segment_payload,
        )


class Lip243V01:
    """Layout of LIP 243 v0.1. The layout has no field for the length of the payload."""

    name: str = "lip-243-v0.1"
    min_segment_size_bytes: int = 1

    def chunk_size_bytes(self, segment_size_bytes: int) -> int:
        """Return the number of payload bytes that one segment carries. In this layout, the segment
        size limits only the payload."""
        return segment_size_bytes

    def max_segments(self, max_total_segments: int) -> int:
        """Return the number of segments that the limit allows ("data + parity MUST be less")."""
        return max_total_segments - 1

    def encode(self, segment: Segment) -> bytes:
        """Encode one segment in this layout."""
        return SegmentMessageProto(
            entire_message_hash=segment.original_payload_hash,
            data_segment_index=0 if segment.is_parity else segment.index,
            data_segment_count=segment.data_segment_count,
            payload=segment.payload,
            parity_segment_index=segment.index if segment.is_parity else 0,
            parity_segment_count=segment.parity_segment_count,
            is_parity=segment.is_parity,
        ).SerializeToString()

    def decode(self, data: bytes) -> Segment | None:
        """Decode one segment, or return None if `data` has another layout."""
        raw = SegmentMessageProto()
        if not _parse(raw, data) or not raw.data_segment_count:
            return None
        if len(raw.entire_message_hash) != HASH_BYTES:
            return None
        return Segment(
            raw.entire_message_hash,
            None,
            raw.parity_segment_index if raw.is_parity else raw.data_segment_index,
            raw.data_segment_count,
            raw.parity_segment_count,
            raw.is_parity,
            raw.payload,
        )


class OneCount(_BoundedSegments):
    """Layout with one count, which is the number of data segments or of parity segments."""

    def __init__(
        self, name: str, message: type[EarlySegmentMessage] | type[SegmentMessageV02]
    ) -> None:
        self.name: Final = name
        self._message: Final = message

    def encode(self, segment: Segment) -> bytes:
        """Encode one segment in this layout.

        Raises:
            ValueError: the length of the payload is not set.
        """
        if segment.original_payload_length is None:
            raise ValueError(f"layout {self.name} needs the length of the payload in each segment")
        return self._message(
            original_payload_hash=segment.original_payload_hash,
            original_payload_length=segment.original_payload_length,
            index=segment.index,
            segment_count=segment.parity_segment_count
            if segment.is_parity
            else segment.data_segment_count,
            is_parity=segment.is_parity,
            segment_payload=segment.payload,
        ).SerializeToString()

    def decode(self, data: bytes) -> Segment | None:
        """Decode one segment, or return None if `data` has another layout.

        Only few peers write segments in these layouts. If the fields of a segment contradict each
        other, the data is treated as a bare payload. In the other layouts, the reassembler checks
        the fields.
        """
        raw = self._message()
        if not _parse(raw, data) or len(raw.original_payload_hash) != HASH_BYTES:
            return None
        count, size = raw.segment_count, len(raw.segment_payload)
        if raw.index >= count or not size:
            return None
        # The others have a byte or more each; a parity segment may be longer than the payload.
        if size + count - 1 > raw.original_payload_length and not raw.is_parity:
            return None
        return Segment(
            raw.original_payload_hash,
            raw.original_payload_length,
            raw.index,
            0 if raw.is_parity else count,
            count if raw.is_parity else 0,
            raw.is_parity,
            raw.segment_payload,
        )


NIM_SEGMENTATION: Final = NimSegmentation()
LIP_243_V01: Final = Lip243V01()
LIP_243_V02: Final = OneCount("lip-243-v0.2", SegmentMessageV02)
EARLY_NIM_SEGMENTATION: Final = OneCount("early-nim-segmentation", EarlySegmentMessage)
LAYOUTS: Final[tuple[SegmentLayout, ...]] = (
    NIM_SEGMENTATION,
    LIP_243_V01,
    LIP_243_V02,
    EARLY_NIM_SEGMENTATION,
)


def recognised(
    data: bytes, layouts: Sequence[SegmentLayout] = LAYOUTS
) -> tuple[Segment, SegmentLayout] | None:
    """Decode a segment in any layout, or return None if no layout fits."""
    for layout in layouts:
        if (segment := layout.decode(data)) is not None:
            return segment, layout
    return None


def sniff(data: bytes, layouts: Sequence[SegmentLayout] = LAYOUTS) -> Segment | None:
    """Decode a segment without returning its layout."""
    found = recognised(data, layouts)
    return None if found is None else found[0]


def _parse(raw: "Message", data: bytes) -> bool:
    """Fill `raw`; False if the bytes are no protobuf or of another layout."""
    try:
        raw.ParseFromString(data)
    except DecodeError:
        return False
    # A field of another wire type than the layout's is what protobuf calls unknown.
    unknown = UnknownFieldSet(raw)
    return all(unknown[i].field_number > LAST_FIELD_NUMBER for i in range(len(unknown)))
