"""Database of a node's Store, which is read without the node.

nwaku stores its messages in SQLite (schema 00010) or PostgreSQL (schema version 6 and later). The
embedded node of `waku` stores its messages in SQLite.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

BATCH_ROWS: Final = 5_000
FIRST_NS: Final = 1
"""Smallest beginning of a time range, because 0 means an unlimited range for nodes."""
Row = tuple[bytes, str | None, str, int, bytes, bytes | None]
"""Hash, pubsub topic, content topic, timestamp (ns), payload and meta of a Waku message."""


@dataclass(frozen=True)
class Selection:
    """Selection of messages from a database. An absent condition selects all messages."""

    content_topics: tuple[str, ...] = ()
    pubsub_topic: str | None = None
    start_ns: int = FIRST_NS


@dataclass(frozen=True, slots=True)
class SqliteDatabase:
    """SQLite database that is opened only for reading, so that a node may continue to write."""

    path: str

    def rows(self, wanted: Selection) -> Iterator[Sequence[Row]]:
        """Yield the selected messages in order of time, in batches. The columns are those of the
        node that wrote the file."""
        address = f"{Path(self.path).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            columns = {row[1] for row in connection.execute("PRAGMA table_info(message)")}
            # nwaku writes topics as BLOBs.
            pubsub, content, columns_read = (
                ("CAST(pubsubTopic AS TEXT)", "CAST(contentTopic AS TEXT)", "messageHash, {}, meta")
                if "messageHash" in columns
                else ("pubsub_topic", "content_topic", "hash, {}, nullif(meta, x'')")
            )
            chosen = columns_read.format(f"{pubsub}, {content}, timestamp, payload")
            where, values = _where(wanted, pubsub, content, "?")
            rows = connection.execute(
                f"SELECT {chosen} FROM message WHERE {where} ORDER BY timestamp",
                values,
            )
            while some := rows.fetchmany(BATCH_ROWS):
                yield some


_POSTGRESQL_COLUMNS: Final = (
    # nwaku writes bytes as hex in text.
    "decode(messagehash, 'hex'), pubsubtopic, contenttopic, timestamp, decode(payload, 'hex'), "
    "decode(nullif(meta, ''), 'hex')"
)


@dataclass(frozen=True, slots=True)
class PostgresqlDatabase:
    uri: str

    def rows(self, wanted: Selection) -> Iterator[Sequence[Row]]:
        """Yield the selected messages in order of time, in batches, from nwaku's table."""
        from adbc_driver_postgresql import dbapi

        where, values = _where(wanted, "pubsubtopic", "contenttopic", "$")
        query = f"SELECT {_POSTGRESQL_COLUMNS} FROM messages WHERE {where} ORDER BY timestamp"
        with dbapi.connect(self.uri) as connection, connection.cursor() as cursor:
            cursor.execute(query, values)
            for batch in cursor.fetch_record_batch():
                yield list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


Database: TypeAlias = SqliteDatabase | PostgresqlDatabase


def _where(wanted: Selection, pubsub: str, content: str, mark: str) -> tuple[str, list[Any]]:
    """The condition of a query, and its values; `mark` is `?`, or `$` for numbered places."""
    values: list[Any] = []

    def place(value: Any) -> str:
        values.append(value)
        return mark if mark == "?" else f"{mark}{len(values)}"

    terms = [f"timestamp >= {place(wanted.start_ns)}"]
    if wanted.pubsub_topic is not None:
        terms.append(f"{pubsub} = {place(wanted.pubsub_topic)}")
    if wanted.content_topics:
        places = ", ".join(place(topic) for topic in wanted.content_topics)
        terms.append(f"{content} IN ({places})")
    return " AND ".join(terms), values


def database(address: str) -> Database:
    """Return the database at an address, SQLite or PostgreSQL.

    Raises:
        ValueError: no address.
        FileNotFoundError: a file that is not there.
    """
    if address.startswith(("postgresql://", "postgres://")):
        return PostgresqlDatabase(address)
    path = address.removeprefix("sqlite:///")
    if not path:
        raise ValueError(
            "an archive needs a database: 'store.sqlite3', or 'postgresql://user:password@host/name'"
        )
    if not Path(path).is_file():
        raise FileNotFoundError(
            f"the file {path} does not exist; give the SQLite file of a node's Store"
        )
    return SqliteDatabase(path)
