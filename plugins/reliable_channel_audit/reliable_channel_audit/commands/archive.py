"""`reliable-channel audit archive`, which writes the content of a Store into files."""

import json
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from reliable_channel import run
from reliable_channel.spi import ExitCode, out, say

from ..databases import Row
from ..store_audit.reading import stored_in
from .store import (
    ChannelId,
    Config,
    ContentTopic,
    Hours,
    Network,
    Source,
    shown_count,
    start_of,
    store_arguments,
)

CHUNK: Final = 20_000
"""Number of messages that are written to the archive at once."""


def register(app: typer.Typer) -> None:
    app.command()(archive)


def archive(
    to: Annotated[
        Path, typer.Option("--to", metavar="DIRECTORY", help="Folder for the files of the archive.")
    ],
    source: Source = None,
    form: Annotated[
        str,
        typer.Option(
            "--format", help="Format of the archive: parquet, or delta (needs `deltalake`)."
        ),
    ] = "parquet",
    network: Network = None,
    channel_id: ChannelId = None,
    content_topic: ContentTopic = None,
    hours: Hours = None,
    config: Config = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the counts of archived messages as JSON.")
    ] = False,
) -> None:
    """Archive the content of a Store as files, each message once.

    The files are Parquet by day and content topic, or a Delta table. Messages whose hash is already
    in the archive are left out. The command may be repeated, also with several nodes or after an
    interruption.
    """
    given = store_arguments(
        source, config, network=network, channel_id=channel_id, content_topic=content_topic
    )
    done = run(_archived, given, start_of(hours), to, form)
    if done is None:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if as_json:
        out.print_json(json.dumps(done))
    else:
        say(f"{done['added']:,} messages added to {to}, of {done['read']:,} read")


async def _archived(given: dict[str, Any], start_ns: int, to: Path, form: str) -> dict[str, int]:
    """Copy what is not there yet."""
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
    with shown_count() as show:
        async with aclosing(stored_in(given, start_ns)) as pages:
            async for page in pages:
                waiting += page
                read += len(page)
                show(read)
                if len(waiting) >= CHUNK:
                    added += kept.add(waiting)
                    waiting = []
    if waiting:
        added += kept.add(waiting)
    return {"read": read, "added": added}
