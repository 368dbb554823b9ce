"""`reliable-channel audit journals`, or `check`, which judges a channel from its participants'
journals, and `reliable-channel audit ingest`, which converts journals to tables that last."""

import json
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer
from rich.status import Status

from reliable_channel import printable
from reliable_channel import run as run_program
from reliable_channel.spi import ExitCode, err, out, say

from ..check import check
from ..evidence import SHORTEST_ID, Evidence, evidence, lives_of, show
from ..journals import group_of, journal_files
from ..live_audit.alarms import PATIENCE_MS
from .spark_flags import MASTER_HELP, REMOTE_HELP, Conf, settings
from .verdict_text import conclude, echo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..tables.ingest import Ingested
    from ..tables.judging import Judged

REPORT: Final = Path("report")
"""Default folder for the reports of a verdict."""
SettleMs = Annotated[
    int | None,
    typer.Option(
        min=0,
        help=(
            "Time that a message may be on its way (ms). Default: the time of a retry "
            "and a repair, from the options of the participants."
        ),
    ),
]


def register(app: typer.Typer) -> None:
    app.command()(journals)
    app.command("check")(journals)
    app.command()(ingest)


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
        options = {"every_s": every_s, "webhook_url": webhook}
        _live(paths, report or REPORT, limits, listen, options, as_json=as_json)
    elif message is not None:
        _explain(paths, message, as_json=as_json)
    elif report is None and (master or remote or conf or partitions or dag):
        raise typer.BadParameter(
            "a flag of reports needs `--out`, the directory of the report", param_hint="--out"
        )
    elif report is None or not journal_files(paths, may_be_none=True):
        with Status("reading", console=err):
            found = check(paths, settle_ms=settle_ms)
            group = group_of(journal_files(paths)).participants if found.findings else []
        conclude(found, evidence(group, found, paths), "", as_json=as_json, report=None)
    else:
        spark = None
        if master or remote:
            from ..session import session

            spark = session(master, remote=remote, settings=settings(conf))
        _, judged, shown = judged_tables(
            paths, report / "facts", settle_ms, is_report=True, spark=spark, partitions=partitions
        )
        from ..report import write_report

        page = write_report(
            judged, report, paths=paths, evidence=shown, settle_ms=settle_ms, with_dag=dag
        ).resolve()
        if spark is not None:
            spark.stop()
        last = f"report: {page.as_uri()}"
        conclude(judged.verdict, shown, last, as_json=as_json, report=str(page))


def _explain(paths: list[Path], message_id: str, *, as_json: bool) -> None:
    """Print the life of a message."""
    if len(message_id) < SHORTEST_ID:
        raise typer.BadParameter(
            f"an id must have at least {SHORTEST_ID} characters (got {message_id!r})",
            param_hint="--message",
        )
    lives = lives_of(group_of(journal_files(paths)).participants, {message_id})
    if as_json:
        steps = {each: [step._asdict() for step in life] for each, life in lives.items()}
        out.print_json(json.dumps(steps), ensure_ascii=True)
    for each, life in () if as_json else lives.items():
        say(printable(f"{each}, times by each participant's own clock"))
        for step in life:
            echo(f"  {show(step)}")
    if not lives:
        err.print(f"no journal has a message {printable(message_id)}", markup=False)
        raise typer.Exit(ExitCode.FAILED)


def _live(
    paths: list[Path],
    directory: Path,
    limits: dict[str, Any],
    listen: str | None,
    options: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Judge until the program is stopped."""
    from ..live_audit import service
    from ..live_audit.judge import LiveJudge
    from ..live_audit.reports import Reports

    text = json.dumps if as_json else service.as_text

    def show(each: dict[str, Any]) -> None:
        say(printable(text(each)))
        out.file.flush()

    metrics = f", metrics at http://{listen}/metrics" if listen is not None else ""
    more = ", …" if paths[1:] else ""
    where = service.address(listen) if listen is not None else None
    with closing(Reports(directory)) as reports:
        judge = LiveJudge([path.resolve() for path in paths], reports, **limits)
        what = f"following {paths[0]}{more}, reports in {directory}{metrics}; stop with Ctrl-C"
        err.print(what, markup=False, highlight=False, soft_wrap=True)
        run_program(
            partial(
                service.run,
                judge,
                now_ms=lambda: time_ns() // 1_000_000,
                show=show,
                listen=where,
                **options,
            )
        )


def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Journals, or directories of journals.")],
    to: Annotated[
        Path,
        typer.Option(
            "--to", metavar="DIRECTORY", help="Folder for the tables that the command writes."
        ),
    ],
    settle_ms: SettleMs = None,
    form: Annotated[
        Literal["parquet", "delta"],
        typer.Option(
            "--format",
            help="Format of the tables. With delta, each folder kind=… is a Delta table, too.",
        ),
    ] = "parquet",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the outcome of the command as JSON.")
    ] = False,
) -> None:
    """Convert closed journals to Parquet files, and judge them together with the open ones.

    A journal is closed if it is a part (alice.0001.jsonl.gz), is packed, or ends with
    `journal_closed`. Each closed journal is read only once, even in several runs. Each run adds a
    verdict on the tables and on the open journals. The exit status is the same as that of `check`.
    Journals must stay in their place, because evidence is read from them again. The command needs
    `pip install 'reliable-channel-audit[parquet]'`, and `--format delta` needs `[parquet,delta]`.
    """
    if form == "delta" and find_spec("deltalake") is None:
        raise ValueError(
            "--format delta needs deltalake: pip install 'reliable-channel-audit[parquet,delta]'"
        )
    done, judged, shown = judged_tables(paths, to, settle_ms)
    if form == "delta":
        from ..tables.delta import write_delta_logs

        write_delta_logs(to)
    last = f"run {judged.run_id}: {done.added:,} journals added to {to}, {done.known:,} known"
    counts = {"run_id": judged.run_id, "added": done.added, "known": done.known}
    conclude(judged.verdict, shown, last, as_json=as_json, **counts)


def judged_tables(
    paths: list[Path],
    to: Path,
    settle_ms: int | None,
    *,
    is_report: bool = False,
    spark: "SparkSession | None" = None,
    partitions: int | None = None,
) -> tuple["Ingested", "Judged", list[Evidence]]:
    """Add new journals to the tables, and return a verdict on all data. For a report, open journals
    are added too, and data of other journals is left out.

    Raises:
        ValueError: what is needed is not installed.
    """
    try:
        from ..tables.ingest import ingest
        from ..tables.judging import judge
    except ImportError as error:
        raise ValueError(
            f"tables need {error.name}: pip install 'reliable-channel-audit[parquet]'"
        ) from error
    with Status("reading", console=err) as status:

        def reading(what: str) -> None:
            status.update(f"reading {what}")

        done = ingest(
            paths, to, with_open=is_report, spark=spark, partitions=partitions, progress=reading
        )
        judged = judge(to, done.group, settle_ms=settle_ms, only_group=is_report, progress=reading)
        return done, judged, evidence(judged.participants, judged.verdict, paths)
