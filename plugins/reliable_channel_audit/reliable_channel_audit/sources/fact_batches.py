"""Facts of one kind as batches of the table that has all kinds (`schemas.FACT`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from ..columns.fast_facts import FastFacts
from ..schemas import FACT, FACTS, MANY
from .batches import BATCH_ROWS, arrow_schema, batch

_PACKED: Final = pa.ipc.IpcWriteOptions(compression="zstd")
"""Ids are text of hex digits, which become half as many bytes."""

MAX_WAITING: Final = 20 * BATCH_ROWS
"""Facts that wait for others of their channel; with many small channels nearly all would."""
_OF_OWN: Final = "first_segment_id"
"""Not null of own messages alone."""


class FactBatches:
    """Collects facts, and gives batches of one kind: of `MANY` those of one channel together."""

    def __init__(self) -> None:
        self._waiting: defaultdict[tuple[str, str], list[Sequence[Any]]] = defaultdict(list)
        self._count = 0

    def add(self, kind: str, fact: Sequence[Any]) -> Iterator[pa.RecordBatch]:
        """Take a fact; batches that are full."""
        channel_id = fact[0] if kind in MANY else ""
        waiting = self._waiting[kind, channel_id]
        waiting.append(fact)
        self._count += 1
        if len(waiting) >= BATCH_ROWS:
            self._count -= len(waiting)
            yield fact_batch(kind, self._waiting.pop((kind, channel_id)))
        if self._count >= MAX_WAITING:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        for (kind, _), facts in self._waiting.items():
            yield fact_batch(kind, facts)
        self._waiting.clear()
        self._count = 0


def fact_batch(kind: str, facts: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Facts of one kind, given as rows; of `MANY` those of one channel."""
    own = batch(facts, arrow_schema(FACTS[kind]))
    return _packed(kind, facts[0][0], own) if kind in MANY else _rare(kind, own)


def batches_of(found: FastFacts) -> Iterator[pa.RecordBatch]:
    """The facts of a life of which there are many."""
    whose = dict(zip(("channel_id", "participant_id", "life"), found.whose, strict=True))
    for kind, columns in found.many.items():
        rows = len(columns["at_ms" if "at_ms" in columns else "message_id"])
        schema = arrow_schema(FACTS[kind])
        given = {**columns, **{name: pa.repeat(value, rows) for name, value in whose.items()}}
        arrays = [given[field.name].cast(field.type) for field in schema]
        every = pa.RecordBatch.from_arrays(arrays, schema=schema)
        for at in range(0, rows, BATCH_ROWS):
            yield _packed(kind, found.whose[0], every.slice(at, BATCH_ROWS))


def unpacked(
    facts: DataFrame, kind: str, names: Sequence[str], *, own: bool | None = None
) -> DataFrame:
    """Columns of one of `MANY`, of rows of this kind; of deliveries own messages or others' alone
    where `own` is given, so that Spark is not given the rest."""
    schema = StructType([FACTS[kind][name] for name in names])
    unpack = partial(_unpacked, kind, names, own)
    return facts.select("channel_id", "many").mapInArrow(unpack, schema)


def repacked(
    facts: DataFrame, kind: str, change: Callable[[str, pa.RecordBatch], pa.RecordBatch]
) -> DataFrame:
    """Rows of one of `MANY`, with all facts in them changed: `change` is given those of a channel
    and its id."""

    def pack(given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for channel_id, rows in each_unpacked(kind, FACTS[kind].names, given):
            yield _packed(kind, channel_id, change(channel_id, rows))

    return facts.select("channel_id", "many").mapInArrow(pack, FACT)


def each_unpacked(
    kind: str, names: Sequence[str], given: Iterable[pa.RecordBatch], own: bool | None = None
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Each row of `channel_id` and `many`: the channel, and columns of what is packed there."""
    for each in given:
        for channel_id, many in zip(each.column(0).to_pylist(), each.column(1), strict=True):
            yield channel_id, rows_in(kind, channel_id, many.as_buffer(), names, own)


def rows_in(
    kind: str, channel_id: str, many: Any, names: Sequence[str], own: bool | None = None
) -> pa.RecordBatch:
    """Columns of what `_packed` made."""
    schema = arrow_schema(FACTS[kind])
    stored = [field.name for field in schema if field.name != "channel_id"]
    wanted = {*names} if own is None else {*names, _OF_OWN}
    places = [place for place, name in enumerate(stored) if name in wanted] or [0]
    with pa.ipc.open_stream(many, options=pa.ipc.IpcReadOptions(included_fields=places)) as stream:
        rows = stream.read_next_batch()
    if own is not None:
        mark = rows.column(_OF_OWN)
        rows = rows.filter(mark.is_valid() if own else mark.is_null())
    arrays = [
        pa.repeat(channel_id, rows.num_rows) if name == "channel_id" else rows.column(name)
        for name in names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([schema.field(n) for n in names]))


def _unpacked(
    kind: str, names: Sequence[str], own: bool | None, given: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for _, rows in each_unpacked(kind, names, given, own):
        yield rows


def _packed(kind: str, channel_id: str, own: pa.RecordBatch) -> pa.RecordBatch:
    """Facts of a channel as one row."""
    own = own.drop_columns(["channel_id"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, own.schema, options=_PACKED) as stream:
        stream.write_batch(own)
    many = pa.array([sink.getvalue().to_pybytes()], pa.binary())
    return _facts(
        kind, 1, channel_id=pa.array([channel_id]), rows=pa.array([own.num_rows]), many=many
    )


def _rare(kind: str, own: pa.RecordBatch) -> pa.RecordBatch:
    total, rows = arrow_schema(FACT), own.num_rows
    given = dict(zip(own.schema.names, own.columns, strict=True))
    fields = list(total.field("rare").type.value_type)
    arrays = [given.pop(field.name, pa.nulls(rows, field.type)) for field in fields]
    values = pa.StructArray.from_arrays(arrays, fields=fields)
    offsets = pa.array(range(rows + 1), pa.int32())
    rare = pa.ListArray.from_arrays(offsets, values, type=total.field("rare").type)
    return _facts(kind, rows, **given, rows=pa.repeat(1, rows), rare=rare)


def _facts(kind: str, count: int, **given: pa.Array) -> pa.RecordBatch:
    total = arrow_schema(FACT)
    given["fact"] = pa.repeat(kind, count)
    arrays = [given.get(field.name, pa.nulls(count, field.type)) for field in total]
    arrays = [each.cast(field.type) for each, field in zip(arrays, total, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=total)
