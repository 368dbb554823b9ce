"""`waku_archive`: the database of a node's Store, without the node.

nwaku keeps its messages in SQLite or PostgreSQL (tables as its migrations leave them: 00010 for
SQLite, version 6 and later for PostgreSQL), the embedded node of `waku` in SQLite.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ..schemas import STORED
from .batches import BATCH_ROWS, arrow_schema, batch
from .options import whole

_BETWEEN: Final = "WHERE timestamp BETWEEN {first} AND {last} ORDER BY timestamp"
_NWAKU_SQLITE: Final = (
    "SELECT messageHash, CAST(pubsubTopic AS TEXT), CAST(contentTopic AS TEXT), timestamp, payload,"
    f" meta FROM message {_BETWEEN}"
)
_EMBEDDED: Final = (
    "SELECT hash, pubsub_topic, content_topic, timestamp, payload, nullif(meta, x'') FROM message "
    + _BETWEEN
)
# PostgreSQL has bytes as hex in text.
_NWAKU_POSTGRESQL: Final = (
    "SELECT decode(messagehash, 'hex'), pubsubtopic, contenttopic, timestamp, "
    "decode(payload, 'hex'), decode(nullif(meta, ''), 'hex') FROM messages " + _BETWEEN
)


class Database(Protocol):
    """A database with messages."""

    def bounds(self) -> tuple[int, int] | None:
        """The first and the last timestamp, or None where it is empty."""
        ...

    def messages(self, first_ns: int, last_ns: int) -> Iterator[pa.RecordBatch]:
        """What was sent between two times, both included, as rows of `STORED`."""
        ...


@dataclass(frozen=True, slots=True)
class SqliteDatabase:
    """A file; opened for reading, so that a node may go on writing."""

    path: str

    def bounds(self) -> tuple[int, int] | None:
        """The first and the last timestamp."""
        with closing(self._connect()) as connection:
            first, last = connection.execute(
                "SELECT min(timestamp), max(timestamp) FROM message"
            ).fetchone()
            return None if first is None else (first, last)

    def messages(self, first_ns: int, last_ns: int) -> Iterator[pa.RecordBatch]:
        """Rows of whichever node wrote the file."""
        with closing(self._connect()) as connection:
            columns = {row[1] for row in connection.execute("PRAGMA table_info(message)")}
            query = _NWAKU_SQLITE if "messageHash" in columns else _EMBEDDED
            rows = connection.execute(query.format(first="?", last="?"), (first_ns, last_ns))
            while some := rows.fetchmany(BATCH_ROWS):
                yield batch(some, arrow_schema(STORED))

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{Path(self.path).absolute().as_uri()}?mode=ro", uri=True)


@dataclass(frozen=True, slots=True)
class PostgresqlDatabase:
    """A server."""

    uri: str

    def bounds(self) -> tuple[int, int] | None:
        """The first and the last timestamp."""
        query = "SELECT min(timestamp) AS first, max(timestamp) AS last FROM messages"
        (row,) = (row for rows in self._asked(query) for row in rows.to_pylist())
        return None if row["first"] is None else (row["first"], row["last"])

    def messages(self, first_ns: int, last_ns: int) -> Iterator[pa.RecordBatch]:
        """Rows as nwaku writes them."""
        schema = arrow_schema(STORED)
        for rows in self._asked(_NWAKU_POSTGRESQL.format(first=first_ns, last=last_ns)):
            columns = [
                column.cast(field.type) for column, field in zip(rows.columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _asked(self, query: str) -> Iterator[pa.RecordBatch]:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.uri) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            yield from cursor.fetch_record_batch()


def database(address: str) -> Database:
    """The database at an address.

    Raises:
        ValueError: no address.
        FileNotFoundError: a file that is not there.
    """
    if address.startswith(("postgresql://", "postgres://")):
        return PostgresqlDatabase(address)
    path = address.removeprefix("sqlite:///")
    if not path:
        raise ValueError(
            "waku_archive needs a database: .option('database', 'store.sqlite3'), or "
            "'postgresql://user:password@host/name'"
        )
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path} is not there; give the SQLite file of a node's Store")
    return SqliteDatabase(path)


@dataclass
class Span(InputPartition):
    """One task's share: two times, both included."""

    first_ns: int
    last_ns: int


class ArchiveReader(DataSourceReader):
    """Reads by ranges of time."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._database = database(options.get("database", ""))
        self._partitions = whole(options, "partitions", 4)

    def partitions(self) -> list[Span]:
        """Ranges of equal length from the first message to the last."""
        bounds = self._database.bounds()
        if bounds is None:
            return []
        first_ns, last_ns = bounds
        step = -(-(last_ns - first_ns + 1) // self._partitions)
        starts = range(first_ns, last_ns + 1, step)
        return [Span(start, min(start + step - 1, last_ns)) for start in starts]

    def read(self, partition: Span) -> Iterator[pa.RecordBatch]:
        """The messages of a range."""
        return self._database.messages(partition.first_ns, partition.last_ns)


class ArchiveSource(DataSource):
    """`spark.read.format("waku_archive").option("database", "store.sqlite3").load()`."""

    @classmethod
    def name(cls) -> str:
        """The format."""
        return "waku_archive"

    def schema(self) -> StructType:
        """A message a row."""
        return STORED

    def reader(self, schema: StructType) -> ArchiveReader:
        """What is stored now."""
        return ArchiveReader(self.options)
