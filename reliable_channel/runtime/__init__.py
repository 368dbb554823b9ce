"""The async driver of a channel: owns one core, its timers, outbox and retrieval. AnyIO: asyncio
and trio."""

from ..engine.segments import Segmentation
from .event_stream import EventReader
from .follower import Follower
from .inner_stages import inner_chain
from .journal import Journal
from .kept import Kept, kept_in
from .observers import Observers
from .rate_limit import Budget, BudgetFile
from .runtime import Runtime
from .stages import chain
from .statistics import ChannelStatistics
from .sync_status import SyncStatus

__all__ = [
    "Budget",
    "BudgetFile",
    "ChannelStatistics",
    "EventReader",
    "Follower",
    "Journal",
    "Kept",
    "Observers",
    "Runtime",
    "Segmentation",
    "SyncStatus",
    "chain",
    "inner_chain",
    "kept_in",
]
