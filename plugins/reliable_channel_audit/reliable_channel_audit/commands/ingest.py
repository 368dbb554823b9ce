"""`reliable-channel audit ingest`, which converts journals to lasting tables and judges them."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.status import Status

from reliable_channel.spi import err

from ..evidence import Evidence, evidence
from .verdict_text import conclude

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..tables.ingest import Ingested
    from ..tables.judging import Judged

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
    app.command()(ingest)


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
