"""Figures: small tables of facts in, small tables out."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from reliable_channel_audit import figures

from .tables import delivery, fact, facts


def test_acknowledgement_latency(spark: SparkSession) -> None:
    told = [(100, "causal_history"), (300, "causal_history"), (40, "bloom_filter"), (None, None)]
    given = [
        fact(
            "Acknowledgement",
            "alice",
            accepted_ms=1_000,
            acknowledged_ms=None if took_ms is None else 1_000 + took_ms,
            source=source,
        )
        for took_ms, source in told
    ]
    expected = [
        ("bloom_filter", 1, 40, 40, 40, 40),
        ("causal_history", 2, 100, 300, 300, 300),
        ("never", 1, None, None, None, None),
    ]
    schema = "source string, messages long, p50_ms long, p90_ms long, p99_ms long, max_ms long"
    found = figures.acknowledgement_latency(facts(spark, *given))
    assertDataFrameEqual(
        found.drop("channel_id", "participant_id"),
        spark.createDataFrame(expected, schema),
        ignoreNullable=True,
    )


def test_repair_efficiency(spark: SparkSession) -> None:
    given = facts(
        spark,
        fact("Repair", "alice", message_id="a", requests=3, responses=0),
        fact("Repair", "alice", message_id="b", requests=1, responses=2),
        fact("Repair", "bob", message_id="a", requests=0, responses=1),
    )
    expected = [("alice", 2, 4, 2, 2.0), ("bob", 0, 0, 1, None)]
    schema = (
        "participant_id string, asked_for long, requests long, responses long, "
        "requests_per_loss double"
    )
    assertDataFrameEqual(
        figures.repair_efficiency(given).drop("channel_id"),
        spark.createDataFrame(expected, schema),
        ignoreNullable=True,
    )


def test_overhead(spark: SparkSession) -> None:
    fields = ("total_bytes", "content_bytes", "bloom_filter_bytes", "repair_request_bytes")
    given = [
        fact(
            "Traffic",
            whose,
            kind=kind,
            messages=messages,
            causal_history_bytes=messages,
            **{name: messages * 10**power for power, name in enumerate(fields, start=1)},
        )
        for whose, kind, messages in (("alice", "content", 3), ("bob", "content", 1))
    ]
    expected = [("general", "content", 4, 40, 400, 4_000, 40_000, 4, 10.0)]
    schema = (
        "channel_id string, kind string, messages long, total_bytes long, content_bytes long, "
        "bloom_filter_bytes long, repair_request_bytes long, causal_history_bytes long, "
        "bytes_per_message double"
    )
    assertDataFrameEqual(
        figures.overhead(facts(spark, *given)),
        spark.createDataFrame(expected, schema),
        ignoreNullable=True,
    )


def test_late_joiners(spark: SparkSession) -> None:
    given = facts(
        spark,
        fact("Life", "alice", opened_ms=0, owed_from_ms=0),
        fact("Life", "bob", opened_ms=1_500, owed_from_ms=1_500),
        delivery("alice", 1_000, first_segment_id="m"),
        delivery("alice", 1_200, message_id="n", first_segment_id="n"),
        delivery("alice", 1_600, message_id="o", first_segment_id="o"),
        delivery("bob", 1_700),
        delivery("bob", 1_700, message_id="o"),
    )
    expected = [("general", "bob", 0, 1_500, 1_500, 2, 1)]
    schema = (
        "channel_id string, participant_id string, life long, opened_ms long, owed_from_ms long, "
        "said_before long, has_of_them long"
    )
    assertDataFrameEqual(
        figures.late_joiners(given), spark.createDataFrame(expected, schema), ignoreNullable=True
    )
