"""The parts of a wire profile, for plugins that register a dialect of SDS.

A profile is often another one with something replaced: `replace(SPEC, name="mine", codec=…)`.
"""

from .sds.bloom import BloomFilterError, BloomForm, BloomLayout, BloomParameters
from .sds.clock import LamportClock
from .sds.message import HistoryEntry, Message
from .sds.options import RepairOptions, SdsOptions
from .sds.profile import NIM, SPEC, WireProfile
from .sds.repair import RepairTimers
from .sds.wire import Codec, CodecError
from .segmentation import SegmentLayout

__all__ = [
    "NIM",
    "SPEC",
    "BloomFilterError",
    "BloomForm",
    "BloomLayout",
    "BloomParameters",
    "Codec",
    "CodecError",
    "HistoryEntry",
    "LamportClock",
    "Message",
    "RepairOptions",
    "RepairTimers",
    "SdsOptions",
    "SegmentLayout",
    "WireProfile",
]
