"""Deliveries counted by way and delay."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from reliable_channel_audit.arrivals import arrivals, by_way, delay_curves, timeline
from reliable_channel_audit.frames import Facts, in_true_time

from .tables import Row, delivery, fact, facts

HERE: list[Row] = [
    fact("Dispatch", "alice", message_hash=b"1", kind="content"),
    fact("Dispatch", "alice", message_hash=b"2", kind="retry"),
    fact("Dispatch", "bob", message_hash=b"3", kind="repair"),
    delivery("alice", 1_000, first_segment_id="m"),
    delivery("bob", 1_010, source="live", message_hash=b"1"),
    delivery("carol", 1_030, source="live", message_hash=b"1", missing_since_ms=1_020),
    delivery("dave", 1_400, source="store", message_hash=b"1"),
    delivery("erin", 1_200, source="live", message_hash=b"2"),
    delivery("frank", 1_300, source="live", message_hash=b"3", missing_since_ms=1_100),
    delivery("gina", 1_500, source="live", message_hash=b"4"),
    delivery("alice", 9_000, life=1, source="store", message_hash=b"1"),
]
"""One message of alice, which came to others by every way, and back to her after a restart."""
LIVES = [fact("Life", name) for name in ("alice", "bob")]


@pytest.fixture(scope="module")
def here(spark: SparkSession) -> Facts:
    return facts(spark, *HERE)


def test_by_way_and_its_curve(spark: SparkSession, here: Facts) -> None:
    counted = arrivals(here).counted
    expected = [
        ("general", "live", 2, 10, 30, 30, 30, 1, 10),
        ("general", "repair", 1, 300, 300, 300, 300, 1, 200),
        ("general", "retransmission", 1, 200, 200, 200, 200, 0, None),
        ("general", "store", 1, 400, 400, 400, 400, 0, None),
        ("general", "unknown", 1, 500, 500, 500, 500, 0, None),
    ]
    schema = (
        "channel_id string, way string, deliveries long, p50_ms long, p90_ms long, p99_ms long, "
        "max_ms long, late long, late_p50_ms long"
    )
    found = by_way(counted)
    assertDataFrameEqual(found, spark.createDataFrame(expected, schema), ignoreNullable=True)
    curves = {row.way: list(row.delays_ms) for row in delay_curves(counted).collect()}
    assert curves["live"] == [10] * 11 + [30] * 10
    assert curves["store"] == [400] * 21
    counted.unpersist()


def test_clocks_that_are_ahead_are_no_delay(spark: SparkSession) -> None:
    """Dave's clock is three hours fast, and frank's ten seconds slow."""
    ahead_ms = {("general", "dave"): 3 * 3_600_000, ("general", "frank"): -10_000}
    others = [row for row in HERE if not {"dave", "frank"} & {*row[1]}]
    given = facts(
        spark,
        *others,
        delivery("dave", 1_400 + 3 * 3_600_000, source="store", message_hash=b"1"),
        delivery("frank", -8_700, source="live", message_hash=b"3", missing_since_ms=-8_900),
    )
    right, corrected = arrivals(facts(spark, *HERE)), arrivals(in_true_time(given, ahead_ms))
    assert corrected[1:] == right[1:]
    assertDataFrameEqual(corrected.counted, right.counted, ignoreNullable=True)
    for each in (right, corrected):
        each.counted.unpersist()


def test_a_message_in_time(here: Facts) -> None:
    came = arrivals(here)
    assert came[1:] == (1_000, 1_000, 1)
    assert [tuple(row) for row in timeline(came.counted).collect()] == [(0, 6, 200, 496, 3)]
    came.counted.unpersist()


def test_of_no_messages_there_is_nothing(spark: SparkSession) -> None:
    came = arrivals(facts(spark, *LIVES))
    assert came.end_ms < came.begin_ms
    assert came.counted.isEmpty()
    came.counted.unpersist()
