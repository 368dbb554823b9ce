"""Checkpoints, which move the write-ahead log (WAL) into the file.

Appending to the WAL only writes to the system's memory, within 0.1 ms. A checkpoint waits for the
disk. SQLite would do it in any transaction that makes the WAL long enough. That is switched off, so
that it is known beforehand which transactions do checkpoints.
"""

import sqlite3
from contextlib import suppress
from typing import Final

WAL_BYTES: Final = 8 * 1024 * 1024
"""Size from which a WAL is shortened when it starts over."""
DUE_BYTES: Final = WAL_BYTES // 2
"""Bytes that may be written before a checkpoint is due."""
PAGE_BYTES: Final = 4_096


class Checkpoints:
    """Counter of writes since the last checkpoint."""

    def __init__(self) -> None:
        self._written_bytes = 0
        self.begins_wal = True
        """True if the next transaction may begin the WAL anew, for which it waits for the disk."""

    @property
    def is_due(self) -> bool:
        """True if the next transaction ends with a checkpoint."""
        return self._written_bytes >= DUE_BYTES

    def written(self, pages: int, contents_bytes: int) -> None:
        """Note that a transaction was written, with the given number of pages besides its
        contents."""
        self._written_bytes += pages * PAGE_BYTES + contents_bytes
        self.begins_wal = False

    def run(self, connection: sqlite3.Connection) -> None:
        """Move the WAL into the file. A checkpoint that fails or has to wait for a reader stays
        due."""
        with suppress(sqlite3.Error):
            is_busy, pages, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if not is_busy and pages == moved:
                self._written_bytes = 0
                self.begins_wal = True


def prepare(connection: sqlite3.Connection) -> None:
    """Leave checkpoints to the class `Checkpoints`."""
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
