"""When the write-ahead log (WAL) is brought into the file.

What is appended to the WAL reaches the system's memory, within 0.1 ms. A checkpoint waits for the
disk. SQLite would do it in the transaction that makes the WAL long enough, whichever that is; so
that is switched off, and checkpoints are done by transactions of which it is known before.
"""

import sqlite3
from contextlib import suppress
from typing import Final

WAL_BYTES: Final = 8 * 1024 * 1024
"""A WAL that grew larger gives its room back as soon as it is begun anew."""
DUE_BYTES: Final = WAL_BYTES // 2
"""What is written before a checkpoint is due."""
PAGE_BYTES: Final = 4_096


class Checkpoints:
    """Counts what was written since the last checkpoint."""

    def __init__(self) -> None:
        self._written_bytes = 0
        self.begins_wal = True
        """True if the next transaction may begin the WAL anew, for which it waits for the disk."""

    @property
    def is_due(self) -> bool:
        """True if the next transaction ends with a checkpoint."""
        return self._written_bytes >= DUE_BYTES

    def written(self, pages: int, contents_bytes: int) -> None:
        """A transaction is written: so many pages, beside those that its contents take."""
        self._written_bytes += pages * PAGE_BYTES + contents_bytes
        self.begins_wal = False

    def run(self, connection: sqlite3.Connection) -> None:
        """Bring the WAL into the file. What fails, or has to wait for a reader, stays due."""
        with suppress(sqlite3.Error):
            is_busy, pages, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if not is_busy and pages == moved:
                self._written_bytes = 0
                self.begins_wal = True


def prepare(connection: sqlite3.Connection) -> None:
    """Leave checkpoints to `Checkpoints`."""
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
