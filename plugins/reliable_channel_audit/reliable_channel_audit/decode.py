"""Decoder of Waku payloads to typed columns, a batch at a time, in both SDS dialects. Each worker
process of Spark makes its own encryption."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import anyio
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from reliable_channel.options import ENCRYPTION_ORDERS
from reliable_channel.spi import (
    CodecError,
    DecryptionFailed,
    Encryption,
    NimCodec,
    SpecCodec,
    make_encryption,
    process_registry,
)

from .schemas import MESSAGE

_SPEC: Final = SpecCodec()
_NIM: Final = NimCodec()
MAX_LAMPORT: Final = 2**63 - 1
EncryptionFactory = Callable[[], Encryption]
"""Function that makes an encryption in a worker process. The function must be picklable, but its
result need not be."""


@dataclass(frozen=True, slots=True)
class NamedEncryption:
    """Encryption that is given by a URL, as in `ReliableChannel(encryption=url)` and
    `--encryption`. Worker processes need the encryption's plugin and its key file."""

    url: str
    channel_id: str
    sender_id: str = ""

    def __call__(self) -> Encryption:
        """Make it.

        Raises:
            PluginError: a plugin failed, or two know the scheme.
            ValueError: no plugin knows the scheme, or the one that does refuses the rest.
        """
        return make_encryption(process_registry(), self.url, self.channel_id, self.sender_id)


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
    rows = [_row(value, blooms) for value in (given if outer is None else opened(outer, given))]
    if inner is not None:
        contents = opened(inner, [row.get("content") for row in rows])
        for row, content in zip(rows, contents, strict=True):
            is_open = not isinstance(content, str)
            row |= {"content": content} if is_open else {"content": None, "error": content}
    return pa.RecordBatch.from_pylist(rows, to_arrow_schema(MESSAGE))


def opened(encryption: Encryption, sealed: Sequence[bytes | None]) -> list[bytes | str | None]:
    """Return the decrypted payloads in order, with the reason as text in place of those that fail.
    For a payload None, the result is also None.

    The function runs an event loop of its own, so the caller must not run in one.
    """

    async def open_all() -> list[bytes | str | None]:
        return [None if each is None else await _opened(encryption, each) for each in sealed]

    return anyio.run(open_all)


async def _opened(encryption: Encryption, sealed: bytes) -> bytes | str:
    try:
        content: object = await encryption.decrypt(sealed)
    except DecryptionFailed as error:
        return f"not for this key, or tampered with: {error}"
    except Exception as error:  # given code: whatever it raises is this payload's failure
        return f"the encryption failed: {error!r}"
    if isinstance(content, bytes):
        return content
    return f"the encryption gave {type(content).__name__}, not bytes"


def _row(payload: bytes | str | None, blooms: bool) -> dict[str, Any]:
    """The columns of a message; a text is the reason why there is none."""
    if payload is None:
        return {}
    if isinstance(payload, str):
        return {"error": payload}
    dialect, codec = ("spec", _SPEC) if _SPEC.recognises(payload) else ("nim", _NIM)
    try:
        message = codec.decode(payload)
    except CodecError as error:
        return {"error": str(error)}
    lamport = message.lamport_timestamp
    if lamport is not None and lamport > MAX_LAMPORT:
        return {"error": f"lamport_timestamp {lamport} does not fit 64 bits with a sign"}
    return {
        "dialect": dialect,
        "kind": message.kind and message.kind.value,
        "channel_id": message.channel_id,
        "sender_id": message.sender_id,
        "message_id": message.message_id,
        "lamport_timestamp": lamport,
        "causal_history": list(message.causal_ids),
        "repair_request": [entry.message_id for entry in message.repair_request],
        "content": message.content,
        "signature": message.signature,
        "bloom_filter": message.bloom_filter if blooms else None,
    }
