"""Conversion of rows to Arrow batches of a limited size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

BATCH_ROWS: Final = 5_000
BATCH_BYTES: Final = 8 * 1024 * 1024


def arrow_schema(table: StructType) -> pa.Schema:
    """Return the Arrow schema of a table."""
    return to_arrow_schema(table)


def batches(
    rows: Iterable[Sequence[Any]], schema: pa.Schema, *, weighed: Sequence[int] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield rows as Arrow batches. `weighed` lists the columns whose values may be large."""
    waiting: list[Sequence[Any]] = []
    size_bytes = 0
    for row in rows:
        waiting.append(row)
        size_bytes += sum(len(row[column] or b"") for column in weighed)
        if len(waiting) >= BATCH_ROWS or size_bytes >= BATCH_BYTES:
            yield batch(waiting, schema)
            waiting, size_bytes = [], 0
    if waiting:
        yield batch(waiting, schema)


def batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
