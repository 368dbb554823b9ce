"""AnyIO tasks that run an engine, on asyncio and trio."""

from .budget_file import BudgetFile
from .driver import Notes
from .event_log import Failures
from .event_stream import EventReader
from .follower import Follower
from .observers import Observers
from .runtime import Runtime
from .setup import ChannelSetup
from .stages import chain, content_chain
from .state_writer import OpenState, open_state
from .sync_status import SyncStatus
from .unopened import Unopened

__all__ = [
    "BudgetFile",
    "ChannelSetup",
    "EventReader",
    "Failures",
    "Follower",
    "Notes",
    "Observers",
    "OpenState",
    "Runtime",
    "SyncStatus",
    "Unopened",
    "chain",
    "content_chain",
    "open_state",
]
