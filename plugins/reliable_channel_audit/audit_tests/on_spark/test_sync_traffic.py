"""Sync traffic by the size of the group: small tables of facts in, small tables out."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from reliable_channel_audit.figures import sync_traffic

from .tables import Row, fact, facts

MINUTE_MS = 60_000
COLUMNS = (
    "channel_id string, participants long, minutes double, sync_messages long, "
    "messages_per_minute double, bytes_per_minute double"
)


def was_there(name: str, from_minute: float, to_minute: float, **values: object) -> Row:
    opened_ms, until_ms = int(from_minute * MINUTE_MS), int(to_minute * MINUTE_MS)
    return fact("Life", name, opened_ms=opened_ms, until_ms=until_ms, **values)


def sent(name: str, minute: float, kind: str = "sync") -> Row:
    return fact("Dispatch", name, kind=kind, at_ms=int(minute * MINUTE_MS), payload_bytes=100)


def check(
    spark: SparkSession, given: Sequence[Row], expected: Sequence[tuple[object, ...]]
) -> None:
    found = sync_traffic(facts(spark, *given))
    wanted = spark.createDataFrame(list(expected), COLUMNS)
    assertDataFrameEqual(found, wanted, checkRowOrder=True)


def test_syncs_count_for_the_size_that_the_group_had_then(spark: SparkSession) -> None:
    given = [
        was_there("alice", 0, 10),
        was_there("bob", 2, 10),
        was_there("bob", 10, 14, life=1),  # at once again, without its state
        was_there("carol", 4, 8),
        sent("alice", 1),
        sent("alice", 1, kind="content"),
        sent("alice", 3),
        sent("bob", 3.5),
        sent("carol", 4),  # as the first it does
        sent("bob", 6),
        sent("alice", 8),  # as carol leaves
        sent("bob", 12),
        was_there("dave", 0, 5, channel_id="quiet"),
    ]
    expected = [
        ("general", 1, 6.0, 2, 2 / 6, 200 / 6),
        ("general", 2, 4.0, 2, 2 / 4, 200 / 4),
        ("general", 3, 4.0, 3, 3 / 4, 300 / 4),
        ("quiet", 1, 5.0, 0, 0.0, 0.0),
    ]
    check(spark, given, expected)


def test_large_groups_are_told_apart_by_two_digits(spark: SparkSession) -> None:
    given = [was_there(f"p{number}", 0, 1) for number in range(123)]
    given += [was_there(f"q{number}", 1, 3, channel_id="less") for number in range(99)]
    expected = [("general", 120, 1.0, 1, 1.0, 100.0), ("less", 99, 2.0, 0, 0.0, 0.0)]
    check(spark, [*given, sent("p0", 0.5)], expected)
