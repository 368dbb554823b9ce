"""Segments of payloads of any size, one message each, without a clock, I/O or event loop."""

from .layouts import (
    EARLY_NIM_SEGMENTATION,
    LAYOUTS,
    LIP_243_V01,
    LIP_243_V02,
    NIM_SEGMENTATION,
    SegmentLayout,
    recognised,
    sniff,
)
from .outcomes import (
    DiscardReason,
    PayloadReassembled,
    SegmentOutcome,
    SegmentProgress,
    SegmentRefused,
    SegmentSetDropped,
    SetDropReason,
)
from .reassembler import Reassembler, ReassemblyLimits
from .segment import Segment, payload_hash
from .segment_sets import SegmentSet
from .segmenter import PayloadTooLarge, Segmenter

__all__ = [
    "EARLY_NIM_SEGMENTATION",
    "LAYOUTS",
    "LIP_243_V01",
    "LIP_243_V02",
    "NIM_SEGMENTATION",
    "DiscardReason",
    "PayloadReassembled",
    "PayloadTooLarge",
    "Reassembler",
    "ReassemblyLimits",
    "Segment",
    "SegmentLayout",
    "SegmentOutcome",
    "SegmentProgress",
    "SegmentRefused",
    "SegmentSet",
    "SegmentSetDropped",
    "Segmenter",
    "SetDropReason",
    "payload_hash",
    "recognised",
    "sniff",
]
