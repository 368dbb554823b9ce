"""Files that earlier versions wrote. `data/version-1.db` is from before rows had checksums."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reliable_channel import MessageReceived
from reliable_channel.state import Identity, SqliteStateStore, StateCorrupt, schema
from reliable_channel.transport import MemoryNetwork
from tests.channel.world import make_channel

DATA = Path(__file__).parent / "data"
EXPECTED: dict[str, Any] = json.loads((DATA / "version-1.json").read_text())
ALICE = Identity("general", "alice", "spec")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copy(DATA / "version-1.db", tmp_path / "state.db"))


def rows(path: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(path)) as connection:
        names = [n for (n,) in connection.execute("SELECT name FROM sqlite_schema").fetchall()]
        return {
            name: sorted(row[:-1] for row in connection.execute(f"SELECT * FROM {name}").fetchall())
            for name in names
            if name in EXPECTED["rows"] and name != "identity"
        }


def test_every_row_is_there_again_with_a_checksum(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection:
        before = {
            name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall())
            for name in EXPECTED["rows"]
            if name != "identity"
        }
    store = SqliteStateStore(old)
    saved = store.open(ALICE)
    store.close()
    assert saved.rolled_back is None
    assert rows(old) == before
    assert {name: len(found) for name, found in saved.tables.items()} == {
        name: count for name, count in EXPECTED["rows"].items() if name not in ("identity", "log")
    }
    assert len(saved.newest) == EXPECTED["length"]
    with closing(sqlite3.connect(old)) as connection:
        assert schema.version(connection) == len(schema.MIGRATIONS)
    with closing(sqlite3.connect(old)) as connection, connection:
        connection.execute("UPDATE sends SET number = number + 1 WHERE number = 1")
    with pytest.raises(StateCorrupt, match="checksum"):
        store.open(ALICE)


def test_a_migration_that_is_interrupted_leaves_the_file_as_it_was(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("the power is gone")

    before = rows(old)
    with monkeypatch.context() as patched:
        patched.setattr(schema, "seal", fails)
        with pytest.raises(Exception, match="the power is gone"):
            SqliteStateStore(old).open(ALICE)
    with closing(sqlite3.connect(old)) as connection:
        assert schema.version(connection) == 1
    assert rows(old) == before


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
