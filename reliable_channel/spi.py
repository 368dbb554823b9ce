"""Everything that a plugin may import, beside the public names of the package.

The public names are those of `reliable_channel`, `.events`, `.errors`, `.options`, `.segmentation`,
`.sds` and `.sds.declared`, which declares and checks options, also those of a plugin. A plugin that
uses nothing else works with every version that this one promises to be compatible with. `hooks.py`
is the manual of the hooks, docs/plugins.md the guide.

Names are loaded when they are used, so that a plugin of one hook does not load what it takes to
fill the others.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ._contracts.encryption import DecryptionFailed, Encryption, EncryptionPair
    from ._contracts.finding import Finding, Level
    from ._contracts.repair_policies import Missing, RepairPolicy, RepairStep
    from ._contracts.signing import NotProven, Signing
    from ._lazy import lazy_names
    from ._plugins.hooks import Hooks, Register, hookimpl
    from .cli.lazy_command import lazy_command
    from .engine.sync_core import (
        CHANNEL,
        NO_RECORDER,
        Arrival,
        Changes,
        CoreContext,
        LogArchive,
        LogEntry,
        MessageLog,
        MissingEntry,
        Outcome,
        Outgoing,
        OutgoingKind,
        Progress,
        Recorder,
        Row,
        SdsCounters,
        SdsEvent,
        SdsStatistics,
        SyncCore,
        Table,
        Tables,
        Value,
        Withdrawing,
    )
    from .sds.bloom import BloomFilterError, BloomForm, BloomLayout, BloomParameters
    from .sds.clock import LamportClock
    from .sds.dialects import Codec, CodecError
    from .sds.ids import IdFunction
    from .sds.message import HistoryEntry, Message
    from .sds.options import RepairOptions, SdsOptions
    from .sds.outgoing import RetryPolicy, Unacknowledged
    from .sds.profile import NIM, SPEC, WireProfile
    from .sds.repair.buffers import RepairTimers
    from .segmentation import SegmentLayout
    from .state import (
        Archive,
        Identity,
        MemoryStateStore,
        QuickStateStore,
        RolledBack,
        Saved,
        SqliteStateStore,
        StateCorrupt,
        StateError,
        StateInUse,
        StateMismatch,
        StateStore,
        StateUnavailable,
        StateVersionTooNew,
    )
    from .transport import (
        Batch,
        Envelope,
        NodeHealth,
        Received,
        Source,
        StoreUnavailable,
        Transport,
        TransportError,
        WakuSettings,
        Wrapping,
        has_store,
    )

_HOMES: Final = {
    "_lazy": ("lazy_names",),
    "cli.lazy_command": ("lazy_command",),
    "_contracts.encryption": (
        "DecryptionFailed",
        "Encryption",
        "EncryptionPair",
    ),
    "_contracts.finding": ("Finding", "Level"),
    "_plugins.hooks": (
        "Hooks",
        "Register",
        "hookimpl",
    ),
    "_contracts.repair_policies": ("Missing", "RepairPolicy", "RepairStep"),
    "sds.bloom": ("BloomFilterError", "BloomForm", "BloomLayout", "BloomParameters"),
    "sds.clock": ("LamportClock",),
    "sds.ids": ("IdFunction",),
    "sds.message": ("HistoryEntry", "Message"),
    "sds.options": ("RepairOptions", "SdsOptions"),
    "sds.profile": ("NIM", "SPEC", "WireProfile"),
    "sds.repair.buffers": ("RepairTimers",),
    "sds.outgoing": ("RetryPolicy", "Unacknowledged"),
    "sds.dialects": ("Codec", "CodecError"),
    "segmentation": ("SegmentLayout",),
    "_contracts.signing": (
        "NotProven",
        "Signing",
    ),
    "state": (
        "Archive",
        "Identity",
        "MemoryStateStore",
        "QuickStateStore",
        "RolledBack",
        "Saved",
        "SqliteStateStore",
        "StateCorrupt",
        "StateError",
        "StateInUse",
        "StateMismatch",
        "StateStore",
        "StateUnavailable",
        "StateVersionTooNew",
    ),
    "engine.sync_core": (
        "CHANNEL",
        "NO_RECORDER",
        "Arrival",
        "Changes",
        "LogArchive",
        "LogEntry",
        "MessageLog",
        "MissingEntry",
        "Outcome",
        "Outgoing",
        "OutgoingKind",
        "Progress",
        "Recorder",
        "Row",
        "SdsCounters",
        "SdsEvent",
        "SdsStatistics",
        "SyncCore",
        "CoreContext",
        "Table",
        "Tables",
        "Value",
        "Withdrawing",
    ),
    "transport": (
        "Batch",
        "Envelope",
        "NodeHealth",
        "Received",
        "Source",
        "StoreUnavailable",
        "Transport",
        "TransportError",
        "WakuSettings",
        "Wrapping",
        "has_store",
    ),
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CHANNEL",
    "NIM",
    "NO_RECORDER",
    "SPEC",
    "Archive",
    "Arrival",
    "Batch",
    "BloomFilterError",
    "BloomForm",
    "BloomLayout",
    "BloomParameters",
    "Changes",
    "Codec",
    "CodecError",
    "CoreContext",
    "DecryptionFailed",
    "Encryption",
    "EncryptionPair",
    "Envelope",
    "Finding",
    "HistoryEntry",
    "Hooks",
    "IdFunction",
    "Identity",
    "LamportClock",
    "Level",
    "LogArchive",
    "LogEntry",
    "MemoryStateStore",
    "Message",
    "MessageLog",
    "Missing",
    "MissingEntry",
    "NodeHealth",
    "NotProven",
    "Outcome",
    "Outgoing",
    "OutgoingKind",
    "Progress",
    "QuickStateStore",
    "Received",
    "Recorder",
    "Register",
    "RepairOptions",
    "RepairPolicy",
    "RepairStep",
    "RepairTimers",
    "RetryPolicy",
    "RolledBack",
    "Row",
    "Saved",
    "SdsCounters",
    "SdsEvent",
    "SdsOptions",
    "SdsStatistics",
    "SegmentLayout",
    "Signing",
    "Source",
    "SqliteStateStore",
    "StateCorrupt",
    "StateError",
    "StateInUse",
    "StateMismatch",
    "StateStore",
    "StateUnavailable",
    "StateVersionTooNew",
    "StoreUnavailable",
    "SyncCore",
    "Table",
    "Tables",
    "Transport",
    "TransportError",
    "Unacknowledged",
    "Value",
    "WakuSettings",
    "WireProfile",
    "Withdrawing",
    "Wrapping",
    "has_store",
    "hookimpl",
    "lazy_command",
    "lazy_names",
]

if not TYPE_CHECKING:  # it would take every name for one that is there

    def __getattr__(name: str) -> Any:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{home}", __package__), name)

    def __dir__() -> list[str]:
        return __all__
