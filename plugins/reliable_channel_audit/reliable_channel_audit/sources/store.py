"""`waku-store`: the content of a node's Store, over its REST API, by time ranges.

Ranges do not overlap, and the hash of a message covers its only timestamp. A reader of all ranges
therefore has each message once, even if a node returns more than requested. A range that is read
again gives the same messages, unless older ones are stored meanwhile. A stream misses messages that
are stored later than `lag_ms` after their timestamp.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import time_ns
from typing import Any, Final

import pyarrow as pa
from anyio.from_thread import start_blocking_portal
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from reliable_channel.errors import ReliableChannelError
from waku import StoreQuery, WakuClient, WakuError
from waku.models import StoreEntry

from ..databases import FIRST_NS, MAX_NS, Selection
from ..schemas import STORED
from .options import whole
from .pushed import chosen, columns_of, pushed

PAGE_SIZE: Final = 100
"""Maximum number of messages that a node returns at once."""
MAX_PAGES: Final = 1_000_000
"""Maximum number of pages of a range. An endless answer ends after 100 million messages."""
LAG_MS: Final = 60_000
"""Margin for messages that are stored late. Nodes refuse timestamps that are more than 20 s off,
and hear from each other some time later."""


class StoreUnreadable(ReliableChannelError):
    """A node does not return the content of its Store. The messages of the range so far are left
    out."""


@dataclass(frozen=True)
class Wanted(Selection):
    """Query to a node."""

    node: str = ""
    partitions: int = 4
    lag_ms: int = LAG_MS
    batch_ms: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Wanted:
        """Return the query that the options of a reader describe.

        Raises:
            ValueError: no node, or a number that is none.
        """
        node = options.get("node", "")
        if not node:
            raise ValueError("waku-store needs the address of a node: .option('node', 'http://…')")
        topics = tuple(filter(None, options.get("content_topics", "").split(",")))
        return cls(
            topics,
            options.get("pubsub_topic"),
            whole(options, "start_ns", FIRST_NS, at_least=0),
            whole(options, "end_ns", MAX_NS, at_least=0),
            node,
            whole(options, "partitions", 4),
            whole(options, "lag_ms", LAG_MS, at_least=0),
            whole(options, "batch_ms", None),
        )

    def split(self, oldest_ns: int, now_ns: int) -> list[Range]:
        """Return ranges of equal length between two times. The first begins at any time, the last
        ends at any time."""
        if self.start_ns > self.end_ns:
            return []
        first_ns = min(max(FIRST_NS, self.start_ns, oldest_ns), self.end_ns)
        last_ns = max(first_ns, min(self.end_ns, now_ns))
        step = -(-(last_ns - first_ns + 1) // self.partitions)
        later = list(range(first_ns + step, last_ns + 1, step))
        starts = [max(FIRST_NS, self.start_ns), *later]
        ends = [*(start - 1 for start in later), self.end_ns]
        return [
            Range(replace(self, start_ns=start, end_ns=end))
            for start, end in zip(starts, ends, strict=True)
        ]

    def includes(self, entry: StoreEntry) -> bool:
        """Return True if the message belongs to the query of a node. Another range has messages of
        another time. A message without a timestamp belongs to the range in which the node returns
        it."""
        message = entry.message
        return (
            message is not None
            and (self.start_ns <= message.timestamp <= self.end_ns or not message.timestamp)
            and (not self.content_topics or message.content_topic in self.content_topics)
            and self.pubsub_topic in (None, entry.pubsub_topic or self.pubsub_topic)
        )


@dataclass
class Range(InputPartition):
    wanted: Wanted


class StoreReader(DataSourceReader):
    """Reader of the present messages."""

    def __init__(self, wanted: Wanted, schema: StructType = STORED) -> None:
        self._wanted = wanted
        self._schema = schema
        chosen(schema)

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Push down the conditions that the node can check."""
        self._wanted, left = pushed(self._wanted, filters)
        return left

    def partitions(self) -> list[Range]:
        """Return ranges of equal length from the oldest stored message on."""
        return _ranges(self._wanted, time_ns())

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a range, each once."""
        return columns_of(_stored(partition.wanted), self._schema)


class StoreStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of new messages, up to `lag_ms` ago."""

    def __init__(self, wanted: Wanted, schema: StructType = STORED) -> None:
        self._wanted = wanted
        self._schema = schema
        self._target_ns: int | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"next_ns": self._wanted.start_ns}

    def prepareForTriggerAvailableNow(self) -> None:
        """Stop at the present end of the Store."""
        self._target_ns = self._settled_ns()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Return the first time that may still change, or `batch_ms` after the next message if that
        is earlier. Without a message, the end does not move, so no batch is empty."""
        settled_ns = self._settled_ns() if self._target_ns is None else self._target_ns
        waiting = replace(self._wanted, start_ns=start["next_ns"], end_ns=settled_ns - 1)
        if waiting.start_ns > waiting.end_ns or (oldest_ns := _oldest_ns(waiting)) is None:
            return start
        if self._wanted.batch_ms is not None:
            settled_ns = min(settled_ns, oldest_ns + self._wanted.batch_ms * 1_000_000)
        return {"next_ns": settled_ns}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Range]:
        """Return the ranges between two offsets."""
        end_ns = end["next_ns"] - 1
        return _ranges(replace(self._wanted, start_ns=start["next_ns"], end_ns=end_ns), end_ns)

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a range, each once."""
        return StoreReader(partition.wanted, self._schema).read(partition)

    def commit(self, end: dict[str, int]) -> None:
        """Do nothing, because Store keeps its messages."""

    def stop(self) -> None:
        """Do nothing, because no connection is open."""

    def _settled_ns(self) -> int:
        return min(self._wanted.end_ns + 1, time_ns() - self._wanted.lag_ms * 1_000_000)


class StoreSource(DataSource):
    """Data source of `spark.read.format("waku-store").option("node",
    "http://127.0.0.1:8645").load()`."""

    @classmethod
    def name(cls) -> str:
        return "waku-store"

    def schema(self) -> StructType:
        return STORED

    def reader(self, schema: StructType) -> StoreReader:
        return StoreReader(Wanted.of(self.options), schema)

    def streamReader(self, schema: StructType) -> StoreStreamReader:
        """Return the reader of earlier and later messages."""
        return StoreStreamReader(Wanted.of(self.options), schema)


def _ranges(wanted: Wanted, now_ns: int) -> list[Range]:
    """What the tasks read: of equal length from the oldest stored message on, not from 1970."""
    first_ns = wanted.start_ns
    if first_ns <= FIRST_NS and (oldest_ns := _oldest_ns(wanted)) is not None:
        first_ns = oldest_ns
    return wanted.split(first_ns, now_ns)


def _oldest_ns(wanted: Wanted) -> int | None:
    """When the oldest message of a range was sent; where it cannot be read and there are more, not
    before the range begins."""
    with start_blocking_portal() as portal:
        return portal.call(_first_timestamp, wanted)


async def _first_timestamp(wanted: Wanted) -> int | None:
    with _told(wanted):
        async with WakuClient(wanted.node) as client:
            page = await client.store(_query(wanted, page_size=1))
    stamps = [entry.message.timestamp for entry in page.entries if entry.message is not None]
    if not stamps and page.cursor is None:
        return None
    return min(max([wanted.start_ns, *stamps]), wanted.end_ns)


def _stored(wanted: Wanted) -> Iterator[tuple[Any, ...]]:
    """Rows of `STORED`, page by page."""
    rows = _rows(wanted)
    with start_blocking_portal() as portal:
        try:
            while chunk := portal.call(_next_rows, rows):
                yield from chunk
        finally:
            portal.call(rows.aclose)


async def _next_rows(rows: Any) -> list[tuple[Any, ...]]:
    chunk: list[tuple[Any, ...]] = []
    async for row in rows:
        chunk.append(row)
        if len(chunk) == PAGE_SIZE:
            break
    return chunk


async def _rows(wanted: Wanted) -> AsyncGenerator[tuple[Any, ...], None]:
    query = _query(wanted, page_size=PAGE_SIZE)
    with _told(wanted):
        async with WakuClient(wanted.node) as client:
            async for entry in client.store_all(query, max_pages=MAX_PAGES):
                if (message := entry.message) is not None and wanted.includes(entry):
                    yield (
                        entry.message_hash,
                        entry.pubsub_topic,
                        message.content_topic,
                        message.timestamp,
                        message.payload,
                        message.meta or None,
                    )


@contextmanager
def _told(wanted: Wanted) -> Iterator[None]:
    """Say which node did what in which range."""
    try:
        yield
    except WakuError as error:
        raise StoreUnreadable(
            f"the Store of {wanted.node} cannot be read between {wanted.start_ns} and "
            f"{wanted.end_ns} ns: {error}"
        ) from error


def _query(wanted: Wanted, *, page_size: int) -> StoreQuery:
    return StoreQuery(
        content_topics=wanted.content_topics,
        pubsub_topic=wanted.pubsub_topic,
        start_time_ns=wanted.start_ns,
        end_time_ns=wanted.end_ns,
        page_size=page_size,
    )
