"""Names that a plugin may import, besides the public names of the package.

Public names are in `reliable_channel` and in `.config`, `.events`, `.diagnostics`, `.errors`,
`.options`, `.segmentation` and `.sds`. `.sds.declared` declares and checks options, also the
options of a plugin. A plugin that uses no other names works with every compatible version.
`_plugins/hooks.py` describes the hooks, and docs/plugins.md is the guide.

A name is loaded on first use, so that a plugin does not load the modules of other hooks.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ._contracts.encryption import DecryptionFailed, Encryption, EncryptionPair, SharesKey
    from ._contracts.finding import Finding, Level
    from ._contracts.repair_policies import WITHOUT_STORE, Missing, RepairPolicy, RepairStep
    from ._contracts.signing import NotProven, Signing
    from ._lazy import lazy_names
    from ._plugins.hooks import Hooks, Register, hookimpl
    from ._plugins.loading import process_registry
    from ._plugins.registry import Kind
    from ._plugins.resolve import make_encryption, make_function, make_sync_core
    from ._topic_reader import sds_message, topic_decryption, topic_transport
    from .cli.channel_flags import DEFAULT_NODE, ChannelArguments
    from .cli.console import err, out, say, warn
    from .cli.exit_codes import ExitCode
    from .cli.lazy_command import lazy_command
    from .config import channel_settings, check_channel_name, from_text
    from .engine.engine import JOINING_MS
    from .engine.sync_core import (
        CHANNEL,
        NO_RECORDER,
        Agenda,
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
        Slot,
        SyncCore,
        Table,
        Tables,
        Value,
        Withdrawing,
    )
    from .runtime.journal import JOURNAL_FORMAT, Journal
    from .runtime.journal_packing import Unpacker
    from .sds.bloom import BloomFilterError, BloomForm, BloomLayout, BloomParameters, set_bits
    from .sds.clock import LamportClock
    from .sds.dialects import Codec, CodecError, NimCodec, SpecCodec, sds_pb2
    from .sds.dialects.codec import MAX_HISTORY_ENTRIES, MAX_ID_BYTES
    from .sds.ids import IdFunction
    from .sds.message import HistoryEntry, Message
    from .sds.options import RepairOptions, SdsOptions
    from .sds.outgoing import RetryPolicy, Unacknowledged
    from .sds.profile import NIM, SPEC, WireProfile
    from .sds.repair.buffers import MAX_REST, RepairTimers
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
        BaseTransport,
        Batch,
        Envelope,
        NodeHealth,
        Received,
        Source,
        StoreUnavailable,
        Transport,
        TransportError,
        WakuFraming,
        WakuSettings,
    )
    from .transport.addresses import default_content_topic, masked_address

_HOMES: Final = {
    "_contracts.encryption": ("DecryptionFailed", "Encryption", "EncryptionPair", "SharesKey"),
    "_contracts.finding": ("Finding", "Level"),
    "_contracts.repair_policies": ("WITHOUT_STORE", "Missing", "RepairPolicy", "RepairStep"),
    "_contracts.signing": ("NotProven", "Signing"),
    "_lazy": ("lazy_names",),
    "_plugins.hooks": ("Hooks", "Register", "hookimpl"),
    "_plugins.loading": ("process_registry",),
    "_plugins.registry": ("Kind",),
    "_plugins.resolve": ("make_encryption", "make_function", "make_sync_core"),
    "_topic_reader": ("sds_message", "topic_decryption", "topic_transport"),
    "cli.channel_flags": ("DEFAULT_NODE", "ChannelArguments"),
    "cli.console": ("err", "out", "say", "warn"),
    "cli.exit_codes": ("ExitCode",),
    "cli.lazy_command": ("lazy_command",),
    "config": ("channel_settings", "check_channel_name", "from_text"),
    "engine.engine": ("JOINING_MS",),
    "engine.sync_core": (
        "CHANNEL",
        "NO_RECORDER",
        "Agenda",
        "Arrival",
        "Changes",
        "CoreContext",
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
        "Slot",
        "SyncCore",
        "Table",
        "Tables",
        "Value",
        "Withdrawing",
    ),
    "runtime.journal": ("JOURNAL_FORMAT", "Journal"),
    "runtime.journal_packing": ("Unpacker",),
    "sds.bloom": ("BloomFilterError", "BloomForm", "BloomLayout", "BloomParameters", "set_bits"),
    "sds.clock": ("LamportClock",),
    "sds.dialects": ("Codec", "CodecError", "NimCodec", "SpecCodec", "sds_pb2"),
    "sds.dialects.codec": ("MAX_HISTORY_ENTRIES", "MAX_ID_BYTES"),
    "sds.ids": ("IdFunction",),
    "sds.message": ("HistoryEntry", "Message"),
    "sds.options": ("RepairOptions", "SdsOptions"),
    "sds.profile": ("NIM", "SPEC", "WireProfile"),
    "sds.repair.buffers": ("MAX_REST", "RepairTimers"),
    "sds.outgoing": ("RetryPolicy", "Unacknowledged"),
    "segmentation": ("SegmentLayout",),
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
    "transport": (
        "BaseTransport",
        "Batch",
        "Envelope",
        "NodeHealth",
        "Received",
        "Source",
        "StoreUnavailable",
        "Transport",
        "TransportError",
        "WakuSettings",
        "WakuFraming",
    ),
    "transport.addresses": ("default_content_topic", "masked_address"),
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CHANNEL",
    "DEFAULT_NODE",
    "JOINING_MS",
    "JOURNAL_FORMAT",
    "MAX_HISTORY_ENTRIES",
    "MAX_ID_BYTES",
    "MAX_REST",
    "NIM",
    "NO_RECORDER",
    "SPEC",
    "WITHOUT_STORE",
    "Agenda",
    "Archive",
    "Arrival",
    "BaseTransport",
    "Batch",
    "BloomFilterError",
    "BloomForm",
    "BloomLayout",
    "BloomParameters",
    "Changes",
    "ChannelArguments",
    "Codec",
    "CodecError",
    "CoreContext",
    "DecryptionFailed",
    "Encryption",
    "EncryptionPair",
    "Envelope",
    "ExitCode",
    "Finding",
    "HistoryEntry",
    "Hooks",
    "IdFunction",
    "Identity",
    "Journal",
    "Kind",
    "LamportClock",
    "Level",
    "LogArchive",
    "LogEntry",
    "MemoryStateStore",
    "Message",
    "MessageLog",
    "Missing",
    "MissingEntry",
    "NimCodec",
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
    "SharesKey",
    "Signing",
    "Slot",
    "Source",
    "SpecCodec",
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
    "Unpacker",
    "Value",
    "WakuFraming",
    "WakuSettings",
    "WireProfile",
    "Withdrawing",
    "channel_settings",
    "check_channel_name",
    "default_content_topic",
    "err",
    "from_text",
    "hookimpl",
    "lazy_command",
    "lazy_names",
    "make_encryption",
    "make_function",
    "make_sync_core",
    "masked_address",
    "out",
    "process_registry",
    "say",
    "sds_message",
    "sds_pb2",
    "set_bits",
    "topic_decryption",
    "topic_transport",
    "warn",
]

if not TYPE_CHECKING:  # it would take every name for one that is there

    def __getattr__(name: str) -> Any:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{home}", __package__), name)

    def __dir__() -> list[str]:
        return __all__
