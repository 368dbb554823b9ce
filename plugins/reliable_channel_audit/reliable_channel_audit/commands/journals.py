"""`reliable-channel audit journals`, or `check`, which judges a channel from its participants'
journals."""

import json
from functools import partial
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.progress import Progress

from reliable_channel import printable
from reliable_channel import run as run_program
from reliable_channel.spi import ExitCode, err, out, say

from ..live_audit.alarms import PATIENCE_MS
from .ingest import SettleMs, judged_tables
from .spark_flags import MASTER_HELP, REMOTE_HELP, Conf, settings
from .verdict_text import echo, exit_status, tell, tell_evidence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..evidence import Evidence
    from ..verdict import Verdict

REPORT: Final = Path("report")
"""Default folder for the reports of a verdict."""


def register(app: typer.Typer) -> None:
    """Add the command under both of its names."""
    app.command()(journals)
    app.command("check")(journals)


def journals(
    paths: Annotated[list[Path], typer.Argument(help="Journals, or directories of journals.")],
    report: Annotated[
        Path | None,
        typer.Option(
            "--out", file_okay=False, help="Write a report and its tables into this directory."
        ),
    ] = None,
    settle_ms: SettleMs = None,
    message: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help=(
                "Show the life of one message across all journals instead of a verdict. The "
                "first 8 characters of the message id are enough."
            ),
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all findings as JSON, or with --live each report.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Judge journals while they grow, in this process.")
    ] = False,
    patience_s: Annotated[
        float,
        typer.Option(
            min=1,
            help="With --live: seconds until an open question about a message becomes an alarm.",
        ),
    ] = PATIENCE_MS / 1000,
    every_s: Annotated[
        float,
        typer.Option(min=0.1, help="With --live: seconds between two readings of the journals."),
    ] = 2.0,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="With --live: address at which to serve /metrics for Prometheus.",
        ),
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="With --live: URL to which each report is sent as JSON (POST)."
        ),
    ] = None,
    dag: Annotated[
        bool,
        typer.Option(
            "--dag", help="With --out: add the causal DAG to the report, read from the journals."
        ),
    ] = False,
    master: Annotated[
        str | None, typer.Option(help=f"With --out: judge on Spark. {MASTER_HELP}")
    ] = None,
    remote: Annotated[
        str | None, typer.Option(help=f"With --out: judge on Spark Connect. {REMOTE_HELP}")
    ] = None,
    conf: Conf = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1, help="With --out: number of Spark tasks that read journals. Default: at most 64."
        ),
    ] = None,
    spark_log: Annotated[
        bool, typer.Option("--spark-log", help="With --out: print the whole log of Spark and Java.")
    ] = False,
) -> None:
    """Check from journals whether a channel kept its promises, and print the verdict.

    The exit status is 1 if a promise was broken. The exit status is 5 if no promise is known to be
    broken, but not all could be judged. Without `--out`, the journals must fit into memory. With
    `--out`, any number of journals is judged from tables, with the same verdict and a report. The
    option `--out` needs `pip install 'reliable-channel-audit[parquet]'`. With `--master` or
    `--remote` Spark reads the journals, which needs Java 17 or 21 and `[spark]`.

    With `--live`, the command follows the journals until it is stopped. A live audit prints each
    broken promise and alarm once, and writes `reports.jsonl` to `--out`.
    """
    if live:
        limits = {"settle_ms": settle_ms, "patience_ms": round(patience_s * 1000)}
        _live(
            paths,
            report or REPORT,
            limits,
            every_s,
            listen,
            webhook,
            as_json=as_json,
        )
        return
    if message is not None:
        raise typer.Exit(_explain(paths, message, as_json=as_json))
    page = None
    if report is None:
        if (master, remote, conf, partitions) != (None,) * 4 or dag or spark_log:
            raise typer.BadParameter(
                "a flag of reports needs `--out`, the directory of the report", param_hint="--out"
            )
        found, shown = _checked(paths, settle_ms)
    else:
        spark = None
        if master or remote:
            from ..session import session

            spark = session(master, remote=remote, settings=settings(conf), verbose=spark_log)
        found, shown, page = _reported(paths, report, settle_ms, dag, spark, partitions)
    if as_json:
        values = json.loads(found.to_json()) | {"evidence": [each.to_dict() for each in shown]}
        values["report"] = page and str(page.resolve())
        out.print_json(json.dumps(values), ensure_ascii=True)
    else:
        tell(found)
        tell_evidence(shown)
        if page is not None:
            out.print(f"report: {page.resolve().as_uri()}", soft_wrap=True, highlight=False)
    raise typer.Exit(exit_status(found))


def _checked(paths: list[Path], settle_ms: int | None) -> "tuple[Verdict, list[Evidence]]":
    from ..check import check
    from ..evidence import evidence
    from ..journals import group_of, journal_files

    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("reading", total=None)
        verdict = check(
            paths, settle_ms=settle_ms, progress=lambda participant: progress.advance(task)
        )
    if not verdict.findings:
        return verdict, []
    group = group_of(journal_files(paths)).participants
    return verdict, evidence(group, verdict, paths)


def _reported(
    paths: list[Path],
    directory: Path,
    settle_ms: int | None,
    with_dag: bool,
    spark: "SparkSession | None",
    partitions: int | None,
) -> "tuple[Verdict, list[Evidence], Path | None]":
    """Judge by tables, which tasks of Spark make if there is one, and write the report."""
    from ..journals import journal_files
    from ..promises import reasons
    from ..verdict import Verdict

    if not journal_files(paths, may_be_none=True):
        return Verdict(unknown=reasons({}, {}, ())), [], None
    kept = directory / "facts"
    _, judged, shown = judged_tables(
        paths, kept, settle_ms, is_report=True, spark=spark, partitions=partitions
    )
    from ..report import write_report

    page = write_report(
        judged, directory, paths=paths, evidence=shown, settle_ms=settle_ms, with_dag=with_dag
    )
    if spark is not None:
        spark.stop()
    return judged.verdict, shown, page


def _explain(paths: list[Path], message_id: str, *, as_json: bool) -> ExitCode:
    """Print the life of a message."""
    from ..evidence import SHORTEST_ID, lives_of, show
    from ..journals import group_of, journal_files

    if len(message_id) < SHORTEST_ID:
        raise typer.BadParameter(
            f"an id must have at least {SHORTEST_ID} characters (got {message_id!r})",
            param_hint="--message",
        )
    group = group_of(journal_files(paths)).participants
    lives = lives_of(group, {message_id})
    if as_json:
        steps = {each: [step._asdict() for step in life] for each, life in lives.items()}
        out.print_json(json.dumps(steps), ensure_ascii=True)
    for each, life in () if as_json else lives.items():
        say(printable(f"{each}, times by each participant's own clock"))
        for step in life:
            echo(f"  {show(step)}")
    if not lives:
        err.print(f"no journal has a message {printable(message_id)}", markup=False)
    return ExitCode.DONE if lives else ExitCode.FAILED


def _live(
    paths: list[Path],
    directory: Path,
    limits: dict[str, Any],
    every_s: float,
    listen: str | None,
    webhook: str | None,
    *,
    as_json: bool,
) -> None:
    """Judge until the program is stopped."""
    from ..live_audit import service
    from ..live_audit.judge import LiveJudge
    from ..live_audit.reports import Reports

    where = service.address(listen) if listen is not None else None
    reports = Reports(directory)
    judge = LiveJudge([path.resolve() for path in paths], reports, **limits)
    text = json.dumps if as_json else service.as_text

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
    metrics = f", metrics at http://{listen}/metrics" if listen is not None else ""
    err.print(
        f"following {paths[0]}{', …' if paths[1:] else ''}, reports in {directory}{metrics}; "
        "stop with Ctrl-C",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    try:
        run_program(run)
    finally:
        reports.close()
