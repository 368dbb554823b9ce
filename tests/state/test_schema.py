"""Files that are not ours are refused as they lie; files of 0.1.0 and later are migrated."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from reliable_channel.state import SqliteStateStore, StateError, files, schema
from tests.state.test_damage import ALICE, content, reopened, written

REFUSED = {
    "a version before 0.1.0 wrote ": (0x53445331, 4),
    "another program": (0x12345678, 1),
    "has version 99": (schema.APPLICATION_ID, 99),
}


@pytest.fixture(params=["closed", "killed", "killed before a checkpoint", "killed in a checkpoint"])
def not_ours(request: pytest.FixtureRequest, tmp_path: Path, refusal: str) -> Path:
    """A file that is refused, as its process left it."""
    made, left = tmp_path / "made" / "state.db", tmp_path / "left" / "state.db"
    for path in (made, left):
        path.parent.mkdir()
    application, version = REFUSED[refusal]
    with closing(sqlite3.connect(made, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("PRAGMA wal_autocheckpoint = 0").fetchone()
        connection.execute("BEGIN")
        connection.execute("CREATE TABLE log (message_id TEXT NOT NULL) STRICT")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute(f"PRAGMA application_id = {application}")
        connection.execute("COMMIT")
        if request.param == "killed":
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            connection.execute("INSERT INTO log VALUES ('of alice')")
        if request.param != "closed":
            shutil.copytree(made.parent, left.parent, dirs_exist_ok=True)
        if request.param == "killed in a checkpoint":
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            left.write_bytes(made.read_bytes()[:4_096])
    if request.param == "closed":
        shutil.copytree(made.parent, left.parent, dirs_exist_ok=True)
    assert left.with_name("state.db-wal").exists() == (request.param != "closed")
    return left


def beside(path: Path) -> dict[str, bytes]:
    """The bytes of a file and of what belongs to its content."""
    return {each.name: each.read_bytes() for each in path.parent.glob("state.db*")}


@pytest.mark.parametrize("refusal", REFUSED)
def test_a_file_that_is_not_ours_is_refused_as_it_lies(not_ours: Path, refusal: str) -> None:
    before = beside(not_ours)
    with pytest.raises(StateError, match=re.escape(refusal)):
        SqliteStateStore(not_ours).open(ALICE)
    lock = {"state.db.lock": b""}
    assert beside(not_ours) == before | lock
    with pytest.raises(StateError, match=re.escape(refusal)):
        files.summary(not_ours)
    assert refusal in files.check(not_ours)[0]
    assert beside(not_ours) == before | lock


def add_note(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE log ADD COLUMN note TEXT NOT NULL DEFAULT 'migrated'")


def fail(_: sqlite3.Connection) -> None:
    raise sqlite3.OperationalError("the power is gone")


def test_a_migration_runs_once_for_old_files_and_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    written(old)
    expected = content(reopened(old))
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, add_note))
    for _ in range(2):
        assert content(reopened(old)) == expected
    written(new)
    for path in (old, new):
        with closing(sqlite3.connect(path)) as connection:
            assert schema.version(connection) == 2
            notes = connection.execute("SELECT DISTINCT note FROM log").fetchall()
            assert notes == [("migrated",)]


def test_migrations_of_which_one_fails_leave_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.db"
    written(path)
    expected = content(reopened(path))
    before = path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, add_note, fail))
        with pytest.raises(Exception, match="the power is gone"):
            SqliteStateStore(path).open(ALICE)
    assert path.read_bytes() == before
    assert content(reopened(path)) == expected
