"""Facts of one kind as a batch of the table that has all kinds (`schemas.FACT`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..columns.ordinary import Ordinary
from ..schemas import FACT, FACTS
from .batches import BATCH_ROWS, arrow_schema, batch


def fact_batch(kind: str, facts: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Facts of one kind, given as rows."""
    schema = arrow_schema(FACTS[kind])
    own = batch(facts, schema)
    return fact_columns(kind, {name: own.column(name) for name in schema.names}, len(facts))


def batches_of(found: Ordinary) -> Iterator[pa.RecordBatch]:
    """The facts of a life of which there are many."""
    whose = dict(zip(("channel_id", "participant_id", "life"), found.whose, strict=True))
    for kind, columns in found.many.items():
        rows = len(columns["at_ms" if "at_ms" in columns else "message_id"])
        own = {name: pa.repeat(whose[name], rows) for name in whose if name in FACTS[kind].names}
        every = fact_columns(kind, {**columns, **own}, rows)
        yield from (every.slice(at, BATCH_ROWS) for at in range(0, rows, BATCH_ROWS))


def fact_columns(kind: str, columns: Mapping[str, pa.Array], rows: int) -> pa.RecordBatch:
    """Facts of one kind, given as columns of so many rows."""
    total = arrow_schema(FACT)
    given = {
        "fact": pa.repeat(kind, rows),
        "rare": _rare(columns, total.field("rare").type, rows),
        **columns,
    }
    arrays = [given.get(field.name, pa.nulls(rows, field.type)) for field in total]
    arrays = [each.cast(field.type) for each, field in zip(arrays, total, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=total)


def _rare(columns: Mapping[str, pa.Array], kind: pa.ListType, rows: int) -> pa.Array:
    """The columns of rare facts as one; null where the facts have none of them."""
    fields = list(kind.value_type)
    if not columns.keys() & {field.name for field in fields}:
        return pa.nulls(rows, kind)
    arrays = [columns.get(field.name, pa.nulls(rows, field.type)) for field in fields]
    values = pa.StructArray.from_arrays(arrays, fields=fields)
    return pa.ListArray.from_arrays(pa.array(range(rows + 1), pa.int32()), values, type=kind)
