"""What Spark really does: which rows it exchanges, and how often journals are read."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from reliable_channel_audit.audit import read_facts, read_said, verdict
from reliable_channel_audit.audits import alike, table
from reliable_channel_audit.check import check
from reliable_channel_audit.report import write_report

from ..generated import write_group
from ..planted import plant

PARTICIPANTS = 4


def rows_exchanged(spark: SparkSession, facts: DataFrame) -> int:
    """Rows that stages wrote for others to read, while facts were judged."""
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001
    store = context.statusStore()
    none = spark.sparkContext._gateway.new_array(spark.sparkContext._jvm.double, 0)  # noqa: SLF001

    def total() -> int:
        context.listenerBus().waitUntilEmpty(2**62)  # what stages did is told later, by a queue
        stages = store.stageList(None, False, False, none, None)
        return sum(stages.apply(at).shuffleWriteRecords() for at in range(stages.size()))

    before = total()
    verdict(facts)
    return total() - before


def test_of_clean_logs_digests_alone_are_exchanged(spark: SparkSession, tmp_path: Path) -> None:
    """As many rows for four times as many messages."""
    exchanged = []
    for messages in (100, 400):
        journals = tmp_path / str(messages)
        write_group(journals, participants=PARTICIPANTS, messages=messages, bloom=None)
        facts = read_facts(spark, [journals], partitions=PARTICIPANTS)
        facts.count()
        exchanged.append(rows_exchanged(spark, facts))
        facts.unpersist()
    few, many = exchanged
    assert 0 < few
    assert many - few < 30


def test_audit_and_report_read_journals_once(spark: SparkSession, tmp_path: Path) -> None:
    """They need no journals once these were read."""
    journals = tmp_path / "journals"
    write_group(journals, messages=100)
    expected = check([journals])
    facts, said = read_facts(spark, [journals]), read_said(spark, [journals])
    facts.count()
    shutil.rmtree(journals)
    found = verdict(facts)
    page = write_report(facts, found, tmp_path / "report", said=said)
    facts.unpersist()
    assert found == expected
    assert spark.read.parquet(str(page.with_name("dag.parquet"))).count() == 100


def test_alike(spark: SparkSession, tmp_path: Path) -> None:
    """Only channels of several participants that all have the same messages."""
    write_group(tmp_path / "clean", messages=30, channel_id="clean")
    write_group(tmp_path / "alone", messages=10, channel_id="alone", participants=1)
    plant("missing", write_group(tmp_path / "torn", messages=40, channel_id="torn")[0], seed=1)
    other = write_group(tmp_path / "other", messages=40, channel_id="other")[0]
    plant("swapped concurrent pair", other, seed=1)
    facts: DataFrame = read_facts(spark, [tmp_path])
    assert [tuple(row) for row in alike(table(facts, "Life")).collect()] == [("clean", 30)]
    facts.unpersist()
