"""Checkpoints, which move the write-ahead log (WAL) into the file.

Appending to the WAL only writes to the memory of the system, within 0.1 ms. A checkpoint waits for
the disk. By default, SQLite makes a checkpoint in any transaction that makes the WAL long enough.
This module switches the default off, so that the owner knows which transactions make a checkpoint.
"""

import sqlite3
from contextlib import suppress
from typing import Final

WAL_BYTES: Final = 8 * 1024 * 1024
"""Size (bytes) from which a WAL is shortened when SQLite begins it again."""
DUE_BYTES: Final = WAL_BYTES // 2
"""Number of bytes that may be written before a checkpoint is due."""
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
        """Note a written transaction, with its number of pages and the bytes of its contents."""
        self._written_bytes += pages * PAGE_BYTES + contents_bytes
        self.begins_wal = False

    def run(self, connection: sqlite3.Connection) -> None:
        """Move the content of the WAL into the file. A checkpoint that fails or has to wait for a
        reader is tried again later."""
        with suppress(sqlite3.Error):
            is_busy, pages, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if not is_busy and pages == moved:
                self._written_bytes = 0
                self.begins_wal = True


def prepare(connection: sqlite3.Connection) -> None:
    """Switch off the automatic checkpoints of SQLite."""
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
