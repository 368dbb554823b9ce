"""Waku payloads to typed columns, a batch at a time, in both dialects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from ..sds.wire import CodecError, NimCodec, SpecCodec
from .schemas import MESSAGE
from .sources.batches import arrow_schema

_SPEC: Final = SpecCodec()
_NIM: Final = NimCodec()
_BLOOM_FILTER: Final = MESSAGE.names.index("bloom_filter")
MOST_LAMPORT: Final = 2**63 - 1
Row = tuple[Any, ...]


def decoded(frame: DataFrame, column: str = "payload", *, blooms: bool = False) -> DataFrame:
    """A DataFrame with one more column, `message`: what stands in a binary column, decoded.

    Bloom filters, most of a message's bytes, are null unless asked for.
    """
    schema = StructType([*frame.schema.fields, StructField("message", MESSAGE)])

    def with_messages(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            messages = decode_batch(batch.column(column), blooms=blooms)
            arrays = [*batch.columns, messages.to_struct_array()]
            yield pa.RecordBatch.from_arrays(arrays, [*batch.schema.names, "message"])

    return frame.mapInArrow(with_messages, schema)


def message(payload: Column) -> Column:
    """A binary column decoded, without its bloom filter: the `message` of `decoded` where a frame
    cannot be asked for its columns, as in a declarative pipeline."""

    def of_batch(payloads: pa.Array) -> pa.Array:
        return decode_batch(payloads).to_struct_array()

    return F.arrow_udf(of_batch, MESSAGE)(payload)


def decode_batch(payloads: pa.Array, *, blooms: bool = False) -> pa.RecordBatch:
    """Decode binary values to a batch of the table `MESSAGE`.

    What is no SDS message is a row whose `error` says why; a null is one without anything.
    """
    schema = arrow_schema(MESSAGE)
    columns: Iterable[tuple[Any, ...]]
    columns = zip(*map(_row, payloads.to_pylist()), strict=True) if len(payloads) else ()
    values = list(columns) or [()] * len(schema)
    if not blooms:
        values[_BLOOM_FILTER] = (None,) * len(payloads)
    arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _row(payload: bytes | None) -> Row:
    if payload is None:
        return _failed(None)
    dialect, codec = ("spec", _SPEC) if _SPEC.recognises(payload) else ("nim", _NIM)
    try:
        message = codec.decode(payload)
    except CodecError as error:
        return _failed(str(error))
    lamport_timestamp, kind = message.lamport_timestamp, message.kind
    if lamport_timestamp is not None and lamport_timestamp > MOST_LAMPORT:
        return _failed(f"lamport_timestamp {lamport_timestamp} does not fit 64 bits with a sign")
    return (
        dialect,
        None if kind is None else kind.value,
        message.channel_id,
        message.sender_id,
        message.message_id,
        lamport_timestamp,
        message.causal_ids,
        [entry.message_id for entry in message.repair_request],
        message.content,
        message.signature,
        message.bloom_filter,
        None,
    )


def _failed(error: str | None) -> Row:
    return (*(None,) * (len(MESSAGE) - 1), error)
