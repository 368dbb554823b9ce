"""The sans-I/O core of SDS and SDS-R: no clock, no randomness, no I/O, no event loop inside."""

from typing import TYPE_CHECKING

from .._lazy import lazy_names

if TYPE_CHECKING:
    from .message import HistoryEntry, Message, MessageKind
    from .options import JS_WAKU, Behaviour, CoreLimits, RepairOptions, SdsOptions
    from .profile import NIM, SPEC, WireProfile, wire_profile
    from .protocol import Arrival, Outcome, SdsProtocol
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "message": (
                "HistoryEntry",
                "Message",
                "MessageKind",
            ),
            "options": (
                "JS_WAKU",
                "Behaviour",
                "CoreLimits",
                "RepairOptions",
                "SdsOptions",
            ),
            "profile": (
                "NIM",
                "SPEC",
                "WireProfile",
                "wire_profile",
            ),
            "protocol": (
                "Arrival",
                "Outcome",
                "SdsProtocol",
            ),
        },
    )

__all__ = [
    "JS_WAKU",
    "NIM",
    "SPEC",
    "Arrival",
    "Behaviour",
    "CoreLimits",
    "HistoryEntry",
    "Message",
    "MessageKind",
    "Outcome",
    "RepairOptions",
    "SdsOptions",
    "SdsProtocol",
    "WireProfile",
    "wire_profile",
]
