"""Names of 0.1.0 that have another place now: for errors, for `migrate`, and for
docs/migration-0.2.md."""

from typing import Final

MOVED: Final = {
    name: home
    for home, names in {
        "errors": (
            "ChannelClosed",
            "ContentTooLong",
            "EmptyContent",
            "EncryptionFailed",
            "MessageIdInUse",
            "OutgoingBufferFull",
            "PluginError",
            "StateCorrupt",
            "StateInUse",
            "StateMismatch",
            "StateUnavailable",
            "StateVersionTooNew",
        ),
        "events": (
            "AcknowledgementSource",
            "BloomFilterIgnored",
            "ConnectionStatusChanged",
            "EphemeralDropped",
            "EphemeralReceived",
            "EventsMissed",
            "HistoryEntry",
            "LogAgrees",
            "LogDiffers",
            "MessageForged",
            "MessageMissing",
            "MessagePossiblyAcknowledged",
            "MessageRejected",
            "MessageStored",
            "NodeHealth",
            "NodeHealthChanged",
            "ObserverSetAside",
            "ObserverSlow",
            "PayloadDropped",
            "RateLimitReached",
            "ReaderFellBehind",
            "ReceiveProgress",
            "ReferencesDropped",
            "RejectionReason",
            "RepairBudgetReached",
            "RepairRequestReceived",
            "RepairRequested",
            "RepairSent",
            "SegmentDiscarded",
            "SendProgress",
            "SendingMessage",
            "StateDegraded",
            "StateRecovered",
            "StateRolledBack",
            "SyncReceived",
            "SyncSent",
            "TopicHealthChanged",
            "TransportDegraded",
            "TransportRecovered",
            "UnconfirmedDropped",
        ),
    }.items()
    for name in names
}
"""Names that were in `reliable_channel` itself, and the module in it that has them."""

RENAMED: Final = {
    "SyncSetting": "CoreContext",
    "asks_when_told": "repair_on_demand",
}
"""Names in the modules of `reliable_channel`, also of keywords, and those of today."""


def advice(name: str) -> str:
    """Where a name is now, as an error text."""
    return f"{name} moved: from reliable_channel.{MOVED[name]} import {name}"
