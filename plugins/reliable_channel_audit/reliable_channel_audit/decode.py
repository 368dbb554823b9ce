"""Decoder of Waku payloads to typed columns, a batch at a time, in both SDS dialects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from reliable_channel.options import ENCRYPTION_ORDERS
from reliable_channel.spi import CodecError, Encryption, NimCodec, SpecCodec

from .opening import EncryptionFactory, Unopened, opened
from .schemas import MESSAGE, batch

_SPEC: Final = SpecCodec()
_NIM: Final = NimCodec()
_CONTENT, _ERROR = map(MESSAGE.names.index, ("content", "error"))
MAX_LAMPORT: Final = 2**63 - 1
Row = tuple[Any, ...]


def decoded(
    frame: DataFrame,
    column: str = "payload",
    *,
    blooms: bool = False,
    encryption: EncryptionFactory | None = None,
    encryption_order: str = "sds-then-encrypt",
) -> DataFrame:
    """Return a DataFrame with the additional column `message`, the decoded content of a binary
    column.

    By default, bloom filters are null, because they are most of a message's bytes. With an
    `encryption`, payloads are decrypted first (with `encrypt-then-sds`, contents afterwards).
    (Journals contain payloads before their encryption.)

    Raises:
        ValueError: no such `encryption_order`.
    """
    if encryption_order not in ENCRYPTION_ORDERS:
        allowed = " or ".join(map(repr, ENCRYPTION_ORDERS))
        raise ValueError(f"`encryption_order` must be {allowed} (got {encryption_order!r})")
    inside = encryption_order == "encrypt-then-sds"
    schema = StructType([*frame.schema.fields, StructField("message", MESSAGE)])

    def with_messages(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        key = None if encryption is None else encryption()
        for each in batches:
            outer, inner = (None, key) if inside else (key, None)
            messages = decode_batch(each.column(column), blooms=blooms, outer=outer, inner=inner)
            arrays = [*each.columns, messages.to_struct_array()]
            yield pa.RecordBatch.from_arrays(arrays, [*each.schema.names, "message"])

    return frame.mapInArrow(with_messages, schema)


def decode_batch(
    payloads: pa.Array,
    *,
    blooms: bool = False,
    outer: Encryption | None = None,
    inner: Encryption | None = None,
) -> pa.RecordBatch:
    """Return the decoded messages in binary values, as a batch of the table `MESSAGE`. `outer`
    decrypts the values before decoding, and `inner` decrypts the contents afterwards.

    If a value cannot be decrypted or decoded, `error` in its row gives the reason. If only the
    content cannot be decrypted, the other columns of the row are complete. For a null value, the
    row is empty.
    """
    given = payloads.to_pylist()
    values = given if outer is None else opened(outer, given)
    rows = [_row(value, blooms) for value in values]
    if inner is not None:
        contents = opened(inner, [row[_CONTENT] for row in rows])
        rows = [_with_content(row, each) for row, each in zip(rows, contents, strict=True)]
    return batch(MESSAGE, rows)


def _row(payload: bytes | Unopened | None, blooms: bool) -> Row:
    if payload is None:
        return _failed(None)
    if isinstance(payload, Unopened):
        return _failed(payload.why)
    dialect, codec = ("spec", _SPEC) if _SPEC.recognises(payload) else ("nim", _NIM)
    try:
        message = codec.decode(payload)
    except CodecError as error:
        return _failed(str(error))
    lamport_timestamp = message.lamport_timestamp
    if lamport_timestamp is not None and lamport_timestamp > MAX_LAMPORT:
        return _failed(f"lamport_timestamp {lamport_timestamp} does not fit 64 bits with a sign")
    return (
        dialect,
        message.kind and message.kind.value,
        message.channel_id,
        message.sender_id,
        message.message_id,
        lamport_timestamp,
        message.causal_ids,
        [entry.message_id for entry in message.repair_request],
        message.content,
        message.signature,
        message.bloom_filter if blooms else None,
        None,
    )


def _with_content(row: Row, content: bytes | Unopened | None) -> Row:
    if isinstance(content, Unopened):
        return (*row[:_CONTENT], None, *row[_CONTENT + 1 : _ERROR], content.why)
    return (*row[:_CONTENT], content, *row[_CONTENT + 1 :])


def _failed(error: str | None) -> Row:
    return (*(None,) * (len(MESSAGE) - 1), error)
