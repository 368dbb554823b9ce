"""An audit in tasks of Spark gives the answer of `check`, and causal order is what SQL says."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from reliable_channel_audit.check import check
from reliable_channel_audit.decode import decoded
from reliable_channel_audit.findings import Audit
from reliable_channel_audit.tables.ingest import ingest
from reliable_channel_audit.tables.judging import judge

from ..generated import write_group
from ..planted import FAULTS, plant
from ..plants import read, write_parts


def test_an_audit_in_tasks_is_that_of_check(spark: SparkSession, tmp_path: Path) -> None:
    """With faults of every kind, two channels, and a file of nobody."""
    journals, facts = tmp_path / "journals", tmp_path / "facts"
    paths = write_group(journals / "one", participants=len(FAULTS), messages=200)
    for seed, (fault, path) in enumerate(zip(FAULTS, paths, strict=True)):
        plant(fault, path, seed)
    write_group(journals / "two", messages=30, channel_id="another")
    (journals / "poem.jsonl").write_text("of nobody\n")
    done = ingest([journals], facts, with_open=True, spark=spark, partitions=3)
    found = judge(facts, done.group).verdict
    assert found.to_json() == check([journals]).to_json()
    assert set(found.broken) == {each.value for each in Audit}


def test_tasks_follow_the_data(spark: SparkSession, tmp_path: Path) -> None:
    """750 deliveries of three participants are three tasks, and each part of a journal is one."""
    tracker = spark.sparkContext.statusTracker()

    def tasks(journals: Path) -> list[int]:
        before = {*tracker.getJobIdsForGroup()}
        ingest([journals], tmp_path / f"{journals.name}_facts", with_open=True, spark=spark)
        jobs = map(tracker.getJobInfo, {*tracker.getJobIdsForGroup()} - before)
        stages = [stage for job in jobs if job for stage in job.stageIds]
        return [info.numTasks for info in map(tracker.getStageInfo, stages) if info]

    write_group(tmp_path / "whole", participants=3, messages=250)
    assert tasks(tmp_path / "whole") == [3]
    write_parts(tmp_path / "parts", read(tmp_path / "whole"))
    assert tasks(tmp_path / "parts") == [len([*(tmp_path / "parts").iterdir()])] > [3]


CAUSAL_ORDER_IN_SQL = """
    with logged as (
        select participant_id, life, number, message_id, message_hash from journal
        where event = 'message_logged'
    ), edges as (
        select participant_id, message_hash, explode(message.causal_history) as dependency
        from wire
    )
    select distinct late.participant_id, late.message_id, late_dependency.message_id as dependency
    from logged late
    join edges on edges.participant_id = late.participant_id
        and edges.message_hash = late.message_hash
    join logged late_dependency on late_dependency.participant_id = late.participant_id
        and late_dependency.life = late.life
        and late_dependency.message_id = edges.dependency
    where late_dependency.number > late.number
"""


def test_causal_order_is_what_sql_says(spark: SparkSession, tmp_path: Path) -> None:
    for number, path in enumerate(write_group(tmp_path, participants=3, messages=150)):
        for seed in range(number + 1):
            plant("swapped causal pair", path, seed)
    journal = spark.read.format("sds_journal").load(str(tmp_path))
    journal.createOrReplaceTempView("journal")
    wire = journal.where("event = 'wire_in'").select("participant_id", "message_hash", "payload")
    decoded(wire).createOrReplaceTempView("wire")
    expected = {tuple(row) for row in spark.sql(CAUSAL_ORDER_IN_SQL).collect()}

    found = {
        (each.participant_id, each.message_id, each.detail.split()[2].rstrip(","))
        for each in check([tmp_path]).findings
        if each.audit == "causal_order"
    }
    assert found == expected
    assert len({participant_id for participant_id, *_ in found}) == 3
