"""Report as one page without other files, with the same data as JSON and Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from . import figures
from .dag import Shape, places, said_by, shape, union
from .delivery_sections import delivery_sections
from .evidence import Evidence
from .findings import Coverage
from .journals import Participant, group_of, journal_files, options_of
from .page import MAX_ROWS, CaseTable, Subject, as_json, page, section, worst_participants
from .replay import Life
from .tables.ingest import Row
from .tables.judging import Judged
from .verdict import Rate, Verdict


@dataclass(frozen=True, slots=True)
class Figure:
    """Table of the report, with its title."""

    name: str
    title: str
    of: Callable[[Judged], list[Row]]

    @property
    def about(self) -> str:
        return " ".join((self.of.__doc__ or "").split())


LEADING: Final = (
    Figure("delivery_by_way", "How messages came", figures.by_way),
    Figure("repair", "Losses that were repaired", figures.repair_efficiency),
    Figure("acknowledgements", "Acknowledgements", figures.acknowledgement_latency),
)
"""Sections between delivery rates and promises, which answer an operator's first questions."""
FIGURES: Final = (
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
    with_dag: bool = False,
) -> Path:
    """Write `index.html`, `report.json` and a Parquet file for each table. `write_report` returns
    the path of the page.

    The page shows the options in the journals at `paths`. With `with_dag`, the causal graph is read
    from the lines of the judged journals.

    Raises:
        OSError: the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    found = judged.verdict
    _write_rates(found.rates, directory)
    (directory / "report.json").write_text(as_json(found, evidence))
    sections = []
    for figure in (*LEADING, *FIGURES):
        rows = figure.of(judged)
        sections.append(_section(figure.title, figure.about, rows))
        _write(directory, figure.name, rows)
    if with_dag:
        sections.append(_dag(judged.participants, directory))
    lives = judged.few.get(Life, [])
    subject = _subject(lives, found.ahead_ms, paths, settle_ms)
    buckets = figures.time_buckets(judged.arrivals, found.findings, found.ahead_ms)
    leading = *delivery_sections(found), *sections[: len(LEADING)]
    others = sections[len(LEADING) :]
    cases = _cases(judged.few.get(Coverage, ()), found)
    text = page(found, subject, cases, buckets, evidence, others, leading=leading)
    path = directory / "index.html"
    path.write_text(text)
    return path


def _section(title: str, about: str, rows: Sequence[Row]) -> str:
    columns = list(rows[0]) if rows else []
    return section(title, about, columns, [tuple(row.values()) for row in rows[:MAX_ROWS]])


def _write(directory: Path, name: str, rows: Sequence[Row]) -> None:
    """Write a table; one without rows has no columns."""
    pq.write_table(pa.Table.from_pylist(rows), directory / f"{name}.parquet")


def _write_rates(rates: Sequence[Rate], directory: Path) -> None:
    """Write a table of hours and one of pairs."""
    hours = [each._asdict() for each in rates if each.hour_ms is not None]
    pairs = [each._asdict() for each in rates if each.sender_id is not None]
    _write(directory, "delivery_by_hour", hours)
    _write(directory, "delivery_by_pair", pairs)


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


def _dag(group: Iterable[Participant], directory: Path) -> str:
    """The shape of the causal DAG; where each message stands in it is a table."""
    said = union(each for participant in group for each in said_by(participant))
    nodes = [places(each) for each in said.values()]
    _write(directory, "dag", [place._asdict() for each in nodes for place in each])
    about = " ".join((Shape.__doc__ or "").split())
    return _section("The causal DAG", about, [shape(each)._asdict() for each in nodes])
