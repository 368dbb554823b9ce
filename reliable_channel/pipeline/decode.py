"""Waku payloads to typed columns, a batch at a time, in both dialects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from ..sds.message import MessageKind, kind_of
from ..sds.wire import CodecError, NimCodec, SpecCodec
from .schemas import MESSAGE
from .sources.batches import arrow_schema

_SPEC: Final = SpecCodec()
_NIM: Final = NimCodec()
_KINDS: Final[dict[MessageKind | None, str]] = {kind: kind.value for kind in MessageKind}
_LAMPORT: Final = MESSAGE.names.index("lamport_timestamp")
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


def decode_batch(payloads: pa.Array, *, blooms: bool = False) -> pa.RecordBatch:
    """Decode binary values to a batch of the table `MESSAGE`.

    What is no SDS message is a row whose `error` says why; a null is one without anything.
    """
    schema = arrow_schema(MESSAGE)
    rows = [_row(payload, blooms) for payload in payloads.to_pylist()]
    columns: Iterable[tuple[Any, ...]] = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _row(payload: bytes | None, blooms: bool) -> Row:
    if payload is None:
        return _failed(None)
    try:
        row = _spec(payload, blooms) if _SPEC.recognises(payload) else _nim(payload, blooms)
    except CodecError as error:
        return _failed(str(error))
    lamport_timestamp = row[_LAMPORT]
    if lamport_timestamp is not None and lamport_timestamp > MOST_LAMPORT:
        return _failed(f"lamport_timestamp {lamport_timestamp} does not fit 64 bits with a sign")
    return row


def _spec(payload: bytes, blooms: bool) -> Row:
    """Without a `Message` in between, which would take a fifth of the time."""
    raw = _SPEC.parse(payload)
    has = raw.HasField
    lamport_timestamp = raw.lamport_timestamp if has("lamport_timestamp") else None
    content = raw.content if has("content") else None
    return (
        "spec",
        _KINDS.get(kind_of(lamport_timestamp, content)),
        raw.channel_id,
        raw.sender_id,
        raw.message_id,
        lamport_timestamp,
        [entry.message_id for entry in raw.causal_history],
        [entry.message_id for entry in raw.repair_request],
        content,
        raw.signature if has("signature") else None,
        raw.bloom_filter if blooms and has("bloom_filter") else None,
        None,
    )


def _nim(payload: bytes, blooms: bool) -> Row:
    message = _NIM.decode(payload)
    return (
        "nim",
        _KINDS.get(message.kind),
        message.channel_id,
        message.sender_id,
        message.message_id,
        message.lamport_timestamp,
        message.causal_ids,
        [entry.message_id for entry in message.repair_request],
        message.content,
        message.signature,
        message.bloom_filter if blooms else None,
        None,
    )


def _failed(error: str | None) -> Row:
    return (*(None,) * (len(MESSAGE) - 1), error)
