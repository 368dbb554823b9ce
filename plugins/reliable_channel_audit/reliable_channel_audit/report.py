"""The report: one page that stands by itself, and the same as JSON and Parquet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from . import arrivals, dag_tables, figures
from .dag_picture import draw_dag
from .delivery_sections import delivery_sections
from .evidence import Evidence
from .findings import Finding
from .frames import Facts, in_true_time, table
from .journals import group_of, journal_files, options_of
from .page import (
    MAX_IN_MATRIX,
    MAX_ROWS,
    CaseTable,
    Subject,
    as_json,
    page,
    section,
    worst_participants,
)
from .plots import Curve, Panel, PlotsUnavailable, draw
from .schemas import FINDING
from .sources.batches import arrow_schema
from .timeline import TimeBucket
from .verdict import Rate, Verdict


@dataclass(frozen=True, slots=True)
class Figure:
    """A table of the report."""

    name: str
    title: str
    of: Callable[..., DataFrame]

    @property
    def about(self) -> str:
        return " ".join((self.of.__doc__ or "").split())


WIDE_INCHES: Final = (10.0, 2.4)
"""Size of a panel that fills the page with letters of the size of its text."""
LEADING: Final = (
    Figure("delivery_by_way", "How messages came", arrivals.by_way),
    Figure("repair", "Losses that were repaired", figures.repair_efficiency),
    Figure("acknowledgements", "Acknowledgements", figures.acknowledgement_latency),
)
"""Before the promises, after delivery rates: what an operator asks first."""
FIGURES: Final = (
    Figure("overhead", "Overhead", figures.overhead),
    Figure("sync", "Sync messages by the size of the group", figures.sync_traffic),
    Figure("clocks", "Clocks", figures.clocks),
    Figure("misbehaviour", "What no honest member sends", figures.members),
    Figure("late_joiners", "Late participants", figures.late_joiners),
)


def write_report(
    facts: Facts,
    found: Verdict,
    directory: Path,
    *,
    paths: Sequence[str | Path] = (),
    evidence: Sequence[Evidence] = (),
    settle_ms: int | None = None,
    said: DataFrame | None = None,
    begin_ms: int = 0,
    end_ms: int = 2**63 - 1,
    progress: Callable[[str], None] = lambda what: None,
) -> Path:
    """Write `index.html`, `report.json` and a Parquet file a table; return the page's path.

    Of the journals in `paths` the options are shown. With `said` (`sds_said`) the causal DAG is a
    section, with a picture of the last messages between `begin_ms` and `end_ms`.

    Raises:
        OSError: the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    true = in_true_time(facts, found.ahead_ms)
    _write_rates(found.rates, directory)
    (directory / "report.json").write_text(as_json(found, evidence))
    came = arrivals.arrivals(true)
    sections = []
    for figure in (*LEADING, *FIGURES):
        progress(figure.title.lower())
        is_counted = figure.of is arrivals.by_way
        values = figure.of(came.counted if is_counted else facts).toArrow()
        pq.write_table(values, directory / f"{figure.name}.parquet")
        first = [tuple(row.values()) for row in values.slice(0, MAX_ROWS).to_pylist()]
        drawn = _delays(came.counted) if is_counted else ""
        sections.append(section(figure.title, figure.about, values.column_names, first, drawn))
    buckets = _buckets(came, found.findings, found.ahead_ms)
    came.counted.unpersist()
    if said is not None:
        progress("the causal dag")
        sections.append(_dag(said, directory, begin_ms, end_ms))
    progress("writing the tables")
    pq.write_table(table(facts, "Life").toArrow(), directory / "lives.parquet")
    rows_of = [each._asdict() for each in found.findings]
    pq.write_table(
        pa.Table.from_pylist(rows_of, arrow_schema(FINDING)), directory / "findings.parquet"
    )
    subject = _subject(facts, found.ahead_ms, paths, settle_ms)
    leading = *delivery_sections(found), *sections[: len(LEADING)]
    others = sections[len(LEADING) :]
    text = page(found, subject, _cases(facts, found), buckets, evidence, others, leading=leading)
    path = directory / "index.html"
    path.write_text(text)
    return path


def _write_rates(rates: Sequence[Rate], directory: Path) -> None:
    """Write a table of hours and one of pairs."""
    for name, of in (("hour", ["hour_ms"]), ("pair", ["sender_id", "receiver_id"])):
        rows = [each._asdict() for each in rates if getattr(each, of[0]) is not None]
        names = ["channel_id", *of, *Rate._fields[4:]]
        columns = {each: [row[each] for row in rows] for each in names}
        pq.write_table(pa.table(columns), directory / f"delivery_by_{name}.parquet")


def _subject(
    facts: Facts,
    ahead_ms: Mapping[tuple[str, str], int],
    paths: Sequence[str | Path],
    settle_ms: int | None,
) -> Subject:
    lives = table(facts, "Life")
    channels = lives.select("channel_id").distinct().orderBy("channel_id").limit(10).collect()
    times = F.min("opened_ms").alias("opened_ms"), F.max("until_ms").alias("until_ms")
    spans = lives.groupBy("channel_id", "participant_id").agg(*times).collect()
    ahead = [ahead_ms.get((row.channel_id, row.participant_id), 0) for row in spans]
    begin_ms = min((row.opened_ms - ms for row, ms in zip(spans, ahead, strict=True)), default=0)
    end_ms = max((row.until_ms - ms for row, ms in zip(spans, ahead, strict=True)), default=0)
    group = group_of(journal_files(paths)).participants if paths else []
    formats, options = options_of(group)
    names = [row.channel_id for row in channels]
    by = f"reliable-channel {version('reliable-channel')}"
    longest = lives.agg(F.max("settle_ms").alias("ms")).collect()[0].ms
    due_ms = (longest or 0) if settle_ms is None else settle_ms
    return Subject(names, begin_ms, end_ms, formats, options, due_ms, by)


def _cases(facts: Facts, found: Verdict) -> CaseTable:
    """Of the participants of the table of promises."""
    judged = table(facts, "Coverage")
    names = [row.participant_id for row in _some_participants(judged)]
    shown = worst_participants(found, names)
    rows = (
        judged.where(F.col("participant_id").isin(shown))
        .groupBy("participant_id", "audit")
        .agg(F.sum("cases").alias("cases"), F.min("why").alias("why"))
        .collect()
    )
    return {(row.participant_id, row.audit): (row.cases, row.why) for row in rows}


def _some_participants(judged: DataFrame) -> list[Row]:
    every = judged.select("participant_id").distinct().orderBy("participant_id")
    rows: list[Row] = every.limit(MAX_IN_MATRIX).collect()
    return rows


def _buckets(
    came: arrivals.Arrivals, findings: Sequence[Finding], ahead_ms: Mapping[tuple[str, str], int]
) -> list[TimeBucket]:
    """The time in which messages were accepted, in parts."""
    begin_ms, wide_ms = came.begin_ms, came.wide_ms
    parts = {row.part: row for row in arrivals.timeline(came.counted).collect()}
    broken = Counter[int]()
    for each in findings:
        # By the clock of the participant, or of the sender of the message: by one that is there.
        is_there = begin_ms <= each.at_ms <= came.end_ms
        at_ms = each.at_ms if is_there else each.at_ms - ahead_ms.get(each[1:3], 0)
        broken[(at_ms - begin_ms) // wide_ms] += 1
    buckets = []
    for part in range((came.end_ms - begin_ms) // wide_ms + 1):
        row, at_ms = parts.get(part), begin_ms + part * wide_ms
        span_ms, findings_here = (at_ms, at_ms + wide_ms), broken[part]
        if row is None:
            buckets.append(TimeBucket(*span_ms, 0, None, None, 0, findings_here))
        else:
            delays = row.p50_ms, row.p90_ms
            counts = row.repaired, findings_here
            buckets.append(TimeBucket(*span_ms, row.deliveries, *delays, *counts))
    return buckets


def _dag(said: DataFrame, directory: Path, begin_ms: int, end_ms: int) -> str:
    """The shape of the DAG as a table, and some of it as a picture."""
    nodes = dag_tables.placed(dag_tables.union(said), begin_ms, end_ms).persist()
    dag_tables.write_parquet(nodes, directory / "dag.parquet")
    shape = dag_tables.shape(nodes).toArrow()
    drawn = dag_tables.last_of(nodes, begin_ms, end_ms)
    nodes.unpersist()
    about = " ".join((dag_tables.shape.__doc__ or "").split())
    if drawn:
        about += (
            f" The picture has the last {len(drawn)} messages of {drawn[0].channel_id!r:.80} in "
            "the chosen time, each in its sender's lane, in log order; a ring is around a "
            "message without a shown reference to it. References that others imply are left out."
        )
    first = [tuple(row.values()) for row in shape.slice(0, MAX_ROWS).to_pylist()]
    picture = draw_dag(drawn) if drawn else "<p>Nothing was said in the chosen time.</p>"
    return section("The causal DAG", about, shape.column_names, first, picture)


def _delays(counted: DataFrame) -> str:
    """The share of deliveries of each way that took no longer than so many seconds, drawn."""
    lines = [
        Curve(
            row.way,
            [
                (max(delay_ms, 1) / 1000, share)
                for delay_ms, share in zip(row.delays_ms, figures.QUANTILES, strict=True)
            ],
            colour=number,
        )
        for number, row in enumerate(arrivals.delay_curves(counted).collect())
    ]
    panel = Panel(
        "Time from sender to log", lines, x_label="seconds", y_label="share of deliveries"
    )
    try:
        drawn = draw([[panel]], panel_inches=WIDE_INCHES).decode()
    except PlotsUnavailable as error:
        return f"<p>{escape(str(error))}</p>"
    return drawn[drawn.index("<svg") :] if lines else ""
