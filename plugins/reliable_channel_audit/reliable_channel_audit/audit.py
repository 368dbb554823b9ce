"""Any number of journals judged on Spark, with the same answer as `check`."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, DataFrameReader, SparkSession, Window
from pyspark.sql import functions as F

from .audits import WHOSE, compare, context_of, rows_of_kind, table, values_of
from .check import behind, cases, lost
from .clocks import clocks_apart
from .evidence import MAX_STEPS, Evidence, Rank, Step, lives, shown_by, worst
from .facts import Acknowledgement, Delivery, Dispatch, Outcome
from .findings import Coverage, Finding, Orphan
from .journals import group_of, journal_files
from .promises import (
    Compared,
    Context,
    compare_messages,
    disordered,
    invented,
    twice_at_a_time,
    unequal_logs,
    unknowns,
)
from .replay import Life
from .verdict import MAX_FINDINGS, SetAside, Verdict, counted

_WHOSE_TYPES: Final = ("channel_id string", "participant_id string", "life long")
MAX_GATHERED: Final = 250_000
"""Facts that are compared in this process, in some 200 MB: what is planned and compiled to compare
them by Spark takes more than half a minute of CPU time, however few they are."""
_COMPARED: Final[dict[str, type[Any]]] = {
    kind.__name__: kind for kind in (*(Delivery, Outcome, Acknowledgement, Dispatch, Orphan),)
}


def read_facts(
    spark: SparkSession,
    paths: Sequence[str | Path],
    *,
    settle_ms: int | None = None,
    partitions: int | None = None,
) -> DataFrame:
    """What the journals in files and directories say; kept, as audits look at it many times."""
    reader = spark.read.format("sds_facts")
    if settle_ms is not None:
        reader = reader.option("settle_ms", settle_ms)
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
    settle_ms: int | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> Verdict:
    """Judge facts; `paths` are searched for files that are not read.

    Digests are compared first, and only channels whose logs differ are looked at closer: here, if
    they have at most `MAX_GATHERED` facts together, and else in the tasks of Spark.
    """
    progress("reading the journals")
    kinds = rows_of_kind(facts)
    context = context_of(facts, settle_ms)
    progress("comparing the participants")
    broken, first, compared, messages = _compared(facts, context)
    alone, first_alone = _listed(table(facts, "Finding"))
    lives = context.lives
    broken, first = _both(
        (broken, first),
        (alone, first_alone),
        counted([*twice_at_a_time(lives), *clocks_apart(lives, context.offsets)]),
        counted([*unequal_logs(lives, _logs_of(facts, lives))]),
    )
    coverage = _coverage(facts)
    aside = [SetAside(*row) for row in table(facts, "SetAside").collect()]
    aside += group_of(journal_files(paths)).set_aside if paths else []
    deeds = table(facts, "Deed").groupBy("what").agg(F.sum("times").alias("times")).collect()
    return Verdict(
        participants=len({life[:2] for life in lives}),
        lives=len(lives),
        logs=len({(life.channel_id, life.log_digest) for life in lives}),
        messages=messages,
        deliveries=kinds.get("Delivery", 0),
        on_the_way=compared.on_the_way,
        behind=behind(compared),
        lost=lost(compared),
        clocks=context.clocks,
        judged=cases(coverage, broken),
        unknown=unknowns(coverage, context, compared.unjudged),
        without_journal=context.unheard,
        broken=broken,
        findings=first,
        set_aside=sorted(aside),
        misbehaviour={row.what: row.times for row in deeds},
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
    return shown_by(
        shown, lives((Rank(row.rank), Step(*row[1:])) for row in rows), paths, found.clocks
    )


Counts = tuple[dict[str, int], list[Finding]]
"""How many findings each audit has, and the first ones of each."""


def _compared(
    facts: DataFrame, context: Context
) -> tuple[dict[str, int], list[Finding], Compared, int]:
    """All that was broken between participants, what could not be judged, and how many messages
    there are."""
    same = {
        channel_id: lives[0].entries
        for channel_id, lives in _by_channel(context.lives).items()
        if len({life.participant_id for life in lives}) > 1
        and len({life.log_digest for life in lives}) == 1
        and all(life.is_whole and not life.impostors for life in lives)
    }
    messages = sum(same.values())
    orphans = values_of(facts, {"Orphan": Orphan})[Orphan]
    alike, _ = compare_messages(context, (), (), (), [x for x in orphans if x.channel_id in same])
    if len(same) == len({life.channel_id for life in context.lives}):
        return *counted(alike.findings), Compared(unjudged=alike.unjudged), messages
    rows = facts.sparkSession.createDataFrame([(each,) for each in same], "channel_id string")
    differing = facts.join(F.broadcast(rows), "channel_id", "left_anti") if same else facts
    kinds = rows_of_kind(differing.where(F.col("fact").isin([*_COMPARED])))
    if sum(kinds.values()) <= MAX_GATHERED:
        gathered = values_of(differing, _COMPARED)
        found, false = compare_messages(
            context,
            gathered[Delivery],
            gathered[Outcome],
            gathered[Acknowledgement],
            gathered[Orphan],
        )
        findings = [*found.findings, *invented(false, gathered[Dispatch])]
        broken, first = counted(findings)
        messages += len({(each.channel_id, each.message_id) for each in gathered[Delivery]})
    else:
        broken, first, found, number = compare(differing, context)
        messages += number
    for audit, reason in alike.unjudged.items():
        found.add_reason(audit, reason)
    return *_both((broken, first), counted(alike.findings)), found, messages


def _by_channel(lives: Iterable[Life]) -> dict[str, list[Life]]:
    channels: defaultdict[str, list[Life]] = defaultdict(list)
    for life in lives:
        channels[life.channel_id].append(life)
    return channels


def _logs_of(facts: DataFrame, lives: Sequence[Life]) -> list[Delivery]:
    """The logs whose order must be compared entry by entry: few, if any."""
    wanted = {life[:3] for model, others in disordered(lives) for life in (model, *others)}
    if not wanted:
        return []
    rows = facts.sparkSession.createDataFrame(sorted(wanted), ", ".join(_WHOSE_TYPES))
    logs = table(facts, "Delivery").join(F.broadcast(rows), [*WHOSE], "left_semi")
    return [Delivery(*row) for row in logs.select(*Delivery._fields).collect()]


def _coverage(facts: DataFrame) -> list[Coverage]:
    """What each audit looked at in each channel, and the first reason why it could not judge."""
    covered = table(facts, "Coverage")
    first = F.min(F.when(F.col("why").isNotNull(), F.struct("participant_id", "life", "why")))
    sums = covered.groupBy("channel_id", "audit").agg(
        F.sum("cases").alias("cases"), first.alias("first")
    )
    return [
        Coverage(
            row.channel_id,
            row.first.participant_id if row.first else "",
            row.first.life if row.first else 0,
            row.audit,
            row.cases,
            row.first.why if row.first else None,
        )
        for row in sums.collect()
    ]


def _both(*parts: Counts) -> Counts:
    """Findings of several kinds together."""
    total = sum((Counter(broken) for broken, _ in parts), Counter[str]())
    _, first = counted([each for _, some in parts for each in some])
    return {audit: total[audit] for audit in sorted(total)}, first


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
