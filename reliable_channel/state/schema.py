"""The tables of an SQLite state file, and how an older file becomes a newer one.

`user_version` counts the migrations that a file has been through. A file with more than this
version knows is refused.
"""

import sqlite3
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

from ..sds.changes import Recorder, Row, Table
from ..sds.log_root import LOG_SUMS, SECOND_MS, LogSums
from . import change_log, continuity
from .errors import StateCorrupt
from .rows import CHECKSUM, checksum, damaged, verified

APPLICATION_ID: Final = 0x53445331
"""`SDS1` in the header of the file: distinguishes it from other SQLite files."""
ENTRY_COLUMNS: Final = "message_id, sender_id, lamport_timestamp, content, retrieval_hint"
"""What the checksum of a log entry covers."""
_NOT_SMALL: Final = ("identity", "log", change_log.TABLE, continuity.TABLE)
"""The tables that are not small ones of the core or the runtime."""
SUMMED_SECONDS: Final = 50_000
"""Seconds with messages that a log of an earlier version gets sums of."""
WHOLE_CHECK_BYTES: Final = 16 * 1024 * 1024
"""A file of at most this size is checked whole when it is opened: at most some 0.2 s."""


def _create(connection: sqlite3.Connection) -> None:
    """The first version.

    An id is looked up by the first 8 bytes of its sha256: a fifth of the index that whole ids make,
    and no sender can make many of them equal.
    """
    connection.execute(
        "CREATE TABLE identity (channel_id TEXT NOT NULL, sender_id TEXT NOT NULL, "
        "wire_profile TEXT NOT NULL) STRICT"
    )
    connection.execute(
        "CREATE TABLE log (entry INTEGER PRIMARY KEY, lamport_timestamp INTEGER NOT NULL, "
        "message_id TEXT NOT NULL, sender_id TEXT NOT NULL, content BLOB NOT NULL, "
        "retrieval_hint BLOB, id_hash INTEGER NOT NULL) STRICT"
    )
    connection.execute("CREATE INDEX log_order ON log (lamport_timestamp)")
    connection.execute("CREATE INDEX log_ids ON log (id_hash)")


def _add_checksums(connection: sqlite3.Connection) -> None:
    """Each row gets a checksum, and the file what `continuity.py` keeps.

    Writes the file anew: about a minute for ten million messages.
    """
    connection.create_function(CHECKSUM, -1, lambda table, *row: checksum(table, row))
    small = _small_table_names(connection)
    covered = {name: ", ".join(_columns(connection, name)) for name in small}
    for name, values in {**covered, "log": ENTRY_COLUMNS}.items():
        connection.execute(f"ALTER TABLE {name} ADD COLUMN {CHECKSUM} INTEGER NOT NULL DEFAULT 0")
        connection.execute(f"UPDATE {name} SET {CHECKSUM} = {CHECKSUM}('{name}', {values})")
    connection.execute(
        f"CREATE TABLE {continuity.TABLE} (name TEXT PRIMARY KEY NOT NULL, value ANY, "
        f"{CHECKSUM} INTEGER NOT NULL) STRICT, WITHOUT ROWID"
    )


def _sum_log(connection: sqlite3.Connection) -> None:
    """The log gets the sums that it is compared by.

    Reads ids alone, the newest first, until enough seconds are summed.
    """
    create_small_table(connection, LOG_SUMS)
    recorder = Recorder()
    sums = LogSums(recorder)
    sums.max_seconds = SUMMED_SECONDS
    if "channel" in _small_table_names(connection):
        (horizon,) = connection.execute(
            "SELECT MAX(value) FROM channel WHERE name = 'horizon_lamport_timestamp'"
        ).fetchone()
        if horizon is not None:
            sums.forget_until(horizon)
    keys = "SELECT lamport_timestamp, message_id FROM log ORDER BY lamport_timestamp DESC"
    for key in connection.execute(keys):
        sums.add(key)
        if key[0] // SECOND_MS < sums.start:
            break
    for (table, _), row in recorder.take().rows.items():
        if row is not None:
            create_small_table(connection, table)
            places = ", ".join("?" * (len(row) + 1))
            connection.execute(
                f"INSERT OR REPLACE INTO {table.name} VALUES ({places})",
                (*row, checksum(table.name, row)),
            )


MIGRATIONS: Final[tuple[Callable[[sqlite3.Connection], None], ...]] = (
    _create,
    _add_checksums,
    _sum_log,
    change_log.create,
)
"""Each takes a file from the version of its place here to the next; none is ever changed."""


def version(connection: sqlite3.Connection) -> int:
    """How many migrations a file has been through."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check_ours(connection: sqlite3.Connection, path: Path) -> None:
    """See that a file is a state file, or empty, before anything is written to it.

    Raises:
        StateCorrupt: it is something else.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
    ours = application == APPLICATION_ID
    if ours != bool(version(connection)) or ours != bool(tables):
        if ours:
            raise damaged(path, "its header does not fit its tables")
        raise StateCorrupt(f"{path} is a database of something else; give another path")


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a file to this version, in one transaction."""
    begun = version(connection)
    if begun == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    for migration in MIGRATIONS[begun:]:
        migration(connection)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    seal(connection)
    connection.execute("COMMIT")


def seal(connection: sqlite3.Connection) -> None:
    """Note which tables and indexes there are; in a transaction that changed them."""
    continuity.put(connection, "schema", _digest(connection))


def check_whole(connection: sqlite3.Connection, path: Path) -> None:
    """See that the file's structure is sound: of a large one, that of its small tables.

    Raises:
        StateCorrupt: it is not.
    """
    if version(connection) == len(MIGRATIONS):
        noted = continuity.values(connection, path).get("schema")
        if noted != _digest(connection):
            raise damaged(path, "its tables are not those that were made")
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    checks = ["PRAGMA integrity_check(1)"]
    if pages * page_bytes > WHOLE_CHECK_BYTES:
        names = [*_small_table_names(connection), change_log.TABLE, continuity.TABLE]
        checks = [f"PRAGMA integrity_check('{name}')" for name in names]
    for check in checks:
        (found,) = connection.execute(check).fetchone()
        if found != "ok":
            raise damaged(path, found)


def create_small_table(connection: sqlite3.Connection, table: Table) -> None:
    """Add a small table that is not there yet."""
    (key, key_type), *others = table.columns
    columns = [f"{key} {key_type} PRIMARY KEY NOT NULL", *(f"{n} {kind}" for n, kind in others)]
    columns.append(f"{CHECKSUM} INTEGER NOT NULL")
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {table.name} ({', '.join(columns)}) STRICT, WITHOUT ROWID"
    )


def small_tables(connection: sqlite3.Connection, path: Path) -> Iterator[tuple[str, list[Row]]]:
    """The names and rows of all small tables.

    Raises:
        StateCorrupt: a row is damaged.
    """
    for name in _small_table_names(connection):
        yield name, list(verified(path, name, connection.execute(f"SELECT * FROM {name}")))


def _small_table_names(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    return [name for (name,) in found if name not in _NOT_SMALL]


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})").fetchall()]


def _digest(connection: sqlite3.Connection) -> str:
    made = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
    return sha256(repr(sorted(map(str, made))).encode()).hexdigest()
