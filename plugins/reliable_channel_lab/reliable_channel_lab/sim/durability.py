"""The disk of a simulated participant: a transaction is there as a whole or not at all.

It fails as disks do (`Damage`, `DiskFull`), and says so as a state file does: it counts its
transactions in a place that no damage reaches (`state/continuity.py`).
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
    """Outlives the process. What was not committed when that dies never happened."""

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
        """What a process finds when it starts.

        Raises:
            StateCorrupt: it is damaged; the next call starts over with an empty one.
        """
        if self._is_damaged:
            self._start_over()
            raise StateCorrupt("it does not fit its checksums")
        saved = self._store.open(self._identity)
        if (missing := self._confirmed - len(self._written)) > 0:
            saved = Saved(saved.tables, saved.newest, RolledBack("writes are missing", missing))
            self._confirmed = len(self._written)
        return saved

    def archive(self) -> Archive:
        """The log that is on it."""
        return self._store.archive()

    def commit(self, changes: Changes) -> None:
        """Write all of it.

        Raises:
            StateUnavailable: there is no room; nothing was written.
        """
        if self.is_full:
            raise StateUnavailable("the disk is full")
        self._store.write(changes)
        self._written.append(changes)
        self._confirmed += 1

    def damage(self, damage: Damage, writes: int) -> None:
        """Let something happen to it while no process has it open."""
        self._is_damaged = damage is Damage.UNREADABLE
        if damage is Damage.LOST_WRITES and self._written:
            self._written = self._written[:-writes]
            self._store = MemoryStateStore()
            for changes in self._written:
                self._store.write(changes)
