"""The contract of state stores: where a participant's state outlives its process."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..sds.changes import Changes, Tables
from ..sds.log.archive import LogArchive
from ..sds.log.entry import LogEntry


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose state it is. A store holds that of one participant in one channel."""

    channel_id: str
    sender_id: str
    wire_profile: str


@dataclass(frozen=True, slots=True)
class RolledBack:
    """A state lacks what was written to it."""

    reason: str
    """What is missing, why, and from which file."""
    missing_writes: int | None
    """How many transactions; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Saved:
    """What a store holds when it is opened."""

    tables: Tables
    """The rows of each small table by the table's name."""
    newest: Sequence[LogEntry]
    """The newest entries of the log, oldest first."""
    rolled_back: RolledBack | None = None
    """Where the store finds that it lacks something that was written."""


class Archive(LogArchive, Protocol):
    """A log archive that has something to close."""

    def close(self) -> None:
        """Let go of what is held open; twice does nothing."""
        ...


@runtime_checkable
class StateStore(Protocol):
    """Where state outlives the process.

    `open`, `write` and `close` are called one after the other: where they may block from a thread
    that does nothing else, a quick `write` (`QuickStateStore`) from that of the channel. The
    archive is used from the thread of the channel: its calls should take microseconds.
    It sees what was written.
    """

    blocking: bool
    """Whether calls wait for anything; those that do not need no thread."""
    outlives_channel: bool
    """Whether there is anything to gain: a channel gives no state to one that does not."""

    def open(self, identity: Identity) -> Saved:
        """Open or begin the state of a participant, and return what is there.

        Raises:
            StateError: it cannot be used.
        """
        ...

    def write(self, changes: Changes) -> None:
        """Write all of it, or nothing; once this returns, it is there after a crash.

        Raises:
            StateError: nothing was written.
        """
        ...

    def archive(self) -> Archive:
        """The log for reading, of a store that is open."""
        ...

    def close(self) -> None:
        """Close; twice does nothing."""
        ...


@runtime_checkable
class QuickStateStore(StateStore, Protocol):
    """A store whose writes mostly wait for nothing: the way to another thread and back would take
    longer than these."""

    def is_quick(self, changes: Changes) -> bool:
        """Whether to write these changes waits for no disk."""
        ...
