"""How messages came and how long that took, counted: a row for all deliveries that are alike."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from .figures import QUANTILES, ways
from .frames import Facts
from .rates import LEVELS
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
_KEYS: Final = COUNTED.names[:-1]


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


def arrivals(facts: Facts) -> Arrivals:
    """Count deliveries by `figures.ways`, by parts of the time in which messages were accepted, as
    many as have something to show, and by how long they took."""
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
