"""Command group `reliable-channel state`, for state files of channels that are not open."""

import json
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer

from .console import fail, say
from .exit_codes import ExitCode
from .personal import data_directory

File = Annotated[
    Path, typer.Argument(help="Path of a state file.", metavar="FILE", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON lines.")]
DAY_MS: Final = 86_400_000
_AGE: Final = {"d": DAY_MS, "h": DAY_MS // 24}


def register(app: typer.Typer) -> None:
    """Add the commands of the group `state`."""
    app.command("list")(listed)
    app.command("check")(check)
    app.command("export")(export)
    app.command("prune")(prune)
    app.command("backup")(backup)
    app.command("restore")(restore)


def listed(
    directory: Annotated[
        Path | None,
        typer.Argument(
            help=(
                "Folder to search for state files, with its subfolders. Default: the folder "
                "of `chat`, `listen` and `send`."
            ),
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List state files, each with its channel, participant and contents."""
    from ..errors import StateError, StateUnavailable
    from ..state.files import summary

    if directory is not None and not directory.is_dir():
        raise StateUnavailable(f"{directory} is not a directory; give a directory with state files")
    for path in sorted((directory or data_directory()).rglob("*.db")):
        try:
            found = summary(path)
        except StateError as error:
            if as_json:
                typer.echo(json.dumps({"path": str(path), "problem": str(error)}))
            else:
                fail(str(error))
            continue
        if as_json:
            typer.echo(json.dumps(asdict(found)))
            continue
        used = "in use" if found.in_use else _when(found.modified_at_ms)
        say(f"{found.path}")
        say(
            f"  {found.sender_id} in {found.channel_id}: {found.messages:,} messages, "
            f"{found.unacknowledged} unacknowledged, {found.unconfirmed} unconfirmed, "
            f"{found.size_bytes / 1e6:.1f} MB, {used}"
        )


def check(file: File, as_json: AsJson = False) -> None:
    """Read every row of a file and print any damage. The exit status is then 1.

    A file that lacks writes is damaged too, unless it is a copy that no channel has opened yet.
    """
    from ..state.files import check as check_file
    from ..state.files import lacking, summary

    if not file.is_file():
        summary(file)  # raises what no answer is
    problems, lacks, copy = check_file(file), "", ""
    if not problems:
        lacks, copied_at_ms = lacking(file), summary(file).copied_at_ms
        if copied_at_ms is not None:
            copy = f"; it is a copy of {_when(copied_at_ms)}"
            copy += " and lacks later writes" if lacks else ""
        elif lacks:
            problems = [lacks]
    if as_json:
        typer.echo(json.dumps({"path": str(file), "problems": problems, "lacks": lacks}))
    for problem in () if as_json else problems:
        fail(problem)
    if not problems and not as_json:
        say(f"{file} is sound{copy}")
    raise typer.Exit(ExitCode.FAILED if problems else ExitCode.DONE)


def export(file: File, as_json: AsJson = True) -> None:
    """Print the messages of a file as JSON lines, in the order of the log."""
    from ..state.files import export as messages

    for message in messages(file):
        typer.echo(json.dumps(message))


def prune(
    file: File,
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Age at which messages are evicted: 30d or 12h.")
    ],
    as_json: AsJson = False,
) -> None:
    """Evict old messages and give the space back. Peers and Store still have them.

    No other program may have the file open. To evict old messages all the time, open the channel
    with limits.retention_ms.
    """
    from ..state.files import prune as prune_file

    matched = re.fullmatch(r"(\d+)([dh])", older_than)
    if matched is None:
        raise ValueError(f"`--older-than` must be a number of days or hours (got {older_than!r})")
    now_ms = time.time_ns() // 1_000_000
    age_ms = int(matched[1]) * _AGE[matched[2]]
    evicted, freed = prune_file(file, older_than_ms=now_ms - age_ms)
    if as_json:
        typer.echo(json.dumps({"path": str(file), "evicted": evicted, "freed_bytes": freed}))
    else:
        say(f"{evicted:,} messages evicted, {freed / 1e6:.1f} MB freed")


def backup(
    file: File,
    copy: Annotated[
        Path,
        typer.Argument(
            help="""Path of the copy, which must not
    exist.""",
            metavar="COPY",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Copy a file, also while a channel has it open."""
    from ..state.files import backup as copy_file

    copy_file(file, copy)
    if as_json:
        typer.echo(json.dumps({"path": str(file), "copy": str(copy)}))
    else:
        say(f"{copy} is a copy of {file}")


def restore(
    copy: Annotated[Path, typer.Argument(help="Path of a copy of a state file.", metavar="COPY")],
    file: File,
    as_json: AsJson = False,
) -> None:
    """Replace a file by a copy. The earlier file stays beside it.

    Messages since the copy are fetched again from Store and peers at the next start, which emits
    `state_rolled_back`.
    """
    from ..state.files import restore as restore_file

    earlier = restore_file(copy, file)
    if as_json:
        found = {"path": str(file), "copy": str(copy), "earlier": earlier and str(earlier)}
        typer.echo(json.dumps(found))
        return
    say(f"{file} is restored" + (f"; the earlier file is {earlier}" if earlier else ""))


def _when(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at_ms / 1000))
