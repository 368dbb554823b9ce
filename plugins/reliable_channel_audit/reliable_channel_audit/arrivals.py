"""How messages came and how long that took, counted: a row for all deliveries that are alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import product, starmap
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from .audits import MAX_LIGHT, MESSAGE, alike, rows_of_kind, table
from .facts import way_of
from .figures import QUANTILES, ways
from .rates import LEVELS
from .sources.batches import arrow_schema
from .sources.by_channel import by_channel, packed
from .sources.fact_batches import each_unpacked
from .timeline import DELIVERIES_A_STRETCH, MAX_STRETCHES

COUNTED: Final = StructType(
    [
        StructField("channel_id", StringType()),
        StructField("way", StringType()),
        StructField("part", LongType()),
        StructField("delay_ms", LongType()),
        StructField("missing_ms", LongType()),
        StructField("deliveries", LongType()),
    ]
)
"""So many deliveries that are alike, counted three times: by channel, way and `delay_ms`; those
that were missed first by channel, way and `missing_ms`; and by way, part of the time and a delay of
which the highest `BITS` bits are kept, as a picture takes no more. What does not matter is null."""
BITS: Final = 6
ROWS_AT_ONCE: Final = 200_000
"""Deliveries that a task counts together."""
_KEYS: Final = COUNTED.names[:-1]
_COLUMNS: Final = (
    *("message_id", "sender_id", "participant_id"),
    *("message_hash", "source", "at_ms", "missing_since_ms"),
)


class Arrivals(NamedTuple):
    """Deliveries of messages of others, counted."""

    counted: DataFrame
    """`COUNTED`, kept: let it go with `unpersist`."""
    begin_ms: int
    """When the first of the messages was accepted; parts are counted from there."""
    end_ms: int
    """When the last one was; before `begin_ms` where there is none."""
    wide_ms: int
    """How long a part is."""


def arrivals(facts: DataFrame) -> Arrivals:
    """Count deliveries by `figures.ways`, by parts of the time in which messages were accepted, as
    many as have something to show, and by how long they took.

    Where few messages were said and digests show that their senders all left journals, tasks look
    them up by themselves, and Spark sees counts alone.
    """
    looked_up = _looked_up(facts)
    if looked_up is not None:
        return looked_up
    came = ways(facts).persist()
    (span,) = came.agg(F.min("accepted_ms"), F.max("accepted_ms"), F.count("*")).collect()
    begin_ms, end_ms, wide_ms = _parts(*span)
    length = F.length(F.bin(F.greatest("delay_ms", F.lit(1))))
    dropped = F.greatest(length - BITS, F.lit(0))
    some_bits = F.expr("shiftleft(shiftright(greatest(delay_ms, 1), dropped), dropped)")
    part = F.floor((F.col("accepted_ms") - begin_ms) / wide_ms)
    times = came.withColumns({"dropped": dropped, "part": part})
    counts = (
        _count(times, "channel_id", "way", "delay_ms"),
        _count(times.where("missing_ms is not null"), "channel_id", "way", "missing_ms"),
        _count(times.withColumn("delay_ms", some_bits), "way", "part", "delay_ms"),
    )
    counted = reduce(DataFrame.unionByName, counts).persist()
    counted.count()
    came.unpersist()
    return Arrivals(counted, begin_ms, end_ms, wide_ms)


def _count(came: DataFrame, *keys: str) -> DataFrame:
    """How many there are of each, as `COUNTED`."""
    types = {field.name: field.dataType for field in COUNTED}
    others = {name: F.lit(None).cast(types[name]) for name in _KEYS if name not in keys}
    counts = came.groupBy(*keys).agg(F.count("*").alias("deliveries"))
    return counts.withColumns(others).select(*COUNTED.names)


def by_way(counted: DataFrame) -> DataFrame:
    """How long messages took from their sender to others' logs (ms), by the way they came; and of
    those that came after a message that refers to them, how many and how long after (late)."""
    whose = ["channel_id", "way"]
    every = counted.where("part is null and delay_ms is not null")
    missed = counted.where("missing_ms is not null")
    late_p50 = _levels(missed, whose, "missing_ms", {"late_p50_ms": 0.5})
    sums = F.sum("deliveries").alias("late")
    return (
        _levels(every, whose, "delay_ms", LEVELS, deliveries=True)
        .join(missed.groupBy(*whose).agg(sums), whose, "left")
        .join(late_p50, whose, "left")
        .fillna(0, ["late"])
        .orderBy(*whose)
    )


def delay_curves(counted: DataFrame) -> DataFrame:
    """The delays at each of `QUANTILES`, by way."""
    names = {f"at{place}": level for place, level in enumerate(QUANTILES)}
    every = counted.where("part is null and delay_ms is not null")
    levels = _levels(every, ["way"], "delay_ms", names)
    return levels.select("way", F.array(*names).alias("delays_ms")).orderBy("way")


def timeline(counted: DataFrame) -> DataFrame:
    """In each part of the time: deliveries, their median delay and that of nine of ten, and how
    many came another way than by the first broadcast."""
    counted = counted.where("part is not null")
    again = F.col("way").isin("store", "retransmission", "repair")
    repaired = F.sum(F.when(again, F.col("deliveries")).otherwise(0)).alias("repaired")
    levels = {"p50_ms": 0.5, "p90_ms": 0.9}
    delays = _levels(counted, ["part"], "delay_ms", levels, deliveries=True)
    return delays.join(counted.groupBy("part").agg(repaired), "part")


def _levels(
    counted: DataFrame,
    whose: Sequence[str],
    value: str,
    levels: dict[str, float],
    *,
    deliveries: bool = False,
) -> DataFrame:
    """The least value that such a share of the deliveries does not exceed, for each share."""
    whose = [*whose]
    counts = counted.groupBy(*whose, value).agg(F.sum("deliveries").alias("n"))
    all_of = Window.partitionBy(*whose)
    ranked = counts.select(
        *whose,
        F.col(value).alias("value"),
        F.sum("n").over(all_of.orderBy(value)).alias("up_to"),
        F.sum("n").over(all_of).alias("deliveries"),
    )

    def at(level: float) -> Column:
        is_there = F.col("up_to") >= F.ceil(F.col("deliveries") * level)
        return F.min(F.when(is_there, F.col("value")))

    total = [F.max("deliveries").alias("deliveries")] if deliveries else []
    columns = [at(level).alias(name) for name, level in levels.items()]
    return ranked.groupBy(*whose).agg(*total, *columns)


def _parts(begin_ms: int | None, end_ms: int | None, deliveries: int) -> tuple[int, int, int]:
    """When messages were accepted, and how long a part of that is."""
    if begin_ms is None or end_ms is None:
        return 0, -1, 1
    count = max(1, min(MAX_STRETCHES, deliveries // DELIVERIES_A_STRETCH))
    return begin_ms, end_ms, (end_ms - begin_ms) // count + 1


def _looked_up(facts: DataFrame) -> Arrivals | None:
    """The same without a join; None where too much was said, or a sender left no journal."""
    rows = rows_of_kind(facts)
    if rows.get("Dispatch", 0) > MAX_LIGHT:
        return None
    own = table(facts, "Delivery", *MESSAGE, "at_ms", own=True).toArrow()
    own = own.group_by([*MESSAGE]).aggregate([("at_ms", "min")])
    counts = own.group_by("channel_id").aggregate([([], "count_all")]).to_pylist()
    said = {row["channel_id"]: row["count_all"] for row in counts}
    lives = table(facts, "Life")
    logged = {row.channel_id: row.messages for row in alike(lives).collect()}
    channels = {row.channel_id for row in lives.select("channel_id").distinct().collect()}
    if any(said.get(each, 0) != logged.get(each) for each in channels | said.keys()):
        return None
    span = pc.min_max(own["at_ms_min"]).as_py()
    deliveries = rows.get("Delivery", 0) - len(own)
    begin_ms, end_ms, wide_ms = _parts(span["min"], span["max"], deliveries)
    copy = ["channel_id", "message_hash"]
    sent = table(facts, "Dispatch", *copy, "kind").toArrow()
    kinds = sent.group_by(copy).aggregate([("kind", "min")])
    count = partial(_counted, packed(own), packed(kinds), begin_ms, wide_ms)
    chunks = facts.where("fact = 'Delivery'").select("channel_id", "many")
    counted = chunks.mapInArrow(count, COUNTED).groupBy(*_KEYS)
    counted = counted.agg(F.sum("deliveries").alias("deliveries")).persist()
    return Arrivals(counted, begin_ms, end_ms, wide_ms)


def _counted(
    accepted: bytes, kinds: bytes, begin_ms: int, wide_ms: int, given: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    accepted_ms, kind_of = by_channel(accepted), by_channel(kinds)
    waiting: defaultdict[str, list[pa.RecordBatch]] = defaultdict(list)

    def of_channel(channel_id: str, batches: Sequence[pa.RecordBatch]) -> pa.Table:
        rows = pa.Table.from_batches(batches)
        since = _looked_up_in(accepted_ms[channel_id], rows["message_id"])
        if (sent := kind_of.get(channel_id)) is None:
            kinds = pa.chunked_array([pa.nulls(rows.num_rows, pa.string())])
        else:
            kinds = _looked_up_in(sent, rows["message_hash"])
        columns = {
            "channel_id": pa.repeat(channel_id, rows.num_rows),
            "way": _ways(rows["source"], kinds),
            "part": pa.array((since.to_numpy() - begin_ms) // wide_ms),
            "delay_ms": pc.subtract(rows["at_ms"], since),
            "missing_ms": pc.subtract(rows["at_ms"], rows["missing_since_ms"]),
        }
        return pa.table(columns)

    count = 0
    is_others = pc.field("sender_id") != pc.field("participant_id")
    for channel_id, every in each_unpacked("Delivery", _COLUMNS, given, own=False):
        rows = every.filter(is_others)
        waiting[channel_id].append(rows)
        count += rows.num_rows
        if count >= ROWS_AT_ONCE:
            yield from _summed(pa.concat_tables(starmap(of_channel, waiting.items())))
            waiting.clear()
            count = 0
    if waiting:
        yield from _summed(pa.concat_tables(starmap(of_channel, waiting.items())))


def _looked_up_in(table: pa.Table, keys: pa.ChunkedArray) -> pa.ChunkedArray:
    """Of a table of channel, key and value the value of each key; null where there is none."""
    _, known, values = table.columns
    return values.take(pc.index_in(keys, value_set=known))


def _ways(sources: pa.ChunkedArray, kinds: pa.ChunkedArray) -> pa.Array:
    """By which way each came: `way_of`, asked once for each source and kind."""
    source, kind = (
        pc.dictionary_encode(each.combine_chunks(), null_encoding="encode")
        for each in (sources, kinds)
    )
    names = [way_of(*pair) for pair in product(*(x.dictionary.to_pylist() for x in (source, kind)))]
    places = pc.add(pc.multiply(source.indices, len(kind.dictionary)), kind.indices)
    return pa.array(names, pa.string()).take(places)


def _summed(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    delay_ms = np.maximum(rows["delay_ms"].to_numpy(), 1)
    dropped = np.maximum(np.frexp(delay_ms.astype(float))[1] - BITS, 0)
    some_bits = rows.set_column(3, "delay_ms", pa.array(delay_ms >> dropped << dropped))
    missed = rows.filter(pc.field("missing_ms").is_valid())
    for counted, keys in (
        (rows, ("channel_id", "way", "delay_ms")),
        (missed, ("channel_id", "way", "missing_ms")),
        (some_bits, ("way", "part", "delay_ms")),
    ):
        groups = counted.group_by([*keys]).aggregate([([], "count_all")])
        given = {name: groups[name] for name in keys} | {"deliveries": groups["count_all"]}
        arrays = [
            given.get(field.name, pa.nulls(len(groups), field.type))
            for field in arrow_schema(COUNTED)
        ]
        total = pa.table(arrays, names=COUNTED.names).cast(arrow_schema(COUNTED))
        yield from total.combine_chunks().to_batches()
