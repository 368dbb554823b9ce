"""Files that earlier versions wrote. `data/version-1.db` is from before rows had checksums,
`data/version-2.db` from before the log had sums, `data/version-3.db` from before the change log."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reliable_channel import MessageReceived
from reliable_channel.sds.log import MessageLog
from reliable_channel.sds.log_root import LogSums
from reliable_channel.state import Identity, SqliteStateStore, StateCorrupt, schema
from reliable_channel.state.rows import CHECKSUM, checksum
from reliable_channel.transport import MemoryNetwork
from tests.channel.world import make_channel

DATA = Path(__file__).parent / "data"
EXPECTED: dict[str, Any] = json.loads((DATA / "version-1.json").read_text())
ALICE = Identity("general", "alice", "spec")


@pytest.fixture(params=[1, 2, 3])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copy(DATA / f"version-{request.param}.db", tmp_path / "state.db"))


def columns(connection: sqlite3.Connection, table: str) -> list[str]:
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    return [name for name in names if name != CHECKSUM]


def rows(path: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(path)) as connection:
        names = [n for (n,) in connection.execute("SELECT name FROM sqlite_schema").fetchall()]
        return {
            name: sorted(
                connection.execute(f"SELECT {', '.join(columns(connection, name))} FROM {name}")
            )
            for name in names
            if name in EXPECTED["rows"] and name != "identity"
        }


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return schema.version(connection)


def test_every_row_is_there_again_with_a_checksum(old: Path) -> None:
    before = rows(old)
    store = SqliteStateStore(old)
    saved = store.open(ALICE)
    store.close()
    assert saved.rolled_back is None
    assert rows(old) == before
    found_rows = {name: len(found) for name, found in saved.tables.items() if name != "log_sums"}
    assert found_rows == {
        name: count for name, count in EXPECTED["rows"].items() if name not in ("identity", "log")
    }
    assert len(saved.newest) == EXPECTED["length"]
    assert version(old) == len(schema.MIGRATIONS)
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute("UPDATE sends SET number = number + 1 WHERE number = 1")
    with pytest.raises(StateCorrupt, match="checksum"):
        store.open(ALICE)


def test_a_migration_that_is_interrupted_leaves_the_file_as_it_was(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("the power is gone")

    before, begun = rows(old), version(old)
    with monkeypatch.context() as patched:
        patched.setattr(schema, "seal", fails)
        with pytest.raises(Exception, match="the power is gone"):
            SqliteStateStore(old).open(ALICE)
    assert version(old) == begun
    assert rows(old) == before


def test_the_log_of_an_old_file_has_the_sums_of_all_its_messages(old: Path) -> None:
    store = SqliteStateStore(old)
    saved = store.open(ALICE)
    with closing(store.archive()) as archive:
        log = MessageLog(1_000_000, archive=archive, window=5)
        log.restore_from(saved.tables, saved.newest)
    store.close()
    all_sums = LogSums()
    for entry in saved.newest:
        all_sums.add(entry.key)
    assert log.sums.start == 0
    assert log.sums.root(0, 10**10) == all_sums.root(0, 10**10)
    assert log.sums.root(0, 10**10).count == EXPECTED["length"]


@pytest.mark.parametrize("old", [1, 2], indirect=True)  # of files without sums
def test_what_left_an_old_log_is_not_compared(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection, connection:
        ((first, last),) = connection.execute(
            "SELECT MIN(lamport_timestamp), MAX(lamport_timestamp) FROM log"
        )
        horizon = ("horizon_lamport_timestamp", first)
        if version(old) == 1:
            connection.execute("INSERT INTO channel VALUES (?, ?)", horizon)
        else:
            total = checksum("channel", horizon)
            connection.execute("INSERT INTO channel VALUES (?, ?, ?)", (*horizon, total))
    assert first // 1_000 < last // 1_000
    store = SqliteStateStore(old)
    saved = store.open(ALICE)
    store.close()
    log = MessageLog(1_000_000)
    log.restore_from(saved.tables, saved.newest)
    later = [entry for entry in saved.newest if entry.lamport_timestamp // 1_000 > first // 1_000]
    assert log.sums.start == first // 1_000 + 1
    assert log.sums.root(log.sums.start, 10**10).count == len(later)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_channel_goes_on_from_it(old: Path) -> None:
    alice = make_channel(MemoryNetwork().transport(), "alice", state=f"sqlite:///{old}")
    async with alice:
        assert alice.log_digest() == EXPECTED["digest"]
        again = await alice.send(b"of alice 27", idempotency_key="key 27")
        assert again.message_id == EXPECTED["key 27"]
        async for event in alice.events():
            if isinstance(event, MessageReceived):
                assert event.redelivered
                assert event.message_id == EXPECTED["redelivered_from"]
                break
