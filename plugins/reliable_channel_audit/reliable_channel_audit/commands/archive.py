"""`reliable-channel archive`: what a Store has, as files, each message once."""

import json
import time
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich.progress import Progress

from reliable_channel.cli.console import err, out, say
from reliable_channel.cli.exit_codes import ExitCode
from reliable_channel.config import channel_settings

from ..databases import FIRST_NS, Row

CHUNK: Final = 20_000
"""Messages that are written at once."""
_HOUR_NS: Final = 3_600_000_000_000


class Archived(NamedTuple):
    """What a run did."""

    read: int
    added: int


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(archive)


def archive(
    to: Annotated[Path, typer.Option("--to", metavar="DIRECTORY", help="Where the files go.")],
    source: Annotated[
        list[str] | None,
        typer.Argument(
            help="Nodes (REST or multiaddresses, enrtree://…), or the database of one: a file, or "
            "postgresql://…"
        ),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="parquet, or delta (needs `deltalake`).")
    ] = "parquet",
    network: Annotated[
        str | None, typer.Option(metavar="NAME", help="A network whose nodes are asked.")
    ] = None,
    channel_id: Annotated[
        str | None,
        typer.Option("--channel-id", "--channel", metavar="ID", help="Of this channel's topic."),
    ] = None,
    content_topic: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Where it is not that of the channel.")
    ] = None,
    hours: Annotated[
        float | None, typer.Option(min=0, help="Only the newest so many hours.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A TOML file with a table [channel].")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Keep what a Store has as files, each message once.

    Parquet files by day and content topic, or a Delta table. What is there already is left out, by
    message hash: run it again, from several nodes, or after it was interrupted.
    """
    from reliable_channel.program import run

    flags = {"network": network, "channel_id": channel_id, "content_topic": content_topic}
    given = channel_settings(config) | {name: value for name, value in flags.items() if value}
    if source:
        given["node"] = source
    start_ns = FIRST_NS if hours is None else time.time_ns() - int(hours * _HOUR_NS)
    done = run(_archived, given, start_ns, to, form)
    if done is None:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if as_json:
        out.print_json(json.dumps(done._asdict()))
    else:
        say(f"{done.added:,} messages added to {to}, of {done.read:,} read")


async def _archived(given: dict[str, Any], start_ns: int, to: Path, form: str) -> Archived:
    """Copy what is not there yet.

    Raises:
        ValueError: an unusable argument, or what the format needs is not installed.
    """
    from contextlib import aclosing

    from ..store_audit.reading import source_of, stored_in

    try:
        from ..archiving import open_archive

        kept = open_archive(to, form)
    except ImportError as error:
        extra = "delta" if form == "delta" else "parquet"
        raise ValueError(
            f"--format {form} needs {error.name}: pip install 'reliable-channel-audit[{extra}]'"
        ) from error
    read = added = 0
    waiting: list[Row] = []
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("reading", total=None)
        async with aclosing(stored_in(source_of(given), given, start_ns)) as pages:
            async for page in pages:
                waiting += page
                read += len(page)
                progress.update(task, completed=read, description=f"reading {read:,}")
                if len(waiting) >= CHUNK:
                    added += kept.add(waiting)
                    waiting = []
    if waiting:
        added += kept.add(waiting)
    return Archived(read, added)
