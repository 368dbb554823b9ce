"""Report as one page without other files, with the same data as JSON and Parquet."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from .dag import Shape, places, said_by, shape, union
from .evidence import Evidence
from .facts import Repair
from .findings import Coverage
from .journals import Participant, group_of, journal_files, options_of
from .misbehaviour import Deed
from .page import about_journals, delivery_sections, page, section
from .rates import LEVELS, levels
from .replay import Life
from .tables.ingest import Row
from .tables.judging import Judged
from .timeline import time_buckets


def by_way(judged: Judged) -> list[Row]:
    """Time of messages from their sender to others' logs (ms), by path. Without the sender's
    journal, the time starts at the first delivery. Late messages came after a message that refers
    to them."""
    rows = []
    for channel_id, came in judged.arrivals.items():
        for way, delays in sorted(came.by_way.items()):
            late = came.missing.get(way, ())
            row: Row = {"channel_id": channel_id, "way": way, "deliveries": len(delays)}
            row |= zip(LEVELS, levels(delays), strict=True)
            rows.append(row | {"late": len(late), "late_p50_ms": levels(late, [0.5])[0]})
    return rows


def repair_efficiency(judged: Judged) -> list[Row]:
    """Messages that were requested from others, with each participant's requests and answers."""
    found: defaultdict[tuple[str, str], list[Repair]] = defaultdict(list)
    for each in judged.few.get(Repair, ()):
        found[each.channel_id, each.participant_id].append(each)
    rows = []
    for (channel_id, participant_id), repairs in sorted(found.items()):
        asked_for = sum(each.requests > 0 for each in repairs)
        requests = sum(each.requests for each in repairs)
        rows.append(
            {
                "channel_id": channel_id,
                "participant_id": participant_id,
                "asked_for": asked_for,
                "requests": requests,
                "responses": sum(each.responses for each in repairs),
                "requests_per_loss": requests / asked_for if asked_for else None,
            }
        )
    return rows


def acknowledgement_latency(judged: Judged) -> list[Row]:
    """Time from accepting an own message to its acknowledgement (ms), by participant and
    evidence."""
    return [each._asdict() for each in sorted(judged.acknowledged)]


def clocks(judged: Judged) -> list[Row]:
    """Lead of each participant's clock over the median clock (ms), from the quickest messages
    between peers. The error of a lead is at most half the difference between both directions."""
    return [
        {"channel_id": channel_id, "participant_id": participant_id, **offset._asdict()}
        for (channel_id, participant_id), offset in sorted(judged.offsets.items())
    ]


def members(judged: Judged) -> list[Row]:
    """Messages that no honest member sends, with the named sender and the number of participants
    that saw them."""
    found: defaultdict[tuple[str, str], list[Deed]] = defaultdict(list)
    for each in judged.few.get(Deed, ()):
        found[each.channel_id, f"{each.sender}: {each.what}"].append(each)
    return [
        {
            "channel_id": channel_id,
            "what": what,
            "times": sum(each.times for each in deeds),
            "seen_by": len({each.participant_id for each in deeds}),
            "at_ms": min(each.at_ms for each in deeds),
        }
        for (channel_id, what), deeds in sorted(found.items())
    ]


LEADING: Final = {
    "delivery_by_way": ("How messages came", by_way),
    "repair": ("Losses that were repaired", repair_efficiency),
    "acknowledgements": ("Acknowledgements", acknowledgement_latency),
}
"""Tables between delivery rates and promises, which answer an operator's first questions."""
FIGURES: Final = {
    "clocks": ("Clocks", clocks),
    "misbehaviour": ("What no honest member sends", members),
}
"""Tables after the promises, each with its title and its function."""


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
    hours = [each._asdict() for each in found.rates if each.hour_ms is not None]
    pairs = [each._asdict() for each in found.rates if each.sender_id is not None]
    _write(directory, "delivery_by_hour", hours)
    _write(directory, "delivery_by_pair", pairs)
    values = json.loads(found.to_json()) | {"evidence": [each.to_dict() for each in evidence]}
    (directory / "report.json").write_text(json.dumps(values, indent=1) + "\n")
    sections = {}
    for name, (title, figure) in {**LEADING, **FIGURES}.items():
        rows = figure(judged)
        sections[name] = _section(title, figure, rows)
        _write(directory, name, rows)
    leading = *delivery_sections(found), *(sections.pop(name) for name in LEADING)
    if with_dag:
        sections["dag"] = _dag(judged.participants, directory)
    group = group_of(journal_files(paths)).participants if paths else []
    about = about_journals(found, judged.few.get(Life, []), *options_of(group), settle_ms)
    buckets = time_buckets(judged.arrivals, found.findings, found.ahead_ms)
    coverage = judged.few.get(Coverage, ())
    path = directory / "index.html"
    path.write_text(
        page(found, about, coverage, buckets, evidence, sections.values(), leading=leading)
    )
    return path


def _section(title: str, documented: object, rows: Sequence[Row]) -> str:
    about = " ".join((documented.__doc__ or "").split())
    return section(title, about, list(rows[0]) if rows else (), [(*row.values(),) for row in rows])


def _write(directory: Path, name: str, rows: Sequence[Row]) -> None:
    """Write a table; one without rows has no columns."""
    pq.write_table(pa.Table.from_pylist(rows), directory / f"{name}.parquet")


def _dag(group: Iterable[Participant], directory: Path) -> str:
    """The shape of the causal DAG; where each message stands in it is a table."""
    said = union(each for participant in group for each in said_by(participant))
    nodes = [places(each) for each in said.values()]
    _write(directory, "dag", [place._asdict() for each in nodes for place in each])
    return _section("The causal DAG", Shape, [shape(each)._asdict() for each in nodes])
