"""Tools that describe, check, copy and prune state files.

Reading a file works while a channel has it open. `restore` and `prune` need a file that no channel
has open.
"""

import os
import sqlite3
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from sys import maxsize
from typing import Final

from .._contracts.state_store import Identity
from ..errors import StateCorrupt, StateError, StateInUse, StateUnavailable
from ..sds.changes import Recorder
from ..sds.log.log import MessageLog
from . import continuity, schema
from .change_log import ChangeLog
from .ownership import PRIVATE_FILE, Ownership
from .rows import CHECKSUM, verified
from .schema import ENTRY_COLUMNS
from .sqlite import SqliteStateStore
from .sqlite_archive import BUSY_TIMEOUT_S, log_entries, state_error

BESIDE: Final = ("-wal", "-shm")
"""Suffixes of the files that belong to a state file."""
PAGE: Final = 1_000
EVICTED_AT_A_TIME: Final = 100
PAGES_AT_A_TIME: Final = 64
"""Number of pages that `prune` frees before it empties the WAL."""


@dataclass(frozen=True, slots=True)
class StateSummary:
    """Contents of a state file."""

    path: str
    channel_id: str
    sender_id: str
    wire_profile: str
    version: int
    """Schema version of the file's tables."""
    size_bytes: int
    """Size of the file with its write-ahead log (bytes)."""
    messages: int
    unacknowledged: int
    """Number of own messages that are sent again after a restart."""
    unconfirmed: int
    """Number of events that are emitted again after a restart."""
    writes: int
    in_use: bool
    modified_at_ms: int
    copied_at_ms: int | None = None
    """Time at which `backup` made this copy (ms). The value is None if the file is no copy, or a
    channel has opened it since."""


def summary(path: Path) -> StateSummary:
    """Return a summary of the contents of a state file.

    Raises:
        StateError: it is not a state file, or cannot be read.
    """
    in_use = is_in_use(path)
    with _reading(path) as connection:
        identity = _identity(connection, path)
        log = ChangeLog()
        writes = _read_changes(log, connection, path)
        wal = Path(f"{_target(path)}-wal")
        sizes = [file.stat().st_size for file in (path, wal) if file.exists()]
        return StateSummary(
            path=str(path),
            channel_id=identity.channel_id,
            sender_id=identity.sender_id,
            wire_profile=identity.wire_profile,
            version=schema.version(connection),
            size_bytes=sum(sizes),
            messages=int(connection.execute("SELECT COUNT(*) FROM log").fetchone()[0]),
            unacknowledged=_count(connection, log, "outgoing_messages"),
            unconfirmed=_count(connection, log, "unconfirmed"),
            writes=writes,
            in_use=in_use,
            modified_at_ms=path.stat().st_mtime_ns // 1_000_000,
            copied_at_ms=continuity.copied_at_ms(connection, path),
        )


def check(path: Path) -> list[str]:
    """Read every row of a state file, and return descriptions of the damage.

    The check takes about a second for each 100 MB. A damaged file does not raise an error.
    """
    path = _target(path)
    problems: list[str] = []
    try:
        with _reading(path) as connection:
            _identity(connection, path)
            schema.check_whole(connection, path)
            (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if found != "ok":
                problems.append(f"{path} is damaged: {found}")
            for _ in schema.small_tables(connection, path):
                pass
            _read_changes(ChangeLog(), connection, path)
            log = connection.execute(f"SELECT {ENTRY_COLUMNS}, {CHECKSUM} FROM log")
            for _ in verified(path, "log", log):
                pass
    except StateError as error:
        problems.append(str(error))
    return problems


def lacking(path: Path) -> str:
    """Return a text about the writes that a sound file lacks. The text is empty if no write is
    known to be missing.

    Raises:
        StateError: it cannot be read.
    """
    path = _target(path)
    with _reading(path) as connection:
        return continuity.Continuity(path).read(connection)


def export(path: Path) -> Iterator[dict[str, object]]:
    """Yield the messages of a state file in log order, with the payload as base64.

    Raises:
        StateError: it cannot be read.
    """
    with _reading(path) as connection:
        _identity(connection, path)
        rows = connection.execute(
            f"SELECT {ENTRY_COLUMNS}, {CHECKSUM} FROM log ORDER BY lamport_timestamp, message_id"
        )
        while page := rows.fetchmany(PAGE):
            for entry in log_entries(path, page):
                yield {
                    "message_id": entry.message_id,
                    "sender_id": entry.sender_id,
                    "lamport_timestamp": entry.lamport_timestamp,
                    "payload": b64encode(entry.content).decode(),
                }


def backup(path: Path, copy: Path) -> None:
    """Copy a state file, even while a channel has it open. The copy has the content of one moment.

    Raises:
        StateError: it cannot be read, or the copy cannot be written or exists.
    """
    if copy.exists():
        raise StateUnavailable(f"the file {copy} exists; give another path for the copy")
    with _reading(path) as connection:
        _identity(connection, path)
        _copy(connection, copy)


def _copy(connection: sqlite3.Connection, path: Path) -> None:
    """Copy to a new file, which is there once it is whole and on the disk."""
    part = Path(f"{path}.part")
    try:
        _remove(part)
        os.close(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_EXCL, PRIVATE_FILE))
        try:
            with closing(sqlite3.connect(part, isolation_level=None)) as target:
                connection.backup(target)
                continuity.put(target, continuity.COPIED_AT_MS, time.time_ns() // 1_000_000)
                target.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.rename(path)
        finally:
            _remove(part)
    except (OSError, sqlite3.Error) as error:
        raise StateUnavailable(f"{path} cannot be written: {error}") from error


def _remove(path: Path) -> None:
    for end in ("", "-journal", *BESIDE):
        Path(f"{path}{end}").unlink(missing_ok=True)


def restore(copy: Path, path: Path) -> Path | None:
    """Replace a state file by a copy. Return the new path of the earlier file, or None if there was
    no file.

    The file `.commits` stays, so that the next start notices the missing data
    (`state_rolled_back`).

    Raises:
        StateError: the copy is damaged or of another participant, or the file is in use.
    """
    if problems := check(copy):
        raise StateCorrupt(problems[0])
    path = _target(path)
    earlier = None
    with _reading(copy) as whole, _owned(path):
        identity = _identity(whole, copy)
        if path.exists() and path.stat().st_size:
            with _reading(path) as connection:
                theirs = _identity_if_readable(connection, path)
            if theirs is not None and theirs != identity:
                raise StateUnavailable(
                    f"{path} is the state of {theirs.sender_id!r} in {theirs.channel_id!r}, but "
                    f"{copy} is the state of {identity.sender_id!r} in {identity.channel_id!r}; "
                    "give the path of the participant that the copy belongs to"
                )
            earlier = Path(f"{path}.before-restore-{time.strftime('%Y%m%d-%H%M%S')}")
        new = Path(f"{path}.restoring")
        new.unlink(missing_ok=True)
        _copy(whole, new)
        for end in BESIDE if earlier is None else ("", *BESIDE):
            if earlier is None:
                Path(f"{path}{end}").unlink(missing_ok=True)
            elif Path(f"{path}{end}").exists():
                Path(f"{path}{end}").rename(f"{earlier}{end}")
        new.replace(path)
    return earlier


def prune(path: Path, *, older_than_ms: int) -> tuple[int, int]:
    """Delete messages with an older Lamport timestamp, and give the space back to the file system.

    Return the number of deleted messages, and the number of bytes that were freed.

    Raises:
        StateError: the file cannot be used.
    """
    before = summary(path)
    with _reading(path) as connection:  # little by little: the disk may have no room for more
        older = connection.execute(
            "SELECT lamport_timestamp FROM log WHERE lamport_timestamp < ? ORDER BY 1",
            (older_than_ms,),
        )
        steps_ms = [at_ms for (at_ms,) in older.fetchall()[::EVICTED_AT_A_TIME]]
    recorder, store = Recorder(), SqliteStateStore(path)
    saved = store.open(Identity(before.channel_id, before.sender_id, before.wire_profile))
    archive = store.archive()
    try:
        log = MessageLog(maxsize, recorder=recorder, archive=archive)
        log.restore_from(saved.tables, saved.newest)
        for below_ms in (*steps_ms, older_than_ms):
            log.forget_before(below_ms)
            if changes := recorder.take():
                store.write(changes)
    finally:
        archive.close()
        store.close()
    with (
        _owned(path),
        _errors(path),
        closing(sqlite3.connect(path, isolation_level=None)) as connection,
    ):
        if not connection.execute("PRAGMA auto_vacuum").fetchone()[0]:
            # An older file has no steps, because its header says so: the loop would never end.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("VACUUM")
        while connection.execute("PRAGMA freelist_count").fetchone()[0]:
            connection.execute(f"PRAGMA incremental_vacuum({PAGES_AT_A_TIME})").fetchall()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    after = summary(path)
    return before.messages - after.messages, before.size_bytes - after.size_bytes


def is_in_use(path: Path) -> bool:
    """Return True if a channel has the state file open."""
    try:
        with _owned(path):
            return False
    except StateInUse:
        return True
    except StateError:
        return False


def _target(path: Path) -> Path:
    """Return the file that a link names, since the WAL and the count of writes lie beside it."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


@contextmanager
def _owned(path: Path) -> Iterator[None]:
    path = _target(path)
    ownership = Ownership(path)
    existed = path.exists()
    ownership.take()
    try:
        yield
    finally:
        if not existed and not path.stat().st_size:
            path.unlink()  # made by taking it
        ownership.release()


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that cannot write.

    Raises:
        StateError: there is no such file, or it is not ours.
    """
    if not path.is_file():
        raise StateUnavailable(
            f"{path} is not a file; `reliable-channel state list` lists the state files"
        )
    path = _target(path)
    # Without a WAL nobody writes, and a read-only directory is readable all the same.
    how = "mode=ro" if Path(f"{path}-wal").exists() else "mode=ro&immutable=1"
    with _errors(path):
        schema.examine(path)
        uri = f"{path.absolute().as_uri()}?{how}"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S)) as connection:
            connection.execute("BEGIN")
            yield connection


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
        raise state_error(path, error) from error
    except OSError as error:
        raise StateUnavailable(f"{path} cannot be read: {error}") from error


def _identity(connection: sqlite3.Connection, path: Path) -> Identity:
    is_made = schema.version(connection)
    found = connection.execute("SELECT * FROM identity").fetchone() if is_made else None
    if found is None:
        raise StateUnavailable(f"{path} is empty: no channel has written to it yet")
    return Identity(*found)


def _identity_if_readable(connection: sqlite3.Connection, path: Path) -> Identity | None:
    try:
        return _identity(connection, path)
    except (StateError, sqlite3.Error, TypeError):
        return None


def _read_changes(log: ChangeLog, connection: sqlite3.Connection, path: Path) -> int:
    """Read the change log; return how many transactions the file has been through."""
    noted = continuity.noted_commits(continuity.values(connection, path))
    return log.read(connection, path, noted)


def _count(connection: sqlite3.Connection, log: ChangeLog, table: str) -> int:
    tables = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    return 0 if tables is None else log.count(connection, table)
