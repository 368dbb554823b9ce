"""The tables of an SQLite state file, and the steps to them from an older file.

`user_version` counts the steps of `MIGRATIONS` that a file has been through. A file with more than
this version knows is refused.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from ..sds.changes import Row, Table
from ..sds.log_root import LOG_SUMS
from . import change_log, continuity
from .errors import StateCorrupt
from .rows import CHECKSUM, damaged, verified

APPLICATION_ID: Final = 0x52434853
"""`RCHS` in the header of the file: distinguishes it from other SQLite files."""
UNRELEASED_ID: Final = 0x53445331
"""`SDS1`, in the header of files that were written before 0.1.0."""
ENTRY_COLUMNS: Final = "message_id, sender_id, lamport_timestamp, content, retrieval_hint"
"""What the checksum of a log entry covers."""
_NOT_SMALL: Final = ("identity", "log", change_log.TABLE, continuity.TABLE)
"""The tables that are not small ones of the core or the runtime."""
WHOLE_CHECK_BYTES: Final = 16 * 1024 * 1024
"""A file of at most this size is checked whole when it is opened: at most some 0.2 s."""


def _create(connection: sqlite3.Connection) -> None:
    """Make the tables of version 1.

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
        f"retrieval_hint BLOB, id_hash INTEGER NOT NULL, {CHECKSUM} INTEGER NOT NULL) STRICT"
    )
    connection.execute("CREATE INDEX log_order ON log (lamport_timestamp)")
    connection.execute("CREATE INDEX log_ids ON log (id_hash)")
    connection.execute(
        f"CREATE TABLE {continuity.TABLE} (name TEXT PRIMARY KEY NOT NULL, value ANY, "
        f"{CHECKSUM} INTEGER NOT NULL) STRICT, WITHOUT ROWID"
    )
    create_small_table(connection, LOG_SUMS)
    change_log.create(connection)


MIGRATIONS: Final[tuple[Callable[[sqlite3.Connection], None], ...]] = (_create,)
"""Steps from the version of their place here to the next one; the first takes an empty file. From
the first release on, no step is ever changed."""


def version(connection: sqlite3.Connection) -> int:
    """The version of a file; 0 for an empty one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def refuse_unreleased(path: Path) -> None:
    """Refuse a file of a version before 0.1.0 without a change to it, or to what lies beside it.

    Raises:
        StateCorrupt: it is one.
    """
    with closing(sqlite3.connect(header_uri(path), uri=True)) as connection:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
    if (application or _application_in_wal(Path(f"{path}-wal"))) == UNRELEASED_ID:
        raise StateCorrupt(
            f"{path} was written by a version before 0.1.0, and nothing was changed; give another "
            "path: the log in this file is not read"
        )


def header_uri(path: Path) -> str:
    """The file alone, as the last checkpoint left it: SQLite writes to nothing beside it."""
    return f"{path.absolute().as_uri()}?mode=ro&immutable=1"


def _application_in_wal(wal: Path) -> int:
    """The id that a killed process left in the WAL alone; 0 for none.

    SQLite itself would write to the index beside the WAL.
    The format: https://www.sqlite.org/fileformat2.html#walformat
    """
    with suppress(FileNotFoundError), wal.open("rb") as file:
        header = file.read(32)
        frame_bytes = 24 + int.from_bytes(header[8:12])
        while len(frame := file.read(frame_bytes)) > 96 and frame[8:16] == header[16:24]:
            if int.from_bytes(frame[:4]) == 1:
                return int.from_bytes(frame[24 + 68 : 24 + 72])
    return 0


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
    if continuity.values(connection, path).get("schema") != _digest(connection):
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


def _digest(connection: sqlite3.Connection) -> str:
    made = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
    return sha256(repr(sorted(map(str, made))).encode()).hexdigest()
