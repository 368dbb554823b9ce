"""Rows that are appended first and moved into their tables together."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from reliable_channel.sds.changes import Changes, Row, Table, Value
from reliable_channel.state import (
    Identity,
    SqliteStateStore,
    StateCorrupt,
    StateUnavailable,
    change_log,
    files,
)
from reliable_channel.state.change_log import pack, unpack

ALICE = Identity("general", "alice", "spec")
NOTES = Table("notes", (("name", "TEXT"), ("number", "INTEGER"), ("data", "BLOB")))
OUTGOING = Table("outgoing_messages", (("message_id", "TEXT"), ("data", "BLOB")))


def put(name: str, number: int | None = 1, data: bytes | None = b"") -> Changes:
    return Changes(rows={(NOTES, name): (name, number, data)})


def deleted(name: str) -> Changes:
    return Changes(rows={(NOTES, name): None})


def opened(path: Path) -> SqliteStateStore:
    """A store with a table, which makes its first row go there at once."""
    store = SqliteStateStore(path)
    store.open(ALICE)
    store.write(put("first"))
    return store


def crashed(path: Path, to: Path) -> Path:
    """A copy of a file as it is left by a process that is killed now."""
    to.mkdir()
    for each in path.parent.glob(f"{path.name}*"):
        shutil.copy(each, to)
    return to / path.name


def notes(path: Path) -> list[Row]:
    store = SqliteStateStore(path)
    saved = store.open(ALICE)
    store.close()
    assert saved.rolled_back is None
    return sorted(saved.tables["notes"])


def waiting(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM change_log").fetchone()[0])


def test_what_is_packed_comes_back() -> None:
    random = Random(5)
    values: list[Value] = [None, 0, -(2**63), 2**63 - 1, "", "é\0x", b"", bytes(range(256))]
    for _ in range(50):
        rows = {
            (NOTES, key): random.choice([None, (key, *random.choices(values, k=2))])
            for key in (random.choice(values[1:]) for _ in range(4))
        }
        unpacked, large = unpack(pack(rows).data)
        assert {(NOTES, key): row for (_, key), row in unpacked.items()} == rows
        assert {table.name for table, _ in unpacked} == {"notes"} and not large


def test_a_number_that_no_column_can_have_is_refused() -> None:
    with pytest.raises(struct.error):
        pack({(NOTES, "a"): ("a", 2**63)})


def test_rows_are_there_after_a_crash_and_after_a_close(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = opened(path)
    store.write(put("second", None, None))
    store.write(put("third", 3, b"3"))
    store.write(put("second", 2, b"2"))
    store.write(deleted("first"))
    expected = [("second", 2, b"2"), ("third", 3, b"3")]
    assert waiting(path) == 4
    assert notes(crashed(path, tmp_path / "crashed")) == expected
    store.close()
    assert waiting(path) == 0
    assert notes(path) == expected


@pytest.mark.parametrize("limits", [{"MAX_WRITES": 3}, {"MAX_BYTES": 100}])
def test_no_more_rows_wait_than_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, int]
) -> None:
    for name, limit in limits.items():
        monkeypatch.setattr(change_log, name, limit)
    path = tmp_path / "state.db"
    store, expected, seen = opened(path), {"first": ("first", 1, b"")}, set()
    for number in range(40):
        name = f"note {number % 6}"
        store.write(put(name, number, b"x" * number))
        expected[name] = (name, number, b"x" * number)
        seen.add(waiting(path))
    assert {0, 1} <= seen <= {0, 1, 2, 3}
    assert notes(crashed(path, tmp_path / "crashed")) == sorted(expected.values())
    store.close()


def test_the_rows_of_a_large_transaction_do_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_log, "MAX_TRANSACTION_BYTES", 1_000)
    store = opened(tmp_path / "state.db")
    store.write(put("second"))
    store.write(Changes(rows={(NOTES, f"{n}"): (f"{n}", n, bytes(20)) for n in range(50)}))
    assert waiting(store.path) == 0
    store.close()
    assert len(notes(store.path)) == 52


def test_a_large_row_is_written_once(tmp_path: Path) -> None:
    path, large = tmp_path / "state.db", bytes(change_log.LARGE_BYTES + 1)
    store = opened(path)
    for number, data in enumerate([b"", large, b"", large, large + b"2"]):
        store.write(put("second", number, data))
        expected = [("first", 1, b""), ("second", number, data)]
        assert notes(crashed(path, tmp_path / f"{number}")) == expected
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT rows FROM change_log").fetchall()
    assert len(rows) == 5
    assert all(len(row) < 100 for (row,) in rows)
    store.write(deleted("second"))
    store.close()
    assert notes(path) == [("first", 1, b"")]


def test_a_write_that_fails_while_rows_are_moved_leaves_all_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.db"
    store = opened(path)
    store.write(put("second"))
    monkeypatch.setattr(change_log, "MAX_WRITES", 1)
    wrong = Changes(rows={(NOTES, "wrong"): ("wrong", "not a number", b"")})
    with pytest.raises(Exception, match="INTEGER"):
        store.write(wrong)
    assert waiting(path) == 1
    store.write(put("third"))
    store.close()
    assert [name for name, *_ in notes(path)] == ["first", "second", "third"]


def test_what_was_added_after_a_failed_write_is_written(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store, changes = opened(path), put("second")
    store.write(put("first", 2))
    assert store.is_quick(changes)
    path.rename(tmp_path / "away")
    with pytest.raises(StateUnavailable):
        store.write(changes)
    (tmp_path / "away").rename(path)
    changes.add(put("third"))
    assert store.is_quick(changes)
    store.write(changes)
    store.close()
    assert [name for name, *_ in notes(path)] == ["first", "second", "third"]


def test_a_row_that_is_damaged_or_missing_is_found(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = opened(path)
    for number in range(5):
        store.write(put("second", number))
    damages = {
        "checksum": "UPDATE change_log SET rows = X'00' WHERE number % 3 = 0",
        "is missing": "DELETE FROM change_log WHERE number % 3 = 0",
    }
    for number, (found, statement) in enumerate(damages.items()):
        copy = crashed(path, tmp_path / str(number))
        with closing(sqlite3.connect(copy)) as connection, connection:
            connection.execute(statement)
        with pytest.raises(StateCorrupt, match=found):
            SqliteStateStore(copy).open(ALICE)
        assert any(found in problem for problem in files.check(copy))
    store.close()


def test_rows_that_wait_count_in_a_summary(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStateStore(path)
    store.open(ALICE)
    for name in "abc":
        store.write(Changes(rows={(OUTGOING, name): (name, b"x")}))
    store.write(Changes(rows={(OUTGOING, "a"): None}))
    assert waiting(path) == 3
    found = files.summary(path)
    assert (found.unacknowledged, found.writes) == (2, 5)
    store.close()
    assert files.summary(path).unacknowledged == 2
