"""The report: one page that stands by itself, and the same as JSON and Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from . import dag_tables, figures
from .audits import table
from .dag_picture import draw_dag
from .evidence import Evidence
from .findings import PROMISES, Audit
from .plots import Line, Panel, PlotsUnavailable, draw
from .schemas import FINDING
from .sources.batches import arrow_schema
from .verdict import NO_CASE, Value, Verdict

MAX_ROWS: Final = 200
"""Of a table, on the page; the Parquet files have all."""
TIMES: Final = {"at_ms": "since", "opened_ms": "joined", "owed_from_ms": "wants from"}
"""Columns that are times, which the page gives in UTC."""
HEADLINES: Final = {
    Value.KEPT: "Every promise that was put to the test was kept",
    Value.BROKEN: "Broken promises",
    Value.UNKNOWN: "It is not known whether all promises were kept",
}
PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem;
  color: #1a1a1a; }}
h1 {{ font-size: 1.5rem }} h2 {{ font-size: 1.15rem; margin-top: 2.2rem }}
table {{ border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto }}
th, td {{ text-align: left; padding: .2rem .7rem .2rem 0; border-bottom: 1px solid #e4e4e4;
  white-space: nowrap }}
td.number {{ text-align: right; font-variant-numeric: tabular-nums }}
.kept {{ color: #00694b }} .broken {{ color: #b3001b; font-weight: 600 }} .about {{ color: #555 }}
.unknown {{ color: #8a5a00 }}
svg {{ max-width: 100%; height: auto }}
</style></head><body>
{body}
</body></html>
"""
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A table of the report."""

    name: str
    title: str
    of: Callable[[DataFrame], DataFrame]

    @property
    def about(self) -> str:
        """What it shows."""
        return " ".join((self.of.__doc__ or "").split())


FIGURES: Final = (
    Figure("delivery_by_way", "How messages came", figures.delivery_by_way),
    Figure("acknowledgements", "Acknowledgements", figures.acknowledgement_latency),
    Figure("repair", "Repair", figures.repair_efficiency),
    Figure("overhead", "Overhead", figures.overhead),
    Figure("sync", "Sync messages by the size of the group", figures.sync_traffic),
    Figure("bloom_filters", "Bloom filters", figures.bloom_filters),
    Figure("lamport", "Lamport timestamps", figures.lamport_drift),
    Figure("clocks", "Clocks", figures.clocks),
    Figure("members", "Members that misbehave", figures.members),
    Figure("late_joiners", "Late participants", figures.late_joiners),
)


def write_report(
    facts: DataFrame,
    found: Verdict,
    directory: Path,
    *,
    evidence: Sequence[Evidence] = (),
    said: DataFrame | None = None,
    begin_ms: int = 0,
    end_ms: int = 2**63 - 1,
    progress: Callable[[str], None] = lambda what: None,
) -> Path:
    """Write `index.html`, `report.json` and a Parquet file a table; return the page's path.

    Of `said` (`sds_said`) the causal DAG is a section, with a picture of the last messages between
    `begin_ms` and `end_ms`.

    Raises:
        OSError: the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "report.json").write_text(_json(found, evidence))
    sections = [*_promises(found), *_findings(found)]
    for figure in FIGURES:
        progress(figure.title.lower())
        values = figure.of(facts).toArrow()
        pq.write_table(values, directory / f"{figure.name}.parquet")
        first = [tuple(row.values()) for row in values.slice(0, MAX_ROWS).to_pylist()]
        drawn = _delays(facts) if figure.of is figures.delivery_by_way else ""
        sections.append(_section(figure.title, figure.about, values.column_names, first, drawn))
    if said is not None:
        progress("the causal dag")
        sections.append(_dag(said, directory, begin_ms, end_ms))
    progress("writing the tables")
    pq.write_table(table(facts, "Life").toArrow(), directory / "lives.parquet")
    rows = [each._asdict() for each in found.findings]
    pq.write_table(
        pa.Table.from_pylist(rows, arrow_schema(FINDING)), directory / "findings.parquet"
    )
    sections += _set_aside(found)
    page = directory / "index.html"
    page.write_text(PAGE.format(title="What happened in the channel", body="\n".join(sections)))
    return page


def _json(found: Verdict, evidence: Sequence[Evidence]) -> str:
    """What `check --json` prints."""
    shown = [each.to_dict() for each in evidence]
    return json.dumps(json.loads(found.to_json()) | {"evidence": shown}, indent=1) + "\n"


def _promises(found: Verdict) -> Iterator[str]:
    yield f'<h1 class="{found.value.value}">{HEADLINES[found.value]}</h1>'
    logs = "one log" if found.logs == 1 else f"{found.logs} different logs"
    yield (
        f"<p>{found.participants} participants with {found.lives} logs, {found.messages:,} "
        f"messages, {found.deliveries:,} deliveries, {logs}; {found.on_the_way:,} deliveries "
        "still on their way at the end.</p><table>"
    )
    for audit in Audit:
        value = found.of(audit)
        count = {
            Value.KEPT: f"kept ({found.judged.get(audit.value, 0):,} cases)",
            Value.BROKEN: f"broken {found.broken.get(audit.value, 0):,} times",
            Value.UNKNOWN: f"unknown: {escape(found.unknown.get(audit.value, NO_CASE))}",
        }[value]
        yield f'<tr><td>{escape(PROMISES[audit])}</td><td class="{value.value}">{count}</td></tr>'
    yield "</table>"


def _findings(found: Verdict) -> Iterator[str]:
    for audit in Audit:
        rows = [tuple(each[1:]) for each in found.findings if each.audit == audit.value]
        if rows:
            columns = ["channel", "participant", "log", "message", "at_ms", "what"]
            about = f"The first {min(len(rows), MAX_ROWS)} of {found.broken[audit.value]:,}."
            yield _section(f"Broken: {PROMISES[audit]}", about, columns, rows[:MAX_ROWS])


def _set_aside(found: Verdict) -> Iterator[str]:
    if found.set_aside:
        columns = ["file", "why", "lines", "first line"]
        about = "What could not be read. All else was judged."
        yield _section("Set aside", about, columns, [tuple(e) for e in found.set_aside][:MAX_ROWS])


def _section(
    title: str, about: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], drawn: str = ""
) -> str:
    head = "".join(
        f"<th>{escape(TIMES.get(name, name).replace('_', ' '))}</th>" for name in columns
    )
    are_times = [name in TIMES for name in columns]
    body = "".join(f"<tr>{''.join(map(_cell, row, are_times))}</tr>\n" for row in rows)
    filled = f"<table><tr>{head}</tr>\n{body}</table>" if rows else "<p>Nothing.</p>"
    return f'<h2>{escape(title)}</h2><p class="about">{escape(about)}</p>{drawn}{filled}'


def _cell(value: Any, is_time: bool) -> str:
    if value is None:
        return "<td></td>"
    if is_time:
        at = datetime.fromtimestamp(value / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")
        return f"<td>{at.removesuffix('+00:00')}</td>"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"<td>{escape(str(value))}</td>"
    return (
        f'<td class="number">{value:,.2f}</td>'
        if isinstance(value, float)
        else (f'<td class="number">{value:,}</td>')
    )


def _dag(said: DataFrame, directory: Path, begin_ms: int, end_ms: int) -> str:
    """The shape of the DAG as a table, and some of it as a picture."""
    said.persist()  # else the window reads all journals once more
    nodes = dag_tables.nodes(said).persist()
    pq.write_table(nodes.toArrow(), directory / "dag.parquet")
    shape = dag_tables.shape(nodes).toArrow()
    nodes.unpersist()
    drawn = dag_tables.window(said, begin_ms, end_ms)
    said.unpersist()
    about = " ".join((dag_tables.shape.__doc__ or "").split())
    if drawn:
        about += (
            f" The picture has the last {len(drawn)} messages of {drawn[0].channel_id!r:.80} in "
            "the chosen time, each in its sender's lane, in log order; a ring is around a "
            "message without a shown reference to it. References that others imply are left out."
        )
    first = [tuple(row.values()) for row in shape.slice(0, MAX_ROWS).to_pylist()]
    picture = draw_dag(drawn) if drawn else "<p>Nothing was said in the chosen time.</p>"
    return _section("The causal DAG", about, shape.column_names, first, picture)


def _delays(facts: DataFrame) -> str:
    """The share of deliveries of each way that took no longer than so many seconds, drawn."""
    lines = [
        Line(
            row.way,
            [
                (max(delay_ms, 1) / 1000, share)
                for delay_ms, share in zip(row.delays_ms, figures.QUANTILES, strict=True)
            ],
            colour=number,
        )
        for number, row in enumerate(figures.delay_curves(facts).collect())
    ]
    panel = Panel(
        "Time from sender to log", lines, x_label="seconds", y_label="share of deliveries"
    )
    try:
        drawn = draw([[panel]]).decode()
    except PlotsUnavailable as error:
        return f"<p>{escape(str(error))}</p>"
    return drawn[drawn.index("<svg") :] if lines else ""
