"""`waku_store`: what a node's Store has, over its REST API, by ranges of time.

Read twice, a range gives the same messages as long as nothing older is stored: what is stored later
than `lag_ms` after its timestamp is missed by a stream, which has gone on by then.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from time import time_ns
from typing import Any, Final

import pyarrow as pa
from anyio.from_thread import start_blocking_portal
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from waku import StoreQuery, WakuClient

from ..schemas import STORED
from .batches import arrow_schema, batches

PAGE_SIZE: Final = 100
"""The most that a node answers at once."""
MAX_PAGES: Final = 1_000_000
"""Of a range: a node that never comes to an end is given up after 100 million messages."""
LAG_MS: Final = 60_000
"""Nodes refuse what is stamped more than 20 s off, and hear from each other some time later."""
FIRST_NS: Final = 1
"""0 means no beginning to a node; then it could not be told which range a message is in."""


@dataclass(frozen=True)
class Wanted:
    """What to ask a node for; both times are included."""

    node: str
    content_topics: tuple[str, ...] = ()
    pubsub_topic: str | None = None
    start_ns: int = FIRST_NS
    end_ns: int = 2**63 - 1
    partitions: int = 4
    lag_ms: int = LAG_MS

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Wanted:
        """What the options of a reader say.

        Raises:
            ValueError: no node.
        """
        node = options.get("node", "")
        if not node:
            raise ValueError("waku_store needs the address of a node: .option('node', 'http://…')")
        topics = tuple(filter(None, options.get("content_topics", "").split(",")))
        return cls(
            node,
            topics,
            options.get("pubsub_topic"),
            int(options.get("start_ns", FIRST_NS)),
            int(options.get("end_ns", 2**63 - 1)),
            int(options.get("partitions", 4)),
            int(options.get("lag_ms", LAG_MS)),
        )

    def narrowed(self, condition: Filter) -> Wanted | None:
        """The same with a condition that a node can check, or None where it cannot."""
        match condition:
            case GreaterThan(("timestamp_ns",), int(value)):
                return replace(self, start_ns=max(self.start_ns, value + 1))
            case GreaterThanOrEqual(("timestamp_ns",), int(value)):
                return replace(self, start_ns=max(self.start_ns, value))
            case LessThan(("timestamp_ns",), int(value)):
                return replace(self, end_ns=min(self.end_ns, value - 1))
            case LessThanOrEqual(("timestamp_ns",), int(value)):
                return replace(self, end_ns=min(self.end_ns, value))
            case EqualTo(("content_topic",), str(topic)) if not self.content_topics:
                return replace(self, content_topics=(topic,))
            case In(("content_topic",), topics) if not self.content_topics and topics:
                return replace(self, content_topics=tuple(map(str, topics)))
            case EqualTo(("pubsub_topic",), str(topic)) if self.pubsub_topic is None:
                return replace(self, pubsub_topic=topic)
        return None

    def split(self, now_ns: int) -> list[Range]:
        """Ranges of equal length, the last one until whenever."""
        last_ns = min(self.end_ns, now_ns)
        first_ns = max(FIRST_NS, self.start_ns)
        if first_ns > self.end_ns:
            return []
        step = max(1, -(-(last_ns - first_ns + 1) // self.partitions))
        starts = list(range(first_ns, max(first_ns, last_ns) + 1, step))
        ends = [start - 1 for start in starts[1:]] + [self.end_ns]
        return [
            Range(replace(self, start_ns=start, end_ns=end))
            for start, end in zip(starts, ends, strict=True)
        ]


@dataclass
class Range(InputPartition):
    """One task's share."""

    wanted: Wanted


class StoreReader(DataSourceReader):
    """Reads what is stored now."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Let the node check what it can."""
        for condition in filters:
            narrowed = self._wanted.narrowed(condition)
            if narrowed is None:
                yield condition
            else:
                self._wanted = narrowed

    def partitions(self) -> list[Range]:
        """The ranges from the oldest stored message on."""
        wanted = self._wanted
        if wanted.start_ns <= FIRST_NS and (oldest_ns := _oldest_ns(wanted)) is not None:
            wanted = replace(wanted, start_ns=oldest_ns)
        return wanted.split(time_ns())

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        """The messages of a range, each once."""
        payload = STORED.names.index("payload")
        return batches(_stored(partition.wanted), arrow_schema(STORED), weighed=[payload])


class StoreStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what was stored since, up to `lag_ms` ago."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._target_ns: int | None = None

    def initialOffset(self) -> dict[str, int]:
        """Before the first."""
        return {"next_ns": self._wanted.start_ns}

    def prepareForTriggerAvailableNow(self) -> None:
        """Stop at what is there now."""
        self._target_ns = self._settled_ns()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The first time that is not settled yet."""
        settled_ns = self._settled_ns() if self._target_ns is None else self._target_ns
        return {"next_ns": max(start["next_ns"], settled_ns)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Range]:
        """The ranges between two offsets."""
        end_ns = end["next_ns"] - 1
        wanted = replace(self._wanted, start_ns=start["next_ns"], end_ns=end_ns)
        return wanted.split(end_ns)

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        """The messages of a range, each once."""
        return StoreReader(partition.wanted).read(partition)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing to let go: Store keeps what it has."""

    def stop(self) -> None:
        """Nothing is held open."""

    def _settled_ns(self) -> int:
        return min(self._wanted.end_ns + 1, time_ns() - self._wanted.lag_ms * 1_000_000)


class StoreSource(DataSource):
    """`spark.read.format("waku_store").option("node", "http://127.0.0.1:8645").load()`."""

    @classmethod
    def name(cls) -> str:
        """The format."""
        return "waku_store"

    def schema(self) -> StructType:
        """A message a row."""
        return STORED

    def reader(self, schema: StructType) -> StoreReader:
        """What is stored now."""
        return StoreReader(Wanted.of(self.options))

    def streamReader(self, schema: StructType) -> StoreStreamReader:
        """What is stored from now on, and before."""
        return StoreStreamReader(Wanted.of(self.options))


def _oldest_ns(wanted: Wanted) -> int | None:
    """When the oldest message was sent, so that ranges begin there and not in 1970."""
    query = _query(wanted, page_size=1)
    with start_blocking_portal() as portal:
        page = portal.call(_first_page, wanted.node, query)
    return next((e.message.timestamp for e in page.entries if e.message is not None), None)


async def _first_page(node: str, query: StoreQuery) -> Any:
    async with WakuClient(node) as client:
        return await client.store(query)


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
    async with WakuClient(wanted.node) as client:
        query = _query(wanted, page_size=PAGE_SIZE)
        async for entry in client.store_all(query, max_pages=MAX_PAGES):
            if (message := entry.message) is not None:
                yield (
                    entry.message_hash,
                    entry.pubsub_topic,
                    message.content_topic,
                    message.timestamp,
                    message.payload,
                    message.meta or None,
                )


def _query(wanted: Wanted, *, page_size: int) -> StoreQuery:
    return StoreQuery(
        content_topics=wanted.content_topics,
        pubsub_topic=wanted.pubsub_topic,
        start_time_ns=wanted.start_ns,
        end_time_ns=wanted.end_ns,
        page_size=page_size,
    )
