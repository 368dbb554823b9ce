"""The layouts of a segment on the wire: the only place that knows their field numbers.

Four layouts were published under the name of LIP 243, all with the hash in field 1. A field in
another wire type than a layout gives it shows that the bytes are of another layout. The field of
the payload distinguishes all four, as it is a number in the other three: 7 in nim-segmentation, 6
in its early form, 4 in v0.1, 5 in v0.2. Without a payload, field 4 is the count of data segments,
never absent, in nim-segmentation, and absent in v0.1. The early form and v0.2 are not read without
a payload, because an empty one looks and means the same in nim-segmentation or v0.1.
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
"""Of all layouts; fields after it may come with later versions and are ignored."""
HEADER_BYTES: Final = 128
"""What nim-segmentation sets aside for everything but the payload; it needs 71 at most."""
CHUNK_ALIGNMENT_BYTES: Final = 64
"""Of the Reed-Solomon code of nim-segmentation, which aligns without parity too."""


@runtime_checkable
class SegmentLayout(Protocol):
    """How segments are written."""

    @property
    def name(self) -> str:
        """What options and texts call it."""

    @property
    def min_segment_size_bytes(self) -> int:
        """The smallest segment size that leaves room for a payload."""

    def chunk_size_bytes(self, segment_size_bytes: int) -> int:
        """Return how much of a payload one segment carries."""

    def max_segments(self, max_total_segments: int) -> int:
        """Return how many segments that limit allows."""

    def encode(self, segment: Segment) -> bytes:
        """Write one segment."""

    def decode(self, data: bytes) -> Segment | None:
        """Read one segment, or return None if `data` is none of this layout."""


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
    """The layout of `logos-messaging/nim-segmentation`, which logos-delivery speaks."""

    name: str = "nim-segmentation"

    def encode(self, segment: Segment) -> bytes:
        """Write one segment; `parity_segment_count` is left out where there is none.

        Raises:
            ValueError: the length of the payload is not set.
        """
        if segment.original_payload_length is None:
            raise ValueError(f"{self.name} needs the length of the payload")
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
        """Read one segment, or return None if `data` is none of this layout."""
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
    """The layout of LIP 243 v0.1. It carries no length of the payload."""

    name: str = "lip-243-v0.1"
    min_segment_size_bytes: int = 1

    def chunk_size_bytes(self, segment_size_bytes: int) -> int:
        """Return how much of a payload one segment carries: its size bounds the payload alone."""
        return segment_size_bytes

    def max_segments(self, max_total_segments: int) -> int:
        """Return how many segments that limit allows: "data + parity MUST be less"."""
        return max_total_segments - 1

    def encode(self, segment: Segment) -> bytes:
        """Write one segment."""
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
        """Read one segment, or return None if `data` is none of this layout."""
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
    """A layout that counts either data or parity segments: those of the segment's own kind."""

    def __init__(
        self, name: str, message: type[EarlySegmentMessage] | type[SegmentMessageV02]
    ) -> None:
        self.name: Final = name
        self._message: Final = message

    def encode(self, segment: Segment) -> bytes:
        """Write one segment.

        Raises:
            ValueError: the length of the payload is not set.
        """
        if segment.original_payload_length is None:
            raise ValueError(f"{self.name} needs the length of the payload")
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
        """Read one segment, or return None if `data` is none of this layout.

        Few peers write these layouts, so a segment whose fields contradict each other is taken for
        a bare payload. The other layouts leave that check to the reassembler.
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
    """Read a segment in whichever layout it is written; None if it is in none of them."""
    for layout in layouts:
        if (segment := layout.decode(data)) is not None:
            return segment, layout
    return None


def sniff(data: bytes, layouts: Sequence[SegmentLayout] = LAYOUTS) -> Segment | None:
    """Read a segment, and do not say in which layout it is written."""
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
