"""The tables of the formats of `spark.read`, and of what is made of them. Ids are text, hashes 32
bytes, times milliseconds since 1970 by the clock of the participant in whose journal they stand."""

from __future__ import annotations

from typing import Final

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

TEXT, NUMBER, BYTES, FLAG = StringType(), LongType(), BinaryType(), BooleanType()
TEXTS = ArrayType(TEXT, containsNull=False)


def _table(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


JOURNAL: Final = _table(
    channel_id=TEXT,
    participant_id=TEXT,
    path=TEXT,
    number=NUMBER,
    life=NUMBER,
    event=TEXT,
    at_ms=NUMBER,
    message_id=TEXT,
    sender_id=TEXT,
    source=TEXT,
    outcome=TEXT,
    message_hash=BYTES,
    timestamp_ns=NUMBER,
    lamport_timestamp=NUMBER,
    position=NUMBER,
    evicted=NUMBER,
    content_sha256=BYTES,
    first_segment_id=TEXT,
    acknowledged_by=TEXT,
    message_ids=TEXTS,
    payload=BYTES,
    record=TEXT,
)
"""A line of a journal (`lines.Line`). `life` is null in a stream, which begins anywhere."""

MESSAGE: Final = _table(
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
"""An SDS message, decoded; of what is none, `error` says why and all else is null."""
