"""Journals judged on Spark, with a report and progress on standard error."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.status import Status

from reliable_channel.spi import err

from ..session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..evidence import Evidence
    from ..verdict import Verdict

BRIEF_BYTES: Final = 1000 * 1000 * 1000
"""Size of journals on disk up to which work counts as brief: 1,000,000 deliveries were measured."""


class SparkRun(NamedTuple):
    """Choice of a Spark session, and what is read and drawn there."""

    master: str | None
    remote: str | None
    settings: dict[str, str]
    verbose: bool
    partitions: int | None
    window_ms: tuple[int, int] | None
    """Times between which the causal DAG is drawn, if it is."""


def report(
    run: SparkRun, files: list[Path], paths: list[Path], directory: Path, settle_ms: int | None
) -> "tuple[Verdict, list[Evidence], Path]":
    """Judge the journals and write a report; returns the verdict, its evidence and the page."""
    with Status("starting Spark", console=err) as status:
        is_brief = sum(path.stat().st_size for path in files) <= BRIEF_BYTES
        spark = session(
            run.master,
            remote=run.remote,
            settings=run.settings,
            brief=is_brief,
            verbose=run.verbose,
        )
        from ..dag_tables import read_said
        from ..evidence import evidence
        from ..frames import facts_of
        from ..report import write_report
        from ..tables.ingest import ingest
        from ..tables.judging import judge

        with _progress(spark, status):
            kept = directory / "facts"
            done = ingest(
                paths,
                kept,
                with_open=True,
                spark=spark if run.master or run.remote else None,
                partitions=run.partitions,
                progress=status.update,
            )
            judged = judge(
                kept, done.group, settle_ms=settle_ms, only_group=True, progress=status.update
            )
            found = judged.verdict
            status.update("gathering the evidence")
            shown = evidence(judged.participants, found, paths) if found.findings else []
            begin_ms, end_ms = run.window_ms or (0, 0)
            page = write_report(
                facts_of(spark, kept, judged),
                found,
                directory,
                paths=paths,
                evidence=shown,
                settle_ms=settle_ms,
                said=read_said(spark, paths, partitions=run.partitions) if run.window_ms else None,
                begin_ms=begin_ms,
                end_ms=end_ms,
                progress=status.update,
            )
        spark.stop()
    return found, shown, page


@contextmanager
def _progress(spark: "SparkSession", status: Status) -> Iterator[None]:
    """Show how many tasks of the stage at work are done, where the session reports it."""
    done = threading.Event()

    def watch() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not done.wait(0.5):
            for stage in tracker.getActiveStageIds():
                if (info := tracker.getStageInfo(stage)) and info.numTasks > 1:
                    what = str(status.status).split(": ", 1)[0]
                    status.update(f"{what}: {info.numCompletedTasks} of {info.numTasks} tasks")

    watching = threading.Thread(target=watch, name="reliable_channel.progress", daemon=True)
    connected = type(spark).__module__.startswith("pyspark.sql.connect")
    if err.is_terminal and not connected:
        watching.start()
    try:
        yield
    finally:
        done.set()
        if watching.is_alive():
            watching.join()
