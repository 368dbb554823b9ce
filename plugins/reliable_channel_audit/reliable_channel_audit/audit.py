"""Any number of journals judged on Spark, with the same answer as `check`."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, DataFrameReader, SparkSession, Window
from pyspark.sql import functions as F

from .audits import (
    MESSAGE,
    absent,
    alike,
    findings_alone,
    findings_between,
    orphaned,
    rows_of_kind,
    table,
    without_journal,
)
from .check import judge, nobody
from .evidence import MAX_STEPS, Evidence, Rank, Step, lives, shown_by, worst
from .facts import Acknowledgement, Delivery, Dispatch, Lag, Outcome
from .findings import SETTLE_MS, Finding, HeardSender, Orphan
from .journals import journal_files, participants
from .promises import not_judged, reasons
from .replay import Life
from .schemas import FACT, FACTS, MANY
from .sources.batches import rows_of
from .sources.fact_batches import rows_in
from .verdict import MAX_FINDINGS, SetAside, Verdict, counted

MAX_GATHERED: Final = 250_000
"""Facts that are compared in this process, in some 200 MB: what is planned and compiled to compare
them by Spark takes more than half a minute of CPU time, however few they are."""
_COMPARED: Final[dict[str, type[Any]]] = {
    kind.__name__: kind
    for kind in (
        *(Life, Delivery, Outcome, Acknowledgement, Dispatch, Lag, Finding, HeardSender, Orphan),
    )
}


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
    """The judgement of facts; `paths` are searched for files without a participant.

    Digests are compared first, and only channels whose logs differ are looked at closer: here,
    where they have at most `MAX_GATHERED` facts together, and else by Spark.
    """
    progress("reading the journals")
    kinds = rows_of_kind(facts)
    lives = _row(
        table(facts, "Life").agg(
            F.count_distinct("channel_id", "participant_id").alias("participants"),
            F.count("*").alias("lives"),
            F.count_distinct("channel_id", "log_digest").alias("logs"),
        )
    )
    progress("comparing the participants")
    compared = _compared(facts, kinds, settle_ms)
    unheard = sorted(tuple(row) for row in without_journal(facts).collect())
    judged, unknown = _judged(facts, unheard)
    aside = [SetAside(*row) for row in table(facts, "SetAside").collect()]
    _, nobodys = participants(journal_files(paths)) if paths else ([], [])
    return Verdict(
        **lives,
        messages=compared.messages,
        deliveries=kinds.get("Delivery", 0),
        on_the_way=compared.on_the_way,
        judged=judged,
        unknown=unknown,
        without_journal=unheard,
        broken=compared.broken,
        findings=compared.findings,
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


class _Compared(NamedTuple):
    """What comes of comparing participants."""

    messages: int
    on_the_way: int
    broken: dict[str, int]
    findings: list[Finding]
    """Of each audit the first ones."""


def _compared(facts: DataFrame, kinds: Mapping[str, int], settle_ms: int) -> _Compared:
    """All that was broken, in facts of so many of each kind."""
    same = alike(table(facts, "Life")).persist()
    messages = _row(same.agg(F.coalesce(F.sum("messages"), F.lit(0)).alias("n")))["n"]
    differing = facts.join(F.broadcast(same), "channel_id", "left_anti")
    rows = sum(rows_of_kind(differing.where(F.col("fact").isin(list(_COMPARED)))).values())
    if table(differing, "Life").isEmpty():
        compared = _Compared(messages, 0, *_listed(_of_each(facts, kinds)))
    elif rows <= MAX_GATHERED:
        here = judge(gather(differing), participants=0, settle_ms=settle_ms)
        those_alike = facts.join(F.broadcast(same), "channel_id", "left_semi")
        broken, first = _listed(_of_each(those_alike, kinds))
        both = Counter(broken) + Counter(here.broken)
        _, first = counted([*first, *here.findings])
        broken = {audit: both[audit] for audit in sorted(both)}
        compared = _Compared(messages + here.messages, here.on_the_way, broken, first)
    else:
        # Spark finds these again wherever the same tables are asked for below.
        unpacked = [table(differing, kind).persist() for kind in MANY if kind != "Said"]
        messages += table(differing, "Delivery").select(*MESSAGE).distinct().count()
        missing = absent(differing, settle_ms).persist()
        found = _of_each(facts, kinds).unionByName(findings_between(differing, missing))
        on_the_way = missing.where("not is_due").count()
        compared = _Compared(messages, on_the_way, *_listed(found))
        for each in (missing, *unpacked):
            each.unpersist()
    same.unpersist()
    return compared


def _of_each(facts: DataFrame, kinds: Mapping[str, int]) -> DataFrame:
    found = findings_alone(facts)
    return found.unionByName(orphaned(facts)) if kinds.get("Orphan") else found


def gather(facts: DataFrame) -> defaultdict[type, list[Any]]:
    """What `check.judge` compares, as values in this process: for few facts."""
    given = facts.where(F.col("fact").isin(list(_COMPARED))).toArrow()
    found: defaultdict[type, list[Any]] = defaultdict(list)
    for name, kind in _COMPARED.items():
        rows = given.filter(pc.equal(given["fact"], name))
        for values in rows_of(_of_kind(name, rows)):
            found[kind].append(kind(*values))
    return found


def _of_kind(kind: str, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """The columns of facts that are all of one kind."""
    names = FACTS[kind].names
    if kind in MANY:
        every = zip(rows["channel_id"].to_pylist(), rows["many"].to_pylist(), strict=True)
        yield from (rows_in(kind, *each, names) for each in every)
        return
    rare = pc.list_flatten(rows["rare"])
    columns = (rows[name] if name in FACT.names else pc.struct_field(rare, name) for name in names)
    yield from pa.table(dict(zip(names, columns, strict=True))).to_batches()


def _judged(
    facts: DataFrame, unheard: list[tuple[Any, ...]]
) -> tuple[dict[str, int], dict[str, str]]:
    """How many cases each audit looked at, and why what is unknown is so."""
    judged = table(facts, "Coverage")
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


def _listed(found: DataFrame) -> tuple[dict[str, int], list[Finding]]:
    """How many findings each audit has, and the first ones of each."""
    found = found.persist()
    broken = {row.audit: row["count"] for row in found.groupBy("audit").count().collect()}
    by = Window.partitionBy("audit").orderBy(*Finding._fields)
    rows = found.withColumn("place", F.row_number().over(by)).where(F.col("place") <= MAX_FINDINGS)
    first = sorted(Finding(*row) for row in rows.select(*Finding._fields).collect())
    found.unpersist()
    return {audit: broken[audit] for audit in sorted(broken)}, first


def _row(frame: DataFrame) -> dict[str, Any]:
    (row,) = frame.collect()
    values: dict[str, Any] = row.asDict()
    return values
