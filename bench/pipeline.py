"""`make bench WHAT=pipeline`: CPU seconds that judging journals takes.

CPU seconds are of the whole process tree, JVM and Python workers among it. Each case is judged by
`check`. `audit ingest` makes tables of it, judges them, writes a report, and reads and judges
again when one journal is new. Spark (`local[2]`) makes the tables in tasks. With `--duckdb`, the
same figures are computed in SQL from the journals (`pipeline.sql`) and from the tables
(`views.py`): all must be equal. Linux only.

`ARGS="10x100000"` measures other cases (`bench/pipeline_cases.py`), `ARGS=--large` five and
twenty million deliveries, for which it needs hours, 35 GB of disk and no other work.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from reliable_channel_audit.check import check
from reliable_channel_audit.findings import SETTLE_MS
from reliable_channel_audit.report import write_report
from reliable_channel_audit.tables.ingest import Ingested, ingest, parts, remove
from reliable_channel_audit.tables.judging import Judged, judge
from reliable_channel_audit.tables.views import create_views
from reliable_channel_audit.verdict import Verdict

from .machine import this_machine
from .pipeline_cases import Shape, deliveries, written
from .processes import Taken, measured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RESULTS: Final = Path(__file__).parent / "results" / "pipeline.json"
CASES: Final = {
    "even": "10x5000",
    "twice as much": "10x10000",
    "one journal has half": "2x25000/1+5*10x500",
    "500 journals have half": "500x50+25x1000",
    "one message is half of all": "10x5000!",
    "1,000 participants": "1000x50",
    "10,000 participants": "10000x10",
}
"""By what they show."""
LARGE: Final = {"5 million": "50x100000", "20 million": "20x1000000"}
SQL: Final = Path(__file__).with_name("pipeline.sql")
DUCKDB: Final = {"threads": "2", "memory_limit": "2GB", "preserve_insertion_order": "false"}
"""Of memory as much as the heap of Spark."""
COMPARED: Final = ("participants", "deliveries", "messages", "logs")
WHERE_BROKEN: Final = {
    "delivered_twice": "exactly_once",
    "never_delivered": "delivery",
    "acknowledged_and_lost": "acknowledgements",
    "ids_of_several": "ids",
}
Steps = dict[str, dict[str, Any]]


class Case(NamedTuple):
    name: str
    groups: str
    shape: Shape


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="make bench WHAT=pipeline",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("groups", nargs="*", help="cases, as 10x100000")
    parser.add_argument("--large", action="store_true", help="five and twenty million deliveries")
    parser.add_argument("--history", type=int, default=10, help="references of a message")
    parser.add_argument("--bloom-capacity", type=int, default=0, help="0 for no bloom filters")
    parser.add_argument("--keep", type=Path, help="where journals stay, and are found again")
    parser.add_argument("--running", action="store_true", help="journals of a running group")
    parser.add_argument("--no-check", action="store_true", help="without `check`")
    parser.add_argument("--no-spark", action="store_true", help="without Spark")
    parser.add_argument("--duckdb", action="store_true", help="the same figures by DuckDB, too")
    parser.add_argument("--driver-memory", default="2g", help="heap of the JVM")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the JSON goes")
    options = parser.parse_args()
    steps: Steps = {}
    started = None if options.no_spark else start(steps, options.driver_memory)
    rows = []
    for case in cases(options):
        with written(
            case.groups, case.shape, options.keep, is_running=options.running
        ) as directory:
            rows.append(row(case, directory, started, options))
        results = {"machine": asdict(this_machine(None)), "start": steps, "cases": rows}
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(results, indent=1) + "\n")
    Console().print(table(rows))


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Those that were asked for."""
    shape = Shape(options.history, options.bloom_capacity)
    named = {groups: groups for groups in options.groups} | (LARGE if options.large else {})
    yield from (Case(name, groups, shape) for name, groups in (named or CASES).items())


def row(
    case: Case, directory: Path, spark: SparkSession | None, options: argparse.Namespace
) -> dict[str, Any]:
    """Measure one case.

    Raises:
        AssertionError: a promise was broken, or two ways gave different figures.
    """
    files = [path for path in directory.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    print(f"{case.name}: {case.groups}, {deliveries(case.groups):,} deliveries", flush=True)
    steps: Steps = {}
    answers: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        if options.duckdb:
            answers.append(by_duckdb(steps, directory, Path(scratch)))
        if not options.no_check:
            found: list[Verdict] = []
            note(steps, "check", lambda: found.append(check([directory])))
            answers.append(figures_of(found[0]))
        answers.append(by_tables(steps, directory, Path(scratch) / "facts"))
        if options.duckdb:
            answers.append(read_tables(steps, Path(scratch) / "facts"))
        if spark is not None:
            answers.append(by_spark(steps, spark, directory, Path(scratch)))
    answers = list(filter(None, answers))
    for answer in answers[1:]:
        for name in answer.keys() & answers[0].keys():
            assert answer[name] == answers[0][name], (name, answer[name], answers[0][name])
    return {
        "case": case.name,
        "groups": case.groups,
        **case.shape._asdict(),
        "deliveries": deliveries(case.groups),
        "journal_bytes": size,
        "steps": steps,
    }


def by_duckdb(steps: Steps, directory: Path, scratch: Path) -> dict[str, Any]:
    """The figures of `pipeline.sql`, as far as DuckDB's memory lasts."""
    import duckdb

    text = SQL.read_text().replace("$journals", str(directory))
    _, *parts = re.split(r"^-- (\w+)$", text.replace("$settle_ms", str(SETTLE_MS)), flags=re.M)
    queries, answers = dict(zip(parts[::2], parts[1::2], strict=True)), dict[str, Any]()
    with duckdb.connect(str(scratch / "journals.duckdb"), config=DUCKDB) as database:

        def verdict() -> None:
            found = database.execute(queries["verdict"])
            names = [name for name, *_ in found.description]
            answers.update(zip(names, found.fetchall()[0], strict=True))

        def report() -> None:
            for name in ("ways", "latency", "acknowledgements"):
                answers[name] = database.execute(queries[name]).fetchall()

        try:
            note(steps, "duckdb: reading", lambda: database.execute(queries["reading"]))
            note(steps, "duckdb: verdict", verdict)
            note(steps, "duckdb: report", report)
        except duckdb.OutOfMemoryException:
            print(f"  duckdb: {DUCKDB['memory_limit']} of memory are not enough", flush=True)
    return answers


def by_tables(steps: Steps, directory: Path, facts: Path) -> dict[str, Any]:
    """The figures of `audit ingest`, also when all journals but one were read before."""
    done: list[Ingested] = []
    found: list[Judged] = []
    report = facts.parent / "report"
    note(steps, "ingest", lambda: done.append(ingest([directory], facts, with_open=True)))
    note(steps, "tables: verdict", lambda: found.append(judge(facts, done[0].group)))
    note(steps, "tables: report", lambda: write_report(found[0], report))
    steps["ingest"]["bytes"] = sum(path.stat().st_size for path in facts.rglob("*.parquet"))
    newest = max(parts(facts), key=lambda row: row["first_ms"])
    remove(newest, facts)
    note(steps, "one journal", lambda: done.append(ingest([directory], facts, with_open=True)))
    note(steps, "one journal: verdict", lambda: found.append(judge(facts, done[1].group)))
    steps["one journal"]["lines"] = newest["lines"]
    assert [each.added for each in done][1:] == [1]
    answers = figures_of(found[0].verdict) | reported(report)
    assert figures_of(found[1].verdict).items() <= answers.items()
    return answers


def reported(directory: Path) -> dict[str, Any]:
    """Deliveries by way, and acknowledgements, of a report."""
    by_way: dict[str, tuple[int, int]] = {}
    for each in pq.read_table(directory / "delivery_by_way.parquet").to_pylist():
        count, slowest_ms = by_way.get(each["way"], (0, 0))
        by_way[each["way"]] = count + each["deliveries"], max(slowest_ms, each["max_ms"])
    counts: dict[str, int] = {}
    for each in pq.read_table(directory / "acknowledgements.parquet").to_pylist():
        if each["source"] != "never":
            name = each["participant_id"]
            counts[name] = counts.get(name, 0) + each["messages"]
    return {
        "ways": [(way, *values) for way, values in sorted(by_way.items())],
        "acknowledgements": sorted(counts.items()),
    }


def read_tables(steps: Steps, facts: Path) -> dict[str, Any]:
    """What a report has, in SQL over the tables."""
    import duckdb

    answers = dict[str, Any]()
    with duckdb.connect(config=DUCKDB) as database:

        def reading() -> None:
            create_views(database, facts)
            database.execute("create table delivered as from delivery_rows")

        def report() -> None:
            answers["latency"] = database.execute(
                "select way, count(*), max(latency_ms) from latency group by way order by way"
            ).fetchall()
            answers["acknowledgements"] = database.execute(
                "select participant_id, count(acknowledged_ms) from acknowledgement "
                "group by participant_id having count(acknowledged_ms) > 0 order by participant_id"
            ).fetchall()

        note(steps, "tables: reading by duckdb", reading)
        note(steps, "tables: report by duckdb", report)
    return answers


def by_spark(steps: Steps, spark: SparkSession, directory: Path, scratch: Path) -> dict[str, Any]:
    """The figures of tables that were made in tasks of Spark."""
    kept, done = scratch / "spark", list[Ingested]()
    note(
        steps,
        "spark: ingest",
        lambda: done.append(ingest([directory], kept, with_open=True, spark=spark, partitions=2)),
    )
    return figures_of(judge(kept, done[0].group).verdict)


def figures_of(found: Verdict) -> dict[str, Any]:
    """What DuckDB has as well."""
    assert not found.broken, json.dumps(found.broken)
    counts = {name: getattr(found, name) for name in COMPARED}
    return counts | {name: found.broken.get(audit, 0) for name, audit in WHERE_BROKEN.items()}


def note(steps: Steps, name: str, work: Callable[[], object]) -> None:
    taken: Taken = measured(work)
    load = round(os.getloadavg()[0], 1)
    print(f"  {name}: {taken.cpu_s:.1f} CPU s; {taken.elapsed_s:.1f} s at load {load}", flush=True)
    steps[name] = {
        "cpu_s": round(taken.cpu_s, 2),
        "elapsed_s": round(taken.elapsed_s, 1),
        "load": load,
        "largest_bytes": taken.largest,
    }


def start(steps: Steps, driver_memory: str) -> SparkSession:
    """A session that did something already, so that the start of the JVM does not count."""
    from reliable_channel_audit.session import session

    found: list[SparkSession] = []
    settings = {"spark.driver.memory": driver_memory}
    note(steps, "JVM", lambda: found.append(session("local[2]", settings=settings)))
    with written("3x100", Shape()) as journals, tempfile.TemporaryDirectory() as scratch:
        by_spark(steps, found[0], journals, Path(scratch))
    return found[0]


def table(rows: list[dict[str, Any]]) -> Table:
    """CPU seconds for each million deliveries, a case a column."""
    names = list(dict.fromkeys(name for row in rows for name in row["steps"]))
    shown = Table(title="CPU seconds a million deliveries", caption="single runs")
    shown.add_column("")
    for row in rows:
        shown.add_column(row["case"], justify="right")

    def line(name: str, value: Callable[[dict[str, Any]], str]) -> None:
        shown.add_row(name, *(value(row) for row in rows))

    def taken(row: dict[str, Any], name: str) -> str:
        step = row["steps"].get(name)
        return "" if step is None else f"{1e6 * step['cpu_s'] / row['deliveries']:.1f}"

    def loads(row: dict[str, Any]) -> str:
        every = [step["load"] for step in row["steps"].values()]
        return f"{min(every):.0f} to {max(every):.0f}"

    line("deliveries", lambda row: f"{row['deliveries']:,}")
    line("bytes of journals each", lambda row: f"{row['journal_bytes'] / row['deliveries']:,.0f}")
    line(
        "bytes of tables each",
        lambda row: f"{row['steps']['ingest']['bytes'] / row['deliveries']:,.0f}",
    )
    for name in names:
        line(name, partial(taken, name=name))
    line("load", loads)
    return shown


if __name__ == "__main__":
    main()
