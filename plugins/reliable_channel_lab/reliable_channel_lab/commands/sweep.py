"""`reliable-channel sweep`, which runs hundreds of seeded simulations and draws their curves."""

import json
import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.status import Status

from reliable_channel.spi import err, say
from reliable_channel_audit.commands.spark_flags import MASTER_HELP, REMOTE_HELP, Conf, settings

from ..sim import cores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..sweep import Executor, Plan, Record

RECORDS = "results.jsonl"


def register(app: typer.Typer) -> None:
    app.command()(sweep)


def sweep(
    file: Annotated[Path, typer.Argument(help="TOML file of the sweep (docs/simulation.md).")],
    results: Annotated[
        Path | None,
        typer.Option(
            help=("Folder of results. Runs with a result are not repeated. Default: FILE.results.")
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            help=(
                "Path of the page with the answers. Plots and records are in a folder beside the "
                "page."
            )
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number of processes (default: number of cores).")
    ] = None,
    batch: Annotated[
        int, typer.Option(min=1, help="Maximum number of runs in each file of results.")
    ] = 4,
    master: Annotated[str | None, typer.Option(help=MASTER_HELP)] = None,
    remote: Annotated[str | None, typer.Option(envvar="SPARK_REMOTE", help=REMOTE_HELP)] = None,
    conf: Conf = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the outcome of the sweep as one JSON line.")
    ] = False,
) -> None:
    """Run simulations for each combination of settings, options and seeds, and print their digest.

    A sweep may be interrupted or even killed. A sweep that is started again continues with the
    missing runs. The digest does not depend on the number of processes or the batch size.
    """
    from ..sweep import digest, execute, local_processes, read_plan

    plan = read_plan(file)
    given = settings(conf)
    if given and not (master or remote):
        raise typer.BadParameter("settings of Spark need --master or --remote", param_hint="--conf")
    directory = results or file.with_suffix(".results")
    # Spark has handlers of signals, too, which are set where it starts: ours come after them.
    spark = _session(master, remote, given) if master or remote else None
    with _interruptible() as stopped, _progress(len(plan.runs)) as progress:
        records = execute(
            plan.runs,
            directory,
            _on_spark(spark, stopped)
            if spark
            else local_processes(jobs or cores(), stopped=stopped),
            batch_size=batch,
            progress=progress,
        )
    if len(records) < len(plan.runs):
        err.print(f"interrupted: {len(records)} of {len(plan.runs)} runs are in {directory}")
        raise typer.Exit(130)
    if page is not None:
        _write_page(plan, dict(records), page, file)
        if not as_json:
            say(f"answers in {page}")
    if as_json:
        outcome = {
            "runs": len(records),
            "results": str(directory),
            "digest": digest(records),
            "page": page and str(page),
        }
        typer.echo(json.dumps(outcome))
        return
    say(f"{len(records)} runs in {directory}, digest {digest(records)}")


def _session(master: str | None, remote: str | None, given: Mapping[str, str]) -> "SparkSession":
    from reliable_channel_audit.session import session

    with Status("starting Spark", console=err):
        return session(master, remote=remote, settings=given)


def _on_spark(spark: "SparkSession", stopped: Callable[[], bool]) -> "Executor":
    from ..sweep.on_spark import spark_executor

    return spark_executor(spark, stopped=stopped)


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Let running work end when the process gets a signal to stop; return whether it did."""
    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _write_page(plan: "Plan", records: Mapping[str, "Record"], page: Path, file: Path) -> None:
    from ..sweep import page_text, pictures, write_records

    beside = page.with_suffix("")
    beside.mkdir(parents=True, exist_ok=True)
    command = f"reliable-channel sweep {shlex.quote(str(file))} --page {shlex.quote(str(page))}"
    page.write_text(page_text(plan, records, command=command, plots=beside.name), encoding="utf-8")
    for name, data in pictures(plan, records):
        (beside / name).write_bytes(data)
    write_records(beside / RECORDS, records)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Show on a terminal how far it is."""
    columns = (TextColumn("sweeping"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("", total=total)
        yield lambda count: progress.advance(task, count)
