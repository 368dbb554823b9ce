"""The contract of state stores: where a participant's state outlives its process."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..sds.changes import Changes, Tables
from ..sds.log.archive import LogArchive
from ..sds.message import LogEntry


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose state it is. A store holds that of one participant in one channel."""

    channel_id: str
    sender_id: str
    wire_profile: str


@dataclass(frozen=True, slots=True)
class RolledBack:
    """State that lacks data that was written to it."""

    reason: str
    """Missing data, its cause, and the file."""
    missing_writes: int | None
    """Number of missing transactions (None if unknown)."""


@dataclass(frozen=True, slots=True)
class Saved:
    """Content of a store when it is opened."""

    tables: Tables
    """Rows of each small table by its name."""
    newest: Sequence[LogEntry]
    """Newest entries of the log, oldest first."""
    rolled_back: RolledBack | None = None
    """Set if the store lacks data that was written to it."""


class Archive(LogArchive, Protocol):
    """Log archive that must be closed."""

    def close(self) -> None:
        """Release all resources. A second call does nothing."""
        ...


@runtime_checkable
class StateStore(Protocol):
    """Store in which state survives the process.

    `open`, `write` and `close` are called one after the other. Blocking calls come from a separate
    thread, a quick `write` (`QuickStateStore`) from the channel's thread. The archive is used from
    the channel's thread, so its calls should take microseconds. The archive sees all written data.
    """

    blocking: bool
    """True if calls may block and need a separate thread."""
    outlives_channel: bool
    """True if state survives the channel. Otherwise the channel writes no state."""

    def open(self, identity: Identity) -> Saved:
        """Open or create the state of a participant, and return its content.

        Raises:
            StateError: it cannot be used.
        """
        ...

    def write(self, changes: Changes) -> None:
        """Write all changes or nothing. After the return they survive a crash.

        Raises:
            StateError: nothing was written.
        """
        ...

    def archive(self) -> Archive:
        """Return the log of an open store, for reading."""
        ...

    def close(self) -> None:
        """Close the store. A second call does nothing."""
        ...


@runtime_checkable
class QuickStateStore(StateStore, Protocol):
    """Store whose writes rarely block. Another thread would take longer than such a write."""

    def is_quick(self, changes: Changes) -> bool:
        """Return True if writing these changes does not wait for the disk."""
        ...
