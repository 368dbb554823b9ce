"""Where the state of a participant outlives its process: the contract, memory and SQLite."""

from .base import Archive, Identity, RolledBack, Saved, StateStore
from .errors import (
    StateCorrupt,
    StateError,
    StateInUse,
    StateMismatch,
    StateUnavailable,
    StateVersionTooNew,
)
from .memory import MemoryStateStore
from .overlay import ArchiveOverlay
from .sqlite import SqliteStateStore

__all__ = [
    "Archive",
    "ArchiveOverlay",
    "Identity",
    "MemoryStateStore",
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
]
