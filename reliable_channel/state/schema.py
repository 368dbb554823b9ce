"""Tables of an SQLite state file, and their migrations.

The value `user_version` counts the `MIGRATIONS` that a file has been through. A file with a higher
version than this package knows is refused.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from struct import iter_unpack, pack, unpack
from typing import Final

from ..errors import StateCorrupt, StateVersionTooNew
from ..sds.changes import Row, Table
from ..sds.log.root import LOG_SUMS
from . import change_log, continuity
from .rows import CHECKSUM, damaged, verified

APPLICATION_ID: Final = 0x52434853
"""Id `RCHS` in the header of a state file, which distinguishes it from other SQLite files."""
UNRELEASED_ID: Final = 0x53445331
"""Id `SDS1` in the header of state files written before 0.1.0."""
ENTRY_COLUMNS: Final = "message_id, sender_id, lamport_timestamp, content, retrieval_hint"
"""Names of the columns that the checksum of a log entry covers."""
_NOT_SMALL: Final = ("identity", "log", change_log.TABLE, continuity.TABLE)
"""The tables that are not small ones of the core or the runtime."""
_PAGE_BYTES: Final = [2**n for n in range(9, 17)]
"""The sizes of pages that SQLite allows."""
_BIG_ENDIAN_SUMS: Final = b"\x37\x7f\x06\x83"
"""The beginning of a WAL whose checksums are over big-endian words."""
WHOLE_CHECK_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of a file (bytes) that is checked whole when it is opened, in about 0.2 s."""


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
"""Migrations, each from the version of its position to the next version. The first migration
accepts an empty file. After the first release, a migration is never changed."""


def version(connection: sqlite3.Connection) -> int:
    """Return the version of a state file (0 for an empty file)."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def examine(path: Path) -> None:
    """Refuse a file that is no state file, before SQLite writes to it.

    Raises:
        StateCorrupt: it is of before 0.1.0, of another application, or damaged.
        StateVersionTooNew: a newer version wrote it.
    """
    application, written_by, schema_changes = _header(path)
    if application == UNRELEASED_ID:
        raise StateCorrupt(
            f"a version before 0.1.0 wrote {path}, and this version cannot read the log in the "
            "file; give another path (nothing was changed)"
        )
    if application != APPLICATION_ID and (application or written_by or schema_changes):
        raise StateCorrupt(f"{path} is the database of another program; give another path")
    if application and not written_by:
        raise damaged(path, "its header does not fit its tables")
    if written_by > len(MIGRATIONS):
        raise StateVersionTooNew(
            f"{path} has version {written_by}, but this package knows versions up to "
            f"{len(MIGRATIONS)}; use the newer version that wrote the file"
        )


def _header(path: Path) -> list[int]:
    """Return the ids of a file and how often its tables changed; zeros for an empty one.

    A checkpoint that a crash or a full disk ended leaves a page 1 that names pages which the WAL
    alone has. So the WAL comes first, and SQLite looks at the file alone if page 1 is not in there.
    """
    if path.stat().st_size and (page := _first_page(Path(f"{path}-wal"))):
        return [int.from_bytes(page[at : at + 4]) for at in (68, 60, 40)]
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        names = ("application_id", "user_version", "schema_version")
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]


def _first_page(wal: Path) -> bytes:
    """Return page 1 as the newest transaction in a WAL wrote it; nothing if none did.

    SQLite itself would write to the index beside the WAL. Only frames of page 1 are verified,
    because a long WAL takes a second.
    The format: https://www.sqlite.org/fileformat2.html#walformat
    """
    committed = written = b""
    with suppress(FileNotFoundError), wal.open("rb") as file:
        header = file.read(32)
        page_bytes, salts, sums = int.from_bytes(header[8:12]), header[16:24], header[24:]
        order = ">" if header[:4] == _BIG_ENDIAN_SUMS else "<"
        if page_bytes not in _PAGE_BYTES:
            return b""
        while len(frame := file.read(24 + page_bytes)) == 24 + page_bytes:
            if frame[8:16] != salts:
                break
            if int.from_bytes(frame[:4]) == 1 and _fits(frame, sums, order):
                written = frame[24:]
            if any(frame[4:8]):  # the last frame of a transaction
                committed = written
            sums = frame[16:24]
    return committed


def _fits(frame: bytes, sums: bytes, order: str) -> bool:
    """Return whether a frame has the checksums that follow from those of the frame before."""
    one, two = unpack(">II", sums)
    for first, second in iter_unpack(f"{order}II", frame[:8] + frame[24:]):
        one = one + first + two & 0xFFFFFFFF
        two = two + second + one & 0xFFFFFFFF
    return pack(">II", one, two) == frame[16:24]


def migrate(connection: sqlite3.Connection) -> None:
    """Migrate a state file to the current version, in one transaction."""
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
    """Record the tables and indexes of a file, in a transaction that changed them."""
    continuity.put(connection, "schema", _digest(connection))


def check_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Check the structure of a state file. In a large file, only the small tables are checked.

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
    """Add a small table, if the file does not have it."""
    (key, key_type), *others = table.columns
    columns = [f"{key} {key_type} PRIMARY KEY NOT NULL", *(f"{n} {kind}" for n, kind in others)]
    columns.append(f"{CHECKSUM} INTEGER NOT NULL")
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {table.name} ({', '.join(columns)}) STRICT, WITHOUT ROWID"
    )


def small_tables(connection: sqlite3.Connection, path: Path) -> Iterator[tuple[str, list[Row]]]:
    """Yield the name and the rows of each small table.

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
