"""Which transactions wait for the disk, and that the write-ahead log stays short without them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from reliable_channel.sds.changes import Changes, Table
from reliable_channel.sds.message import LogEntry
from reliable_channel.state import Identity, SqliteStateStore, change_log
from reliable_channel.state.checkpoints import WAL_BYTES
from tests import inside

ALICE = Identity("general", "alice", "spec")
NOTES = Table("notes", (("name", "TEXT"), ("data", "BLOB")))
OTHERS = Table("others", (("name", "TEXT"), ("data", "BLOB")))


def put(name: str, data: bytes = b"", table: Table = NOTES) -> Changes:
    return Changes(rows={(table, name): (name, data)})


def message(number: int, content: bytes) -> Changes:
    entry = LogEntry(f"message {number}", "alice", number, content, None)
    return Changes(entries={entry.message_id: entry.row})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStateStore]:
    store = SqliteStateStore(tmp_path / "state.db")
    store.open(ALICE)
    store.write(put("first"))
    store.write(put("first"))
    yield store
    store.close()


@pytest.fixture
def checkpoints(monkeypatch: pytest.MonkeyPatch, store: SqliteStateStore) -> list[str]:
    """What the store says to SQLite of checkpoints."""
    statements: list[str] = []
    inside.connection(store).set_trace_callback(
        lambda statement: statements.append(statement) if "checkpoint" in statement else None
    )
    return statements


def wal_bytes(store: SqliteStateStore) -> int:
    return Path(f"{store.path}-wal").stat().st_size


def test_a_transaction_that_appends_is_quick(store: SqliteStateStore) -> None:
    assert store.is_quick(put("second"))
    assert store.is_quick(message(1, b"hello"))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(put("other", table=OTHERS), id="a new table"),
        pytest.param(Changes(rows={(NOTES, n): (n, b"") for n in range(500)}), id="many rows"),
        pytest.param(message(1, bytes(1_000_000)), id="long content"),
        pytest.param(
            Changes(rows={(NOTES, n): (n, bytes(5_000)) for n in range(40)}), id="long rows"
        ),
        pytest.param(
            Changes(hints={str(n): (str(n), "", n, b"", b"hint") for n in range(500)}), id="hints"
        ),
        pytest.param(Changes(removed={str(n) for n in range(500)}), id="entries taken out"),
        pytest.param(Changes(trimmed_below=(4096, "")), id="old messages leave the log"),
    ],
)
def test_what_does_more_than_append_is_not_quick(store: SqliteStateStore, changes: Changes) -> None:
    assert not store.is_quick(changes)


def test_a_transaction_that_moves_rows_is_not_quick_and_ends_with_a_checkpoint(
    store: SqliteStateStore, checkpoints: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_log, "MAX_WRITES", 50)
    for number in range(49):
        assert store.is_quick(put(f"note {number}")), number
        store.write(put(f"note {number}"))
    assert not store.is_quick(put("last"))
    assert not checkpoints
    store.write(put("last"))
    assert len(checkpoints) == 1
    assert not store.is_quick(put("next")), "it begins the WAL anew, and waits for the disk"
    store.write(put("next"))
    assert store.is_quick(put("after that"))


def test_no_quick_transaction_does_a_checkpoint(
    store: SqliteStateStore, checkpoints: list[str]
) -> None:
    quick = 0
    for number in range(500):
        changes, before = message(number, bytes(50_000)), len(checkpoints)
        is_quick = store.is_quick(changes)
        store.write(changes)
        assert len(checkpoints) == before or not is_quick, number
        quick += is_quick
    assert 5 <= len(checkpoints) <= 10  # 35 MB, and one is due after 4 MB
    assert quick >= 480


def test_the_write_ahead_log_stays_short(store: SqliteStateStore) -> None:
    for number in range(4 * WAL_BYTES // 100_000):
        store.write(message(number, bytes(100_000)))
        assert wal_bytes(store) < 2 * WAL_BYTES
    assert store.path.stat().st_size > 3 * WAL_BYTES


def test_where_power_may_fail_none_is_quick(tmp_path: Path) -> None:
    store = SqliteStateStore(tmp_path / "state.db", durability="power")
    store.open(ALICE)
    store.write(put("first"))
    assert not store.is_quick(put("second"))
    store.close()


def test_a_checkpoint_that_fails_takes_nothing_back(store: SqliteStateStore) -> None:
    refused: list[int] = []

    def authorize(action: int, name: str | None, *_: object) -> int:
        if name != "wal_checkpoint":
            return sqlite3.SQLITE_OK
        refused.append(action)
        return sqlite3.SQLITE_DENY

    inside.connection(store).set_authorizer(authorize)
    for number in range(change_log.MAX_WRITES + 1):
        store.write(put(f"note {number}"))
    store.close()
    assert refused
    saved = SqliteStateStore(store.path)
    assert len(saved.open(ALICE).tables["notes"]) == change_log.MAX_WRITES + 2
    saved.close()
