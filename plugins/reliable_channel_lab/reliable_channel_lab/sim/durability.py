"""Disk of a simulated participant, on which a transaction is stored completely or not at all.

The simulated disk fails as real disks do (`Damage`, `DiskFull`), with the errors of a state file.
The disk counts its transactions in a place that no damage reaches (`state/continuity.py`).
"""

from reliable_channel.sds.changes import Changes
from reliable_channel.state import (
    Archive,
    Identity,
    MemoryStateStore,
    RolledBack,
    Saved,
    StateCorrupt,
    StateUnavailable,
)

from .scenario import Damage


class Disk:
    """Disk that keeps its data when the process dies. Data that was not committed is lost when the
    process dies."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self.is_full = False
        self._start_over()

    def _start_over(self) -> None:
        self._store = MemoryStateStore()
        self._written: list[Changes] = []
        self._confirmed = 0
        self._is_damaged = False

    def open(self) -> Saved:
        """Return the state that a process finds when it starts.

        Raises:
            StateCorrupt: it is damaged; the next call starts over with an empty one.
        """
        if self._is_damaged:
            self._start_over()
            raise StateCorrupt("the state file does not match its checksums")
        saved = self._store.open(self._identity)
        if (missing := self._confirmed - len(self._written)) > 0:
            saved = Saved(saved.tables, saved.newest, RolledBack("writes are missing", missing))
            self._confirmed = len(self._written)
        return saved

    def archive(self) -> Archive:
        """Return the message log on the disk."""
        return self._store.archive()

    def commit(self, changes: Changes) -> None:
        """Write all changes to the disk.

        Raises:
            StateUnavailable: there is no room; nothing was written.
        """
        if self.is_full:
            raise StateUnavailable("the disk is full")
        self._store.write(changes)
        self._written.append(changes)
        self._confirmed += 1

    def damage(self, damage: Damage, writes: int) -> None:
        """Damage the disk while no process uses it."""
        self._is_damaged = damage is Damage.UNREADABLE
        if damage is Damage.LOST_WRITES and self._written:
            self._written = self._written[:-writes]
            self._store = MemoryStateStore()
            for changes in self._written:
                self._store.write(changes)
