"""The disk of a simulated participant: a transaction is there as a whole or not at all."""

from reliable_channel.sds.changes import Changes, Recorder
from reliable_channel.state import ArchiveOverlay, Identity, MemoryStateStore, Saved


class Disk:
    """Outlives the process. What was not committed when that dies never happened."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._store = MemoryStateStore()

    def open(self) -> tuple[Saved, Recorder, ArchiveOverlay]:
        """What a process finds when it starts, and what it writes with."""
        saved = self._store.open(self._identity)
        return saved, Recorder(), ArchiveOverlay(self._store.archive())

    def commit(self, changes: Changes) -> None:
        """Write all of it."""
        self._store.write(changes)
