"""The async driver of a channel: owns one core, its timers, outbox and retrieval. AnyIO: asyncio
and trio."""

from .journal import Journal
from .runtime import Runtime
from .statistics import ChannelStatistics
from .sync_status import SyncStatus

__all__ = ["ChannelStatistics", "Journal", "Runtime", "SyncStatus"]
