"""Stored messages from tables of other programs: Parquet archives, and everything else that Spark
reads."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, IntegralType, LongType, StringType

from .schemas import STORED


def stored(frame: DataFrame) -> DataFrame:
    """Return the table `schemas.STORED` from one that has its columns, in any order and among
    others.

    Directory names that Spark read as numbers (`content_topic=1`) become text again.

    Raises:
        ValueError: columns that are missing, or of another type.
    """
    given = {field.name: field.dataType for field in frame.schema.fields}
    missing = [field.name for field in STORED.fields if field.name not in given]
    wrong = [
        f"{field.name} is {given[field.name].simpleString()} and no {field.dataType.simpleString()}"
        for field in STORED.fields
        if field.name in given and not _fits(given[field.name], field.dataType)
    ]
    if missing or wrong:
        why = [f"no column {', '.join(missing)}"] if missing else []
        raise ValueError(
            f"no stored messages: {'; '.join(why + wrong)}; "
            f"needed are {STORED.simpleString().removeprefix('struct')}, found {', '.join(given)}"
        )
    return frame.select(*(F.col(field.name).cast(field.dataType) for field in STORED.fields))


def by_day(frame: DataFrame) -> DataFrame:
    """Return stored messages with a column `day` (UTC, by their timestamps), for partitioning
    files."""
    return frame.withColumn("day", F.to_date(F.timestamp_micros(F.expr("timestamp_ns div 1000"))))


def _fits(given: DataType, wanted: DataType) -> bool:
    match wanted:
        case LongType():
            return isinstance(given, IntegralType)
        case StringType():
            return isinstance(given, StringType | IntegralType)
    return isinstance(given, BinaryType)
