"""Databases of Stores, by their addresses; those of nwaku are read in `on_spark`."""

from contextlib import closing
from pathlib import Path

import pytest

from reliable_channel_audit.databases import (
    BATCH_ROWS,
    PostgresqlDatabase,
    Selection,
    SqliteDatabase,
    database,
)
from waku import WakuMessage
from waku.node.store import Archive


def test_an_address_names_a_file_or_a_server(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite3").touch()
    assert isinstance(database(f"sqlite:///{tmp_path}/store.sqlite3"), SqliteDatabase)
    assert isinstance(database("postgresql://host/name"), PostgresqlDatabase)
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        database("nowhere")
    with pytest.raises(ValueError, match="an archive needs a database"):
        database("")


def test_rows_come_some_at_a_time_in_order_of_time(tmp_path: Path) -> None:
    path, count = tmp_path / "store.sqlite3", BATCH_ROWS + 7
    with closing(Archive(path)) as archive:
        for number in reversed(range(count)):
            message = WakuMessage(b"x", "/a/1/b/proto", timestamp=1_000 + number)
            archive.insert(number.to_bytes(32), "/waku/2/rs/1/0", message)
    found = database(str(path))
    parts = list(found.rows(Selection()))
    assert [len(part) for part in parts] == [BATCH_ROWS, 7]
    assert [row[3] for part in parts for row in part] == list(range(1_000, 1_000 + count))


def test_a_selection_is_left_to_the_database(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    topics = ("/a/1/b/proto", "/a/1/c/proto", "/it's/1/d/proto")
    with closing(Archive(path)) as archive:
        for number in range(30):
            message = WakuMessage(b"x", topics[number % 3], timestamp=1 + number)
            archive.insert(number.to_bytes(32), f"/waku/2/rs/1/{number % 2}", message)

    def times(wanted: Selection) -> list[int]:
        return [row[3] - 1 for rows in database(str(path)).rows(wanted) for row in rows]

    assert times(Selection(topics[2:])) == list(range(2, 30, 3))
    assert times(Selection(topics[1:], start_ns=24)) == [23, 25, 26, 28, 29]
    assert times(Selection(pubsub_topic="/waku/2/rs/1/1", start_ns=26)) == [25, 27, 29]
