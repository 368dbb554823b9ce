"""`reliable-channel audit`: a page that stands by itself, and its figures."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from reliable_channel_audit import figures
from reliable_channel_audit.check import check
from reliable_channel_audit.clocks import clock_offsets
from reliable_channel_audit.evidence import evidence
from reliable_channel_audit.frames import Facts
from reliable_channel_audit.journals import group_of, journal_files
from reliable_channel_audit.page import title_of
from reliable_channel_audit.report import FIGURES, write_report

from ..generated import write_group
from ..planted import plant
from ..test_clocks import OFFSETS, lags
from .tables import delivery, fact, facts, judged


def test_the_page_stands_by_itself(spark: SparkSession, tmp_path: Path) -> None:
    path = write_group(tmp_path / "journals")[1]
    ((_, _, message_id),) = plant("missing", path, seed=1)
    facts, judged_here = judged(spark, tmp_path / "journals", tmp_path / "facts")
    group = group_of(journal_files([tmp_path / "journals"])).participants
    shown = evidence(group, judged_here.verdict, [tmp_path / "journals"])
    page = write_report(
        facts,
        judged_here.verdict,
        tmp_path / "report",
        paths=[tmp_path / "journals"],
        evidence=shown,
    )

    text = page.read_text()
    assert "Broken promises" in text
    assert message_id in text
    assert "<svg" in text
    assert not re.search(r"<script|<link|src=|@import|url\(http", text)
    for figure in FIGURES:
        rows = pq.read_table(page.with_name(f"{figure.name}.parquet"))
        told = {name for row in rows.to_pylist() for name, value in row.items() if value}
        assert all(f">{title_of(name)}</th>" in text for name in told - {"channel_id"})
    found = json.loads(page.with_name("report.json").read_text())
    assert len(shown) == 1
    expected = json.loads(check([tmp_path / "journals"]).to_json())
    assert found == expected | {"evidence": [each.to_dict() for each in shown]}
    assert [each["lost"] for each in found["rates"] if each["lost"]] == [1, 1, 1]
    assert pq.read_table(page.with_name("findings.parquet")).num_rows == 1
    hours, pairs = (
        pq.read_table(page.with_name(f"delivery_by_{name}.parquet")) for name in ("hour", "pair")
    )
    assert sum(hours["lost"].to_pylist()) == sum(pairs["lost"].to_pylist()) == 1
    assert pairs.num_rows == 12


@pytest.fixture(scope="module")
def copies(spark: SparkSession) -> Facts:
    """One message of alice, which came to others by every way."""
    sent = [
        fact("Dispatch", "alice", message_hash=b"1", kind="content"),
        fact("Dispatch", "alice", message_hash=b"2", kind="retry"),
        fact("Dispatch", "bob", message_hash=b"3", kind="repair"),
    ]
    came = [
        delivery("alice", 1_000, first_segment_id="m"),
        delivery("bob", 1_010, source="live", message_hash=b"1"),
        delivery("carol", 1_200, source="live", message_hash=b"2"),
        delivery("dave", 1_300, source="live", message_hash=b"3", missing_since_ms=1_100),
        delivery("erin", 1_400, source="store", message_hash=b"1"),
        delivery("frank", 1_500, source="live", message_hash=b"4"),
    ]
    return facts(spark, *sent, *came)


def test_ways(spark: SparkSession, copies: Facts) -> None:
    expected = [
        ("live", 10, None),
        ("retransmission", 200, None),
        ("repair", 300, 200),
        ("store", 400, None),
        ("unknown", 500, None),
    ]
    schema = "way string, delay_ms long, missing_ms long"
    found = figures.ways(copies).select("way", "delay_ms", "missing_ms")
    assertDataFrameEqual(found, spark.createDataFrame(expected, schema))


def test_of_a_sender_without_journal_the_first_delivery_counts(spark: SparkSession) -> None:
    said = {"sender_id": "zoe", "source": "live", "message_hash": b"1"}
    rows = [delivery("bob", 900, **said), delivery("carol", 950, **said)]
    found = figures.ways(facts(spark, *rows)).select("delay_ms")
    expected = spark.createDataFrame([(0,), (50,)], found.schema)
    assertDataFrameEqual(found, expected, ignoreNullable=True)


def test_clocks_are_as_far_apart_as_in_one_process(spark: SparkSession) -> None:
    offsets = clock_offsets(lags(*OFFSETS))
    expected = [("general", name, offset_ms, "") for name, offset_ms in OFFSETS.items()]
    schema = "channel_id string, participant_id string, offset_ms long, why string"
    found = figures.clocks(facts(spark, offsets=offsets)).drop("least_ms", "most_ms")
    assertDataFrameEqual(found, spark.createDataFrame(expected, schema), ignoreNullable=True)


def test_members(spark: SparkSession) -> None:
    deeds = [("alice", 10, 2), ("bob", 5, 40)]
    rows = [
        fact(
            "Deed",
            whose,
            sender="'mallory'",
            what="refused as forged_id",
            message_id="m",
            at_ms=at_ms,
            times=times,
        )
        for whose, at_ms, times in deeds
    ]
    expected = [("general", "'mallory': refused as forged_id", 42, 2, 5)]
    schema = "channel_id string, what string, times long, seen_by long, at_ms long"
    found = figures.members(facts(spark, *rows))
    assertDataFrameEqual(found, spark.createDataFrame(expected, schema), ignoreNullable=True)
