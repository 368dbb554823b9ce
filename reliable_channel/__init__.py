"""Reliable channels over Waku: every participant ends up with the same messages in the same causal
order.

The names for applications, loaded on first use. Further events, errors and option types are in
`reliable_channel.events`, `.diagnostics`, `.errors` and `.options`. Plugins use `.spi`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from ._program import run
    from ._terminal_text import printable
    from .blocking import BlockingReliableChannel
    from .channel import ReliableChannel
    from .conversation import Request
    from .engine.statistics import ChannelStatistics
    from .errors import ChannelUnavailable, ReliableChannelError, SdsError, StateError
    from .events import (
        DeliveryFailed,
        Event,
        MessageAcknowledged,
        MessageLost,
        MessageReceived,
        MessageSent,
        SendFailed,
    )
    from .explanation import Explanation
    from .hub import ChannelHub
    from .options import ChannelOptions
    from .runtime import EventReader, Follower, SyncStatus
    from .sds.message import LogEntry

_HOME_OF: Final = {
    "BlockingReliableChannel": "blocking",
    "ChannelHub": "hub",
    "ChannelOptions": "options",
    "ChannelStatistics": "engine.statistics",
    "ChannelUnavailable": "errors",
    "DeliveryFailed": "events",
    "Event": "events",
    "EventReader": "runtime",
    "Explanation": "explanation",
    "Follower": "runtime",
    "LogEntry": "sds.message",
    "MessageAcknowledged": "events",
    "MessageLost": "events",
    "MessageReceived": "events",
    "MessageSent": "events",
    "ReliableChannel": "channel",
    "ReliableChannelError": "errors",
    "Request": "conversation",
    "SdsError": "errors",
    "SendFailed": "events",
    "StateError": "errors",
    "SyncStatus": "runtime",
    "printable": "_terminal_text",
    "run": "_program",
}

__all__ = [
    "BlockingReliableChannel",
    "ChannelHub",
    "ChannelOptions",
    "ChannelStatistics",
    "ChannelUnavailable",
    "DeliveryFailed",
    "Event",
    "EventReader",
    "Explanation",
    "Follower",
    "LogEntry",
    "MessageAcknowledged",
    "MessageLost",
    "MessageReceived",
    "MessageSent",
    "ReliableChannel",
    "ReliableChannelError",
    "Request",
    "SdsError",
    "SendFailed",
    "StateError",
    "SyncStatus",
    "printable",
    "run",
]

if not TYPE_CHECKING:  # it would take every name for one that is there

    def __getattr__(name: str) -> Any:
        if (home := _HOME_OF.get(name)) is not None:
            value = globals()[name] = getattr(import_module(f".{home}", __name__), name)
            return value
        if name in ("diagnostics", "errors", "events", "options"):
            return import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return [*__all__, "__version__"]
