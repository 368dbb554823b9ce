"""State of a participant beyond its process: the interface, memory and SQLite."""

from typing import TYPE_CHECKING

from .._lazy import lazy_names

if TYPE_CHECKING:
    from .._contracts.state_store import (
        Archive,
        Identity,
        QuickStateStore,
        RolledBack,
        Saved,
        StateStore,
    )
    from ..errors import (
        StateCorrupt,
        StateError,
        StateInUse,
        StateMismatch,
        StateUnavailable,
        StateVersionTooNew,
    )
    from .memory import MemoryStateStore
    from .sqlite import SqliteStateStore
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "._contracts.state_store": (
                "Archive",
                "Identity",
                "QuickStateStore",
                "RolledBack",
                "Saved",
                "StateStore",
            ),
            ".errors": (
                "StateCorrupt",
                "StateError",
                "StateInUse",
                "StateMismatch",
                "StateUnavailable",
                "StateVersionTooNew",
            ),
            "memory": ("MemoryStateStore",),
            "sqlite": ("SqliteStateStore",),
        },
    )

__all__ = [
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
]
