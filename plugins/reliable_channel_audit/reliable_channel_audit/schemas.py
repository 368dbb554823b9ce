"""Tables of the `spark.read` formats and of their results. Ids are text, hashes 32 bytes, and times
milliseconds since 1970 by the participant's clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, get_type_hints

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from .lines import Line

TEXT, NUMBER, BYTES, FLAG = StringType(), LongType(), BinaryType(), BooleanType()
TEXTS = ArrayType(TEXT, containsNull=False)


def table_type(**columns: DataType) -> StructType:
    """Return the type of a table's rows, from the types of its columns."""
    return StructType([StructField(name, kind) for name, kind in columns.items()])


_TYPES: Final[dict[Any, DataType]] = {
    **dict.fromkeys((str, str | None), TEXT),
    **{int | None: NUMBER, bytes | None: BYTES, list[str] | None: TEXTS},
}
JOURNAL: Final = table_type(
    **{"channel_id": TEXT, "participant_id": TEXT, "path": TEXT, "number": NUMBER, "life": NUMBER},
    **{name: _TYPES[hint] for name, hint in get_type_hints(Line).items()},
)
"""Columns of a journal line (`lines.Line`). In a stream, the log's number `life` is null, because a
stream may begin at any line."""

MESSAGE: Final = table_type(
    dialect=TEXT,
    kind=TEXT,
    channel_id=TEXT,
    sender_id=TEXT,
    message_id=TEXT,
    lamport_timestamp=NUMBER,
    causal_history=TEXTS,
    repair_request=TEXTS,
    content=BYTES,
    signature=BYTES,
    bloom_filter=BYTES,
    error=TEXT,
)
"""Columns of a decoded SDS message, where `error` says why other data could not be decoded."""


def batch(table: StructType, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Return rows of a table as an Arrow batch."""
    schema = to_arrow_schema(table)
    columns: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
