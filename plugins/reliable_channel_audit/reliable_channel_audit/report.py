"""Report: one page without other files, and the same data as JSON and Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from . import figures
from .dag import DagPosition, Shape, places, said_by, shape, union
from .dag_picture import MAX_DRAWN, draw_dag
from .delivery_sections import delivery_sections
from .evidence import Evidence
from .figures import table_of
from .findings import Coverage, Finding
from .journals import Participant, group_of, journal_files, options_of
from .page import MAX_ROWS, CaseTable, Subject, as_json, page, section, worst_participants
from .plots import Curve, Panel, PlotsUnavailable, draw
from .replay import Life
from .tables.arrivals import Arrivals
from .tables.judging import Judged
from .verdict import Rate, Verdict


@dataclass(frozen=True, slots=True)
class Figure:
    """Table of the report."""

    name: str
    title: str
    of: Callable[[Judged], pa.Table]

    @property
    def about(self) -> str:
        return " ".join((self.of.__doc__ or "").split())


WIDE_INCHES: Final = (10.0, 2.4)
"""Size of a panel that fills the page, with letters of the size of the page's text."""
LEADING: Final = (
    Figure("delivery_by_way", "How messages came", figures.by_way),
    Figure("repair", "Losses that were repaired", figures.repair_efficiency),
    Figure("acknowledgements", "Acknowledgements", figures.acknowledgement_latency),
)
"""Sections before the promises and after delivery rates: the first questions of an operator."""
FIGURES: Final = (
    Figure("overhead", "Overhead", figures.overhead),
    Figure("clocks", "Clocks", figures.clocks),
    Figure("misbehaviour", "What no honest member sends", figures.members),
)


def write_report(
    judged: Judged,
    directory: Path,
    *,
    paths: Sequence[str | Path] = (),
    evidence: Sequence[Evidence] = (),
    settle_ms: int | None = None,
    window_ms: tuple[int, int] | None = None,
) -> Path:
    """Write `index.html`, `report.json` and a Parquet file for each table. Return the page's path.

    The options of the journals in `paths` are shown. With `window_ms` the causal DAG is read from
    them, with a picture of the last messages between these times.

    Raises:
        OSError: the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    found = judged.verdict
    _write_rates(found.rates, directory)
    (directory / "report.json").write_text(as_json(found, evidence))
    sections = []
    for figure in (*LEADING, *FIGURES):
        values = figure.of(judged)
        drawn = _delays(judged.arrivals.values()) if figure.of is figures.by_way else ""
        sections.append(_section(figure.title, figure.about, values, drawn))
        pq.write_table(values, directory / f"{figure.name}.parquet")
    if window_ms is not None:
        sections.append(_dag(judged.participants, directory, *window_ms))
    lives = judged.few.get(Life, [])
    pq.write_table(table_of(Life, lives), directory / "lives.parquet")
    pq.write_table(table_of(Finding, found.findings), directory / "findings.parquet")
    subject = _subject(lives, found.ahead_ms, paths, settle_ms)
    buckets = figures.time_buckets(judged.arrivals, found.findings, found.ahead_ms)
    leading = *delivery_sections(found), *sections[: len(LEADING)]
    others = sections[len(LEADING) :]
    cases = _cases(judged.few.get(Coverage, ()), found)
    text = page(found, subject, cases, buckets, evidence, others, leading=leading)
    path = directory / "index.html"
    path.write_text(text)
    return path


def _section(title: str, about: str, values: pa.Table, drawn: str) -> str:
    first = [tuple(row.values()) for row in values.slice(0, MAX_ROWS).to_pylist()]
    return section(title, about, values.column_names, first, drawn)


def _write_rates(rates: Sequence[Rate], directory: Path) -> None:
    """Write a table of hours and one of pairs."""
    for name, of in (("hour", ["hour_ms"]), ("pair", ["sender_id", "receiver_id"])):
        rows = [each for each in rates if getattr(each, of[0]) is not None]
        table = table_of(Rate, rows, ["channel_id", *of, *Rate._fields[4:]])
        pq.write_table(table, directory / f"delivery_by_{name}.parquet")


def _subject(
    lives: Sequence[Life],
    ahead_ms: Mapping[tuple[str, str], int],
    paths: Sequence[str | Path],
    settle_ms: int | None,
) -> Subject:
    begin_ms = min((each.opened_ms - ahead_ms.get(each[:2], 0) for each in lives), default=0)
    end_ms = max((each.until_ms - ahead_ms.get(each[:2], 0) for each in lives), default=0)
    group = group_of(journal_files(paths)).participants if paths else []
    formats, options = options_of(group)
    names = sorted({each.channel_id for each in lives})[:10]
    by = f"reliable-channel {version('reliable-channel')}"
    longest = max((each.settle_ms for each in lives), default=0)
    due_ms = longest if settle_ms is None else settle_ms
    return Subject(names, begin_ms, end_ms, formats, options, due_ms, by)


def _cases(coverage: Iterable[Coverage], found: Verdict) -> CaseTable:
    """Of the participants of the table of promises."""
    every = list(coverage)
    shown = {*worst_participants(found, {each.participant_id for each in every})}
    cases: dict[tuple[str, str], tuple[int, str | None]] = {}
    for each in every:
        if each.participant_id in shown:
            count, why = cases.get((each.participant_id, each.audit), (0, None))
            least = min(filter(None, (why, each.why)), default=None)
            cases[each.participant_id, each.audit] = count + each.cases, least
    return cases


def _dag(group: Iterable[Participant], directory: Path, begin_ms: int, end_ms: int) -> str:
    """The shape of the DAG as a table, and some of it as a picture: the last messages between two
    times, of the channel in which most was said then."""
    said = union(each for participant in group for each in said_by(participant))
    nodes = [places(each) for each in said.values()]
    every = [place for each in nodes for place in each]
    pq.write_table(table_of(DagPosition, every), directory / "dag.parquet")
    about = " ".join((Shape.__doc__ or "").split())
    there = ([one for one in each if begin_ms <= one.at_ms <= end_ms] for each in said.values())
    drawn = max(there, key=len, default=[])[-MAX_DRAWN:]
    if drawn:
        about += (
            f" The picture has the last {len(drawn)} messages of {drawn[0].channel_id!r:.80} in "
            "the chosen time, each in its sender's lane, in log order; a ring is around a "
            "message without a shown reference to it. References that others imply are left out."
        )
    picture = draw_dag(drawn) if drawn else "<p>Nothing was said in the chosen time.</p>"
    return _section("The causal DAG", about, table_of(Shape, map(shape, nodes)), picture)


def _delays(arrivals: Iterable[Arrivals]) -> str:
    """The share of deliveries of each way that took no longer than so many seconds, drawn."""
    lines = [
        Curve(
            way,
            [
                (max(delay_ms or 0, 1) / 1000, share)
                for delay_ms, share in zip(delays_ms, figures.QUANTILES, strict=True)
            ],
            colour=number,
        )
        for number, (way, delays_ms) in enumerate(figures.delay_curves(arrivals).items())
    ]
    panel = Panel(
        "Time from sender to log", lines, x_label="seconds", y_label="share of deliveries"
    )
    try:
        drawn = draw([[panel]], panel_inches=WIDE_INCHES).decode()
    except PlotsUnavailable as error:
        return f"<p>{escape(str(error))}</p>"
    return drawn[drawn.index("<svg") :] if lines else ""
