"""State in a file, and all that can be wrong with a file."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from reliable_channel.engine.archive_overlay import ArchiveOverlay
from reliable_channel.sds.changes import Changes, Table
from reliable_channel.sds.message import LogEntry
from reliable_channel.state import (
    Identity,
    SqliteStateStore,
    StateCorrupt,
    StateInUse,
    StateUnavailable,
    StateVersionTooNew,
)
from reliable_channel.state.connect import sqlite_store
from reliable_channel.state.continuity import Continuity
from reliable_channel.state.sqlite_archive import SqliteArchive
from tests import inside

ALICE = Identity("general", "alice", "spec")
NOTES = Table("notes", (("name", "TEXT"), ("data", "BLOB")))


def put(name: str, data: bytes = b"") -> Changes:
    return Changes(rows={(NOTES, name): (name, data)})


def test_one_owner_at_a_time(tmp_path: Path) -> None:
    first, second = (SqliteStateStore(tmp_path / "state.db") for _ in range(2))
    first.open(ALICE)
    with pytest.raises(StateInUse, match="one owner at a time"):
        second.open(ALICE)
    first.close()
    second.open(ALICE)
    second.close()


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStateStore(path)
    store.open(ALICE)
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StateVersionTooNew, match="version 99"):
        store.open(ALICE)


@pytest.mark.parametrize("content", [b"no database at all, but long enough" * 100, b"SQLite fo"])
def test_what_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(content)
    with pytest.raises(StateCorrupt, match="move it away"):
        SqliteStateStore(path).open(ALICE)
    assert path.read_bytes() == content


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 1")
        connection.execute("CREATE TABLE precious (data)")
    connection.close()
    with pytest.raises(StateCorrupt, match="another program"):
        SqliteStateStore(path).open(ALICE)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStateStore(path)
    store.open(ALICE)
    for number in range(200):
        store.write(put(f"row {number}", os.urandom(2_000)))
    store.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StateCorrupt, match="damaged"):
        store.open(ALICE)


def test_text_that_a_disk_changed_is_damage(tmp_path: Path) -> None:
    """SQLite hands out bytes that are no UTF-8 as they are; found by fuzzing."""
    path = tmp_path / "state.db"
    store = SqliteStateStore(path)
    store.open(ALICE)
    store.write(put("a name to be found"))
    store.close()
    path.write_bytes(path.read_bytes().replace(b"a name to be found", b"a name \xff\xfe be found"))
    with pytest.raises(StateCorrupt, match="damaged"):
        store.open(ALICE)


def test_a_path_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateUnavailable, match=r"state\.db"):
        SqliteStateStore(tmp_path / "file" / "state.db").open(ALICE)


def test_a_full_disk_refuses_the_whole_transaction(tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "state.db")
    store.open(ALICE)
    # What SQLite says when it cannot grow is the same for a quota of its own and for a full disk.
    (pages,) = inside.connection(store).execute("PRAGMA page_count").fetchone()
    inside.connection(store).execute(f"PRAGMA max_page_count = {pages + 4}")
    with pytest.raises(StateUnavailable, match="full"):
        store.write(put("large", b"x" * 1_000_000))
    store.write(put("small"))
    store.close()
    assert list(store.open(ALICE).tables["notes"]) == [("small", b"")]
    store.close()


def test_a_number_too_large_for_the_file_refuses_the_transaction(tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "state.db")
    store.open(ALICE)
    numbers = Table("numbers", (("name", "TEXT"), ("number", "INTEGER")))
    with pytest.raises(StateUnavailable):
        store.write(Changes(rows={(numbers, "a"): ("a", 2**64)}))
    store.write(Changes(rows={(numbers, "a"): ("a", 2**62)}))
    store.close()


@pytest.mark.parametrize(
    ("durability", "level"), [("process", 1), ("power", 2)], ids=["normal", "full"]
)
def test_durability_chooses_what_a_transaction_waits_for(
    tmp_path: Path, durability: str, level: int
) -> None:
    url = f"sqlite:///{tmp_path}/{{channel_id}}.db?durability={durability}"
    store = sqlite_store(url.replace("sqlite:///", "sqlite:////"), "a/b", "alice")
    assert isinstance(store, SqliteStateStore)
    store.open(ALICE)
    assert inside.connection(store).execute("PRAGMA synchronous").fetchone() == (level,)
    assert inside.connection(store).execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()
    assert (tmp_path / "a%2Fb.db").exists()


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:",
        "sqlite:///",
        "sqlite://host/path",
        "sqlite:///a?mode=x",
        "sqlite:///a?durability=never",
    ],
)
def test_a_url_that_cannot_be(url: str) -> None:
    with pytest.raises(ValueError, match="sqlite:///relative/path"):
        sqlite_store(url, "general", "alice")


def test_the_small_tables_are_strict(tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "state.db")
    store.open(ALICE)
    store.write(put("a"))
    tables = inside.connection(store).execute("PRAGMA table_list").fetchall()
    strict = {row[1]: bool(row[5]) for row in tables if not row[1].startswith("sqlite_")}
    assert strict == dict.fromkeys(
        ("change_log", "identity", "log", "log_sums", "notes", "state_file"), True
    )
    store.close()


def test_a_file_that_is_damaged_while_it_is_read_finds_nothing_and_says_why(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStateStore(path)
    store.open(ALICE)
    entries = [LogEntry(f"m{n}", "bob", n, os.urandom(500)) for n in range(500)]
    store.write(Changes(entries={entry.message_id: entry.row for entry in entries}))
    store.close()
    data = bytearray(path.read_bytes())
    data[2 * 4096 :] = b"\xff" * (len(data) - 2 * 4096)
    path.write_bytes(data)
    overlay = ArchiveOverlay(SqliteArchive(path))
    assert overlay.get("m7") is None
    assert list(overlay.entries(None, (1_000, ""))) == []
    assert overlay.count(None, (1_000, "")) == 0
    assert isinstance(overlay.failure, StateCorrupt)
    overlay.close()


@pytest.mark.parametrize("is_there", [False, True], ids=["before commit", "after commit"])
def test_a_write_that_a_signal_interrupts_is_there_or_not_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    store = SqliteStateStore(tmp_path / "state.db")
    store.open(ALICE)
    store.write(put("first"))
    store.write(put("second"))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if is_there:
        monkeypatch.setattr(Continuity, "committed", interrupt)
    else:
        monkeypatch.setattr(store, "_write_log", interrupt)
    entry = LogEntry("message", "alice", 1, b"content", None)
    changes = Changes(entries={"message": entry.row}, rows=put("third").rows)
    with pytest.raises(KeyboardInterrupt):
        store.write(changes)
    monkeypatch.undo()
    with pytest.raises(StateUnavailable, match="interrupted"):
        store.write(changes)
    store.close()
    again = SqliteStateStore(store.path)
    saved = again.open(ALICE)
    assert saved.rolled_back is None
    assert [name for name, _ in saved.tables["notes"]] == ["first", "second"] + ["third"] * is_there
    assert [each.message_id for each in saved.newest] == ["message"] * is_there
    again.close()
