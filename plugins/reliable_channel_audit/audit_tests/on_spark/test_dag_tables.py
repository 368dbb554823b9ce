"""The causal DAG as tables: small ones in, small ones out."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from reliable_channel_audit import dag_tables
from reliable_channel_audit.dag import Said, places, said_by
from reliable_channel_audit.dag_tables import read_said
from reliable_channel_audit.journals import group_of, journal_files
from reliable_channel_audit.report import write_report
from reliable_channel_audit.schemas import PLACE, SAID

from ..generated import write_group
from .tables import judged


@pytest.fixture(scope="module")
def diamond(spark: SparkSession) -> DataFrame:
    """Two that do not know of each other, between two; the first refers to what is lost."""
    rows = [
        Said("general", "alice", "a", "alice", 1, 10, ["older"]),
        Said("general", "bob", "a", "alice", 1, 11, ["older"]),
        Said("general", "alice", "b", "alice", 2, 12, ["a"]),
        Said("general", "bob", "c", "bob", 2, 12, ["a"]),
        Said("general", "bob", "d", "bob", 3, 13, ["a", "b", "c", "c"]),
        Said("other", "bob", "older", "bob", 3, 13, []),
    ]
    return spark.createDataFrame(rows, SAID)


def test_edges(spark: SparkSession, diamond: DataFrame) -> None:
    expected = [
        ("general", "a", "older", False),
        *(("general", message, "a", True) for message in "bcd"),
        ("general", "d", "b", True),
        ("general", "d", "c", True),
    ]
    schema = "channel_id string, message_id string, refers_to string, is_known boolean"
    assertDataFrameEqual(
        dag_tables.edges(diamond), spark.createDataFrame(expected, schema), ignoreNullable=True
    )


def test_union(spark: SparkSession, diamond: DataFrame) -> None:
    """As whoever saw it first has it."""
    found = dag_tables.union(diamond).select("channel_id", "message_id", "participant_id", "at_ms")
    expected = [
        ("general", "a", "alice", 10),
        ("general", "b", "alice", 12),
        ("general", "c", "bob", 12),
        ("general", "d", "bob", 13),
        ("other", "older", "bob", 13),
    ]
    assertDataFrameEqual(found, spark.createDataFrame(expected, found.schema), ignoreNullable=True)


def test_nodes(spark: SparkSession, diamond: DataFrame) -> None:
    expected = [
        ("general", "a", "alice", 1, 10, 1, 1, 1, 1, False),
        ("general", "b", "alice", 2, 12, 1, 0, 2, 1, False),
        ("general", "c", "bob", 2, 12, 1, 0, 2, 2, False),
        ("general", "d", "bob", 3, 13, 3, 0, 3, 1, True),
        ("other", "older", "bob", 3, 13, 0, 0, 1, 1, True),
    ]
    assertDataFrameEqual(dag_tables.nodes(diamond), spark.createDataFrame(expected, PLACE))


def test_shape(spark: SparkSession, diamond: DataFrame) -> None:
    found = dag_tables.shape(dag_tables.nodes(diamond))
    expected = [("general", 4, 6, 3, 1.25, 2, 1, 1, 0, 2), ("other", 1, 0, 1, 1.0, 1, 1, 0, 0, 1)]
    schema = (
        "channel_id string, messages long, edges long, depth long, branches double, "
        "most_branches long, heads long, orphans long, in_circles long, width long"
    )
    assertDataFrameEqual(found, spark.createDataFrame(expected, schema), ignoreNullable=True)


@pytest.mark.parametrize(
    ("times", "drawn"), [((0, 100), "abcd"), ((12, 12), "bc"), ((14, 100), "")]
)
def test_what_is_drawn_is_of_the_busiest_channel(
    diamond: DataFrame, times: tuple[int, int], drawn: str
) -> None:
    nodes = dag_tables.placed(dag_tables.union(diamond), *times)
    said = dag_tables.last_of(nodes, *times)
    assert [each.message_id for each in said] == list(drawn)
    assert all(each.references for each in said)


def test_spark_and_one_process_see_one_dag(spark: SparkSession, tmp_path: Path) -> None:
    write_group(tmp_path / "journals", loss=0.3)
    said = read_said(spark, [tmp_path / "journals"], partitions=3)
    group = group_of(journal_files([tmp_path / "journals"])).participants
    mine = said.where(said.participant_id == group[0].participant_id)
    found = dag_tables.nodes(mine).orderBy("lamport_timestamp", "message_id").collect()
    assert [tuple(row)[1:] for row in found] == places(list(said_by(group[0])))

    facts, judged_here = judged(spark, tmp_path / "journals", tmp_path / "facts")
    page = write_report(facts, judged_here.verdict, tmp_path / "report", said=said)
    text = page.read_text()
    assert "60 messages and what they refer to" in text
    assert spark.read.parquet(str(page.with_name("dag.parquet"))).count() == 120
