"""Any number of journals judged on Spark, with the same answer as `check`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, SparkSession, Window
from pyspark.sql import functions as F

from .audits import absent, findings, table, without_journal
from .check import nobody
from .evidence import MAX_STEPS, Evidence, Rank, Step, lives, shown_by, worst
from .findings import SETTLE_MS, Finding
from .journals import journal_files, participants
from .promises import not_judged, reasons
from .verdict import MAX_FINDINGS, SetAside, Verdict


def read_facts(
    spark: SparkSession,
    paths: Sequence[str | Path],
    *,
    settle_ms: int = SETTLE_MS,
    partitions: int | None = None,
) -> DataFrame:
    """What the journals in files and directories say; kept, as audits look at it many times."""
    reader = spark.read.format("sds_facts").option("settle_ms", settle_ms)
    return _load(reader, paths, partitions).persist()


def read_said(
    spark: SparkSession, paths: Sequence[str | Path], *, partitions: int | None = None
) -> DataFrame:
    """What was said and what it refers to, as each participant has it (`dag_tables`)."""
    return _load(spark.read.format("sds_said"), paths, partitions)


def verdict(
    facts: DataFrame,
    paths: Iterable[str | Path] = (),
    *,
    settle_ms: int = SETTLE_MS,
    progress: Callable[[str], None] = lambda what: None,
) -> Verdict:
    """The judgement of facts; `paths` are searched for files without a participant."""
    progress("reading the journals")
    lives = _row(
        table(facts, "Life").agg(
            F.count_distinct("channel_id", "participant_id").alias("participants"),
            F.count("*").alias("lives"),
            F.count_distinct("channel_id", "log_digest").alias("logs"),
        )
    )
    progress("counting")
    deliveries = _row(
        table(facts, "Delivery").agg(
            F.count_distinct("channel_id", "message_id").alias("messages"),
            F.count("*").alias("deliveries"),
        )
    )
    progress("comparing the participants")
    missing = absent(facts, settle_ms).persist()
    found = findings(facts, missing).persist()
    broken = {row.audit: row["count"] for row in found.groupBy("audit").count().collect()}
    first = _first(found)
    on_the_way = missing.where("not is_due").count()
    unheard = sorted(tuple(row) for row in without_journal(facts).collect())
    judged, unknown = _judged(facts, unheard)
    aside = [SetAside(*row) for row in table(facts, "SetAside").collect()]
    _, nobodys = participants(journal_files(paths)) if paths else ([], [])
    found.unpersist()
    missing.unpersist()
    return Verdict(
        **lives,
        **deliveries,
        on_the_way=on_the_way,
        judged=judged,
        unknown=unknown,
        without_journal=unheard,
        broken={audit: broken[audit] for audit in sorted(broken)},
        findings=first,
        set_aside=sorted([nobody(path) for path in nobodys] + aside),
    )


def evidence(
    spark: SparkSession,
    found: Verdict,
    paths: Sequence[str | Path],
    *,
    partitions: int | None = None,
) -> list[Evidence]:
    """The evidence that `check` has, from one more reading of the journals of channels with
    findings; of that no more than the steps to show is gathered here."""
    shown = worst(found.findings)
    if not shown:
        return []
    reader = spark.read.format("sds_steps").option("findings", json.dumps(shown))
    order = ("rank", "channel_id", "participant_id", "place")
    nth = F.row_number().over(Window.partitionBy("message_id", "rank").orderBy(*order))
    rows = (
        _load(reader, paths, partitions)
        .withColumn("nth", nth)
        .where(F.col("nth") <= MAX_STEPS)
        .orderBy(*order)
        .select("rank", *Step._fields)
        .collect()
    )
    return shown_by(shown, lives((Rank(row.rank), Step(*row[1:])) for row in rows), paths)


def _judged(
    facts: DataFrame, unheard: list[tuple[Any, ...]]
) -> tuple[dict[str, int], dict[str, str]]:
    """How many cases each audit looked at, and why what is unknown is so."""
    judged = table(facts, "Judged")
    cases = {
        (row.channel_id, row.audit): row.cases
        for row in judged.groupBy("channel_id", "audit")
        .agg(F.sum("cases").alias("cases"))
        .collect()
    }
    first = F.min(F.struct("channel_id", "participant_id", "life", "why")).alias("first")
    rows = judged.where("why is not null").groupBy("audit").agg(first).collect()
    why = {row.audit: not_judged(row.first.participant_id, row.first.why) for row in rows}
    participants = F.count_distinct("participant_id").alias("participants")
    journals = table(facts, "Life").groupBy("channel_id").agg(participants).collect()
    totals = Counter[str]()
    for (_, audit), number in cases.items():
        totals[audit] += number
    known = {row.channel_id: row.participants for row in journals}
    return dict(totals), why | reasons(known, cases, unheard)


def _load(
    reader: DataFrameReader, paths: Sequence[str | Path], partitions: int | None
) -> DataFrame:
    if partitions is not None:
        reader = reader.option("partitions", partitions)
    return reader.load([str(Path(path).resolve()) for path in paths])


def _first(found: DataFrame) -> list[Finding]:
    """Of each audit the first findings."""
    by = Window.partitionBy("audit").orderBy(*Finding._fields)
    rows = found.withColumn("place", F.row_number().over(by)).where(F.col("place") <= MAX_FINDINGS)
    return sorted(Finding(*row) for row in rows.select(*Finding._fields).collect())


def _row(frame: DataFrame) -> dict[str, Any]:
    (row,) = frame.collect()
    values: dict[str, Any] = row.asDict()
    return values
