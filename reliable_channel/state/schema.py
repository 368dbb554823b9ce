"""The tables of an SQLite state file, and how an older file becomes a newer one.

`user_version` counts the migrations that a file has been through. A file with more than this
version knows is refused.
"""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Final

from ..sds.changes import Row, Table

APPLICATION_ID: Final = 0x53445331
"""`SDS1` in the header of the file: tells it from other SQLite files."""
_LARGE: Final = ("identity", "log")
"""The tables that are not small ones of the core or the runtime."""


def _create(connection: sqlite3.Connection) -> None:
    """The first version.

    An id is looked up by the first 8 bytes of its sha256: a fifth of the index that whole ids make,
    and nobody can make many of them equal.
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


MIGRATIONS: Final[tuple[Callable[[sqlite3.Connection], None], ...]] = (_create,)
"""Each takes a file from the version of its place here to the next; none is ever changed."""


def version(connection: sqlite3.Connection) -> int:
    """How many migrations a file has been through."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


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
    connection.execute("COMMIT")


def create_small_table(connection: sqlite3.Connection, table: Table) -> None:
    """Add a small table that is not there yet."""
    (key, key_type), *others = table.columns
    columns = [f"{key} {key_type} PRIMARY KEY NOT NULL", *(f"{n} {kind}" for n, kind in others)]
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {table.name} ({', '.join(columns)}) STRICT, WITHOUT ROWID"
    )


def small_tables(connection: sqlite3.Connection) -> Iterator[tuple[str, list[Row]]]:
    """The names and rows of all small tables."""
    names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    for (name,) in names:
        if name not in _LARGE:
            yield name, connection.execute(f"SELECT * FROM {name}").fetchall()
