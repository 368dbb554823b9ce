"""`reliable-channel audit`: what happened in a channel, on Spark, with a report."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.status import Status

from reliable_channel import _program as program
from reliable_channel._terminal_text import printable
from reliable_channel.cli.console import err, out, say

from ..findings import SETTLE_MS
from ..journals import journal_files
from ..live_audit.alarms import PATIENCE_MS
from ..live_audit.judge import WINDOW
from ..promises import unknowns
from ..session import session
from ..verdict import Verdict
from .check import exit_status, tell, tell_evidence
from .spark_flags import MASTER_HELP, REMOTE_HELP, Conf, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..evidence import Evidence

BRIEF_BYTES: Final = 1000 * 1000 * 1000
"""Of journals, as they are on disk: up to here, 1,000,000 deliveries, brief work was measured."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(audit)


def audit(
    paths: Annotated[list[Path], typer.Argument(help="Journals, or directories of them.")],
    report: Annotated[
        Path,
        typer.Option(
            "--out", file_okay=False, help="Directory for the page, its tables and its JSON."
        ),
    ] = Path("report"),
    master: Annotated[str | None, typer.Option(help=f"{MASTER_HELP} The first by default.")] = None,
    remote: Annotated[str | None, typer.Option(help=REMOTE_HELP)] = None,
    conf: Conf = None,
    settle_ms: Annotated[
        int, typer.Option(min=0, help="How long something may be on its way.")
    ] = SETTLE_MS,
    dag: Annotated[
        str,
        typer.Option(
            metavar="FROM..TO",
            help="Times (UTC, ISO 8601) between which the DAG is drawn; either may be left out.",
        ),
    ] = "..",
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Tasks that read; one for 64 MiB by default.")
    ] = None,
    spark_log: Annotated[
        bool, typer.Option("--spark-log", help="Print all that Spark and Java log.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Judge journals while they grow, in this process.")
    ] = False,
    patience_s: Annotated[
        float, typer.Option(min=1, help="Live: seconds until what is open is an alarm.")
    ] = PATIENCE_MS / 1000,
    every_s: Annotated[
        float, typer.Option(min=0.1, help="Live: seconds between two looks at the journals.")
    ] = 2.0,
    window: Annotated[
        int, typer.Option(min=100, help="Live: messages that are judged together.")
    ] = WINDOW,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Live: serve /metrics for Prometheus.")
    ] = None,
    webhook: Annotated[
        str | None, typer.Option(metavar="URL", help="Live: POST each report as JSON.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdict, or live each report, as JSON.")
    ] = False,
) -> None:
    """Say whether a channel kept its promises, and write a report of how it did.

    Gives the answer of `check`, for any number of journals. The exit status is 1 where a promise
    was broken, and 5 where none was and it is not known of all of them. Needs Java 17 or 21 and
    `pip install 'reliable-channel-audit[spark]'`.

    With `--live` it needs neither: it follows the journals, prints each broken promise and alarm
    once, and keeps them in `reports.jsonl` in the directory of `--out`, until it is stopped.
    """
    if live:
        _live(
            paths,
            report,
            settle_ms=settle_ms,
            patience_s=patience_s,
            every_s=every_s,
            window=window,
            listen=listen,
            webhook=webhook,
            as_json=as_json,
        )
        return
    begin_ms, end_ms = time_window(dag)
    given = settings(conf)
    paths = [path.resolve() for path in paths]  # workers run in directories of their own
    files = journal_files(paths, may_be_none=True)
    if not files:  # known before a minute's start
        found = Verdict(unknown=unknowns([], [], []))
        _print(found, None, [], as_json)
        raise typer.Exit(exit_status(found))
    with Status("starting Spark", console=err) as status:
        is_brief = sum(path.stat().st_size for path in files) <= BRIEF_BYTES
        spark = session(master, remote=remote, settings=given, brief=is_brief, verbose=spark_log)
        from ..audit import evidence, read_facts, read_said, verdict
        from ..report import write_report

        with _told(spark, status):
            facts = read_facts(spark, paths, settle_ms=settle_ms, partitions=partitions)
            found = verdict(facts, paths, settle_ms=settle_ms, progress=status.update)
            status.update("gathering the evidence")
            shown = evidence(spark, found, paths, partitions=partitions)
            page = write_report(
                facts,
                found,
                report,
                paths=paths,
                evidence=shown,
                settle_ms=settle_ms,
                said=read_said(spark, paths, partitions=partitions),
                begin_ms=begin_ms,
                end_ms=end_ms,
                progress=status.update,
            )
        spark.stop()
    _print(found, page, shown, as_json)
    raise typer.Exit(exit_status(found))


def _print(found: Verdict, page: Path | None, shown: "list[Evidence]", as_json: bool) -> None:
    if as_json:
        values = json.loads(found.to_json()) | {"report": page and str(page.resolve())}
        typer.echo(json.dumps(values | {"evidence": [each.to_dict() for each in shown]}))
        return
    tell(found)
    tell_evidence(shown)
    if page is not None:
        out.print(f"report: {page.resolve().as_uri()}", soft_wrap=True, highlight=False)


def _live(
    paths: list[Path],
    directory: Path,
    *,
    settle_ms: int,
    patience_s: float,
    every_s: float,
    window: int,
    listen: str | None,
    webhook: str | None,
    as_json: bool,
) -> None:
    """Judge until the program is stopped."""
    from ..live_audit import service
    from ..live_audit.judge import LiveJudge
    from ..live_audit.reports import Reports

    where = service.address(listen) if listen is not None else None
    reports = Reports(directory)
    judge = LiveJudge(
        [path.resolve() for path in paths],
        reports,
        settle_ms=settle_ms,
        patience_ms=round(patience_s * 1000),
        window=window,
    )
    text = service.as_json if as_json else service.as_text

    def show(each: dict[str, Any]) -> None:
        say(printable(text(each)))
        out.file.flush()

    run = partial(
        service.run,
        judge,
        now_ms=lambda: time_ns() // 1_000_000,
        show=show,
        every_s=every_s,
        listen=where,
        webhook_url=webhook,
    )
    try:
        program.run(run)
    finally:
        judge.close()
        reports.close()


def time_window(text: str) -> tuple[int, int]:
    """Begin and end, in ms since 1970, of `FROM..TO`.

    Raises:
        typer.BadParameter: it is none.
    """
    begin, dots, end = text.partition("..")
    try:
        if not dots:
            raise ValueError("there is no '..' in it")
        window = _ms(begin, 0), _ms(end, 2**63 - 1)
        if window[0] > window[1]:
            raise ValueError("it ends before it begins")
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} is no time window: {error}; give 2026-11-22T10:00..2026-11-22T10:05",
            param_hint="--dag",
        ) from None
    return window


def _ms(text: str, otherwise: int) -> int:
    if not text:
        return otherwise
    at = datetime.fromisoformat(text)
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


@contextmanager
def _told(spark: "SparkSession", status: Status) -> Iterator[None]:
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
