"""What storage does to a state file: kept where that is promised, and found in any case."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reliable_channel.sds.changes import Changes, Table
from reliable_channel.sds.message import LogEntry
from reliable_channel.state import (
    Identity,
    Saved,
    SqliteStateStore,
    StateCorrupt,
    StateError,
    StateInUse,
    StateUnavailable,
    continuity,
    files,
)

ALICE = Identity("general", "alice", "spec")
NOTES = Table("notes", (("name", "TEXT"), ("number", "INTEGER"), ("data", "BLOB")))
FLIPS = 400


def step(number: int) -> Changes:
    """What a step writes: a row, and an entry of the log."""
    entry = LogEntry(f"m{number:04}", "bob", number, b"content %d" % number, b"h" * 32)
    row = (f"note {number % 20}", number, bytes(range(50)))
    return Changes(entries={entry.message_id: entry.row}, rows={(NOTES, row[0]): row})


def content(saved: Saved) -> Any:
    return sorted(saved.tables.get("notes", ())), [entry.row for entry in saved.newest]


def written(path: Path, steps: int = 60, *, crash: bool = False) -> SqliteStateStore:
    """A file with some steps, closed, or as a killed process leaves it."""
    store = SqliteStateStore(path)
    store.open(ALICE)
    for number in range(steps):
        store.write(step(number))
    if crash:
        left = path.with_name("left")
        left.mkdir()
        for each in path.parent.glob(f"{path.name}*"):
            shutil.copy(each, left)
    store.close()
    if crash:
        for each in left.iterdir():
            shutil.move(each, path.parent / each.name)
    return store


def reopened(path: Path) -> Saved:
    store = SqliteStateStore(path)
    saved = store.open(ALICE)
    store.close()
    return saved


# -- what is not ours ------------------------------------------------------------------------------


@pytest.mark.parametrize("journal_mode", ["delete", "wal"])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_database_of_something_else_is_not_written_to(
    tmp_path: Path, version: int, journal_mode: str
) -> None:
    path = tmp_path / "accounts.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA journal_mode = {journal_mode}")
        connection.execute("CREATE TABLE accounts (name, balance)")
        connection.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(StateCorrupt, match="another program"):
        SqliteStateStore(path).open(ALICE)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*-wal"))
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_schema").fetchall()
        assert tables == [("accounts",)]


# -- bits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_is_found_and_not_served(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "state.db"
    written(path)
    whole, expected = path.read_bytes(), content(reopened(path))
    random, found = Random(seed), 0
    for _ in range(FLIPS // 4):
        damaged, place = bytearray(whole), random.randrange(8 * len(whole))
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            saved = reopened(path)
        except StateError as error:
            found += 1
            assert not error.retryable, f"bit {place}: {error}"
        else:
            assert content(saved) == expected, f"bit {place} was served"
    assert found > 0


def test_a_flipped_bit_of_a_wal_takes_back_writes_and_says_so(tmp_path: Path) -> None:
    path, wal = tmp_path / "state.db", tmp_path / "state.db-wal"
    written(path, 20, crash=True)
    left = {each: each.read_bytes() for each in tmp_path.glob("state.db*")}
    expected = content(reopened(path))
    random, taken_back = Random(7), 0
    for _ in range(40):
        for each, data in left.items():
            each.write_bytes(data)
        damaged, place = bytearray(left[wal]), random.randrange(8 * len(left[wal]))
        damaged[place // 8] ^= 1 << place % 8
        wal.write_bytes(damaged)
        try:
            saved = reopened(path)
        except StateCorrupt:
            continue
        taken_back += saved.rolled_back is not None
        assert content(saved) == expected or saved.rolled_back, f"bit {place}"
    assert taken_back > 0


def test_a_row_under_another_key_is_found(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    written(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE notes SET name = 'note 99' WHERE name = 'note 3'")
    with pytest.raises(StateCorrupt, match="a row of 'notes' does not fit its checksum"):
        reopened(path)


def test_a_flipped_bit_is_found_when_the_file_is_read_later(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStateStore(path)
    store.open(ALICE)
    store.write(step(5))
    archive = store.archive()
    assert archive.get("m0005") is not None
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE log SET content = X'00'")
    with pytest.raises(StateCorrupt, match="checksum"):
        archive.get("m0005")
    with pytest.raises(StateCorrupt, match="checksum"):
        list(archive.entries(None, (99, "")))
    (row,) = step(5).entries.values()
    store.write(Changes(hints={"m0005": (*row[:4], b"hint")}))
    with pytest.raises(StateCorrupt, match="checksum"):
        archive.get("m0005")  # what is written beside it does not vouch for it
    archive.close()
    store.close()


def test_a_tail_that_is_missing_is_found(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    written(path)
    whole = path.read_bytes()
    for kept in range(0, len(whole), 2_048):
        path.write_bytes(whole[:kept])
        try:
            saved = reopened(path)
        except StateCorrupt:
            continue
        assert saved.rolled_back is not None, f"{kept} bytes"


# -- what is missing -------------------------------------------------------------------------------


def test_a_file_that_was_left_as_it_was_lacks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    written(path, crash=True)
    for _ in range(3):
        assert reopened(path).rolled_back is None


def test_a_file_that_is_written_while_it_is_read_lacks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, values = tmp_path / "state.db", continuity.values
    store = SqliteStateStore(path)
    store.open(ALICE)

    def written_meanwhile(*given: Any) -> Any:
        found = values(*given)
        store.write(step(0))
        return found

    monkeypatch.setattr(continuity, "values", written_meanwhile)
    assert not files.lacking(path)
    store.close()


def test_a_copy_that_is_restored_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    written(path, 10)
    copy = path.read_bytes()
    store = SqliteStateStore(path)
    store.open(ALICE)
    for number in range(10, 17):
        store.write(step(number))
    store.close()
    path.write_bytes(copy)
    rolled_back = reopened(path).rolled_back
    assert rolled_back is not None
    assert rolled_back.missing_writes == 9  # and that it was opened, and closed
    assert "lacks the last 9 writes" in rolled_back.reason
    assert reopened(path).rolled_back is None, "it is said once"


@pytest.mark.parametrize("kept", [None, 0, 0.5])
def test_a_wal_that_is_gone_or_cut_short_is_noticed(tmp_path: Path, kept: float | None) -> None:
    path, wal = tmp_path / "state.db", tmp_path / "state.db-wal"
    written(path, 10, crash=True)
    if kept is None:
        wal.unlink()
    else:
        wal.write_bytes(wal.read_bytes()[: int(wal.stat().st_size * kept)])
    rolled_back = reopened(path).rolled_back
    assert rolled_back is not None
    assert rolled_back.missing_writes
    assert 0 < rolled_back.missing_writes <= 10


def test_a_file_that_is_deleted_or_another_one_is_noticed(tmp_path: Path) -> None:
    path, other = tmp_path / "state.db", tmp_path / "other.db"
    written(path, 10)
    path.unlink()
    saved = reopened(path)
    assert saved.rolled_back is not None
    assert "is gone, with all of its 12 writes" in saved.rolled_back.reason
    assert content(saved) == ([], [])
    written(other, 3)
    other.replace(path)
    saved = reopened(path)
    assert saved.rolled_back is not None
    assert "was replaced" in saved.rolled_back.reason


def test_a_copy_of_the_file_alone_lacks_its_wal(tmp_path: Path) -> None:
    path, copy = tmp_path / "state.db", tmp_path / "copy.db"
    written(path, 10, crash=True)
    shutil.copy(path, copy)
    rolled_back = reopened(copy).rolled_back
    assert rolled_back is not None
    assert "has no -wal file" in rolled_back.reason


def test_a_crashed_file_is_not_opened_under_another_hard_link(tmp_path: Path) -> None:
    path, other = tmp_path / "state.db", tmp_path / "other.db"
    written(path, 10, crash=True)
    other.hardlink_to(path)
    with pytest.raises(StateUnavailable, match="open the state under the other name"):
        reopened(other)
    assert content(reopened(path)) == content(reopened(other))


# -- while it is in use ----------------------------------------------------------------------------


def test_a_file_that_is_taken_away_while_in_use_is_noticed_at_the_next_write(
    tmp_path: Path,
) -> None:
    path, away, other = (tmp_path / name for name in ("state.db", "away.db", "other.db"))
    store = SqliteStateStore(path)
    store.open(ALICE)
    store.write(step(0))
    path.rename(away)
    with pytest.raises(StateUnavailable, match="was deleted during use"):
        store.write(step(1))
    written(other, 1)
    other.rename(path)
    with pytest.raises(StateUnavailable, match="was replaced by another file"):
        store.write(step(1))
    away.replace(path)
    store.write(step(1))
    store.close()
    assert len(reopened(path).newest) == 2


def lose(wal: Path) -> None:
    wal.unlink()


def exchange(wal: Path) -> None:
    wal.unlink()
    wal.write_bytes(b"")


@pytest.mark.parametrize("fault", [lose, exchange])
@pytest.mark.parametrize("reads", [False, True])
def test_a_wal_that_is_deleted_while_in_use_loses_nothing(
    tmp_path: Path, fault: Callable[[Path], None], reads: bool
) -> None:
    path = tmp_path / "state.db"
    store = SqliteStateStore(path)
    store.open(ALICE)
    archive = store.archive()
    for number in range(5):
        store.write(step(number))
    if reads:
        assert archive.count(None, (99, "")) == 5
    fault(tmp_path / "state.db-wal")
    with pytest.raises(StateUnavailable, match="was deleted or replaced during use"):
        store.write(step(5))
    for number in range(5, 9):
        store.write(step(number))
        assert archive.count(None, (99, "")) == number + 1
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for each in tmp_path.glob("state.db*"):
        shutil.copy(each, crashed)
    archive.close()
    store.close()
    for directory in (tmp_path, crashed):
        saved = reopened(directory / "state.db")
        assert [entry.lamport_timestamp for entry in saved.newest] == list(range(9))
        assert saved.rolled_back is None


def test_another_writer_is_noticed_where_no_lock_kept_it_away(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStateStore(path)
    store.open(ALICE)
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE state_file SET value = value + 1 WHERE name = 'commits'")
    with pytest.raises(StateInUse, match="another process wrote to"):
        store.write(step(1))
    store.close()


def test_the_wal_gives_its_room_back_after_a_flood(tmp_path: Path) -> None:
    path, wal = tmp_path / "state.db", tmp_path / "state.db-wal"
    store = SqliteStateStore(path)
    store.open(ALICE)
    store.write(step(0))
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT COUNT(*) FROM log").fetchone()  # nothing is recycled meanwhile
        for number in range(20):
            store.write(Changes(rows={(NOTES, "large"): ("large", number, bytes(1_000_000))}))
    assert wal.stat().st_size > 20_000_000
    for number in range(1, 4):
        store.write(step(number))
    assert wal.stat().st_size < 10_000_000
    store.close()
