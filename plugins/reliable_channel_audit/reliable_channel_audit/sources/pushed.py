"""Conditions and columns of Spark that a Store or a database can handle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from ..databases import Selection
from ..schemas import STORED
from .batches import arrow_schema, batches

S = TypeVar("S", bound=Selection)


def narrowed(wanted: S, condition: Filter) -> S | None:
    """Return the selection with a further condition, or None if a Store cannot check it."""
    match condition:
        case GreaterThan(("timestamp_ns",), int(value)):
            return replace(wanted, start_ns=max(wanted.start_ns, value + 1))
        case GreaterThanOrEqual(("timestamp_ns",), int(value)):
            return replace(wanted, start_ns=max(wanted.start_ns, value))
        case LessThan(("timestamp_ns",), int(value)):
            return replace(wanted, end_ns=min(wanted.end_ns, value - 1))
        case LessThanOrEqual(("timestamp_ns",), int(value)):
            return replace(wanted, end_ns=min(wanted.end_ns, value))
        case EqualTo(("content_topic",), str(topic)) if not wanted.content_topics:
            return replace(wanted, content_topics=(topic,))
        case In(("content_topic",), topics) if not wanted.content_topics and topics:
            return replace(wanted, content_topics=tuple(map(str, topics)))
        case EqualTo(("pubsub_topic",), str(topic)) if wanted.pubsub_topic is None:
            return replace(wanted, pubsub_topic=topic)
    return None


def pushed(wanted: S, filters: Iterable[Filter]) -> tuple[S, list[Filter]]:
    """Return the selection with all conditions that a Store can check, and the conditions for
    Spark."""
    left = []
    for condition in filters:
        found = narrowed(wanted, condition)
        if found is None:
            left.append(condition)
        else:
            wanted = found
    return wanted, left


def chosen(schema: StructType) -> list[int]:
    """Return the places in `STORED` of the columns of `.schema(…)`.

    Raises:
        ValueError: a column that is not there, or of another type.
    """
    known = {field.name: field.dataType for field in STORED.fields}
    wrong = [each.name for each in schema.fields if known.get(each.name) != each.dataType]
    if wrong:
        offered = STORED.simpleString().removeprefix("struct")
        raise ValueError(f"no column {', '.join(wrong)} of that type; there are {offered}")
    return [STORED.names.index(each.name) for each in schema.fields]


def columns_of(rows: Iterable[Sequence[Any]], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Return rows of `STORED` as batches with the columns of a schema."""
    places = chosen(schema)
    weighed = [n for n, name in enumerate(schema.names) if name == "payload"]
    picked = (tuple(row[place] for place in places) for row in rows)
    return batches(picked, arrow_schema(schema), weighed=weighed)


class Unpushed(DataSourceReader):
    """Reader without conditions: Spark checks them itself.

    A session refuses readers with conditions unless `spark.sql.python.filterPushdown.enabled` is
    true, which is not the default. `session` of this package sets it.
    """

    def __init__(self, reader: DataSourceReader) -> None:
        self._reader = reader

    def partitions(self) -> Sequence[InputPartition]:
        found: Sequence[InputPartition] = self._reader.partitions()
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        found: Iterator[pa.RecordBatch] = self._reader.read(partition)
        return found
