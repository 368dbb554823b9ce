"""Command `reliable-channel bot log`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from .audit_log import LogBroken, read_log


def register(app: typer.Typer) -> None:
    app.command("log")(moderation_log)


def moderation_log(
    file: Annotated[Path, typer.Argument(help="Path of the audit log, such as moderation.jsonl.")],
    renamed: Annotated[
        bool,
        typer.Option(
            "--renamed",
            help=(
                "The log continues an earlier file that was renamed. Its first line may refer to "
                "the earlier file."
            ),
        ),
    ] = False,
) -> None:
    """Check an audit log of the moderation of a Status bot, and print its actions.

    The exit status is 1 if a line was changed, removed or inserted. Lines that were removed at the
    end show only in the number of the last case.
    """
    try:
        for entry in read_log(file, is_first=not renamed):
            time = _time(entry.at_ms)
            case = f" case {entry.case}" if entry.case else ""
            typer.echo(
                f"{time} {entry.action}{case} {entry.user[:12]} by {entry.by[:12]} {entry.why!r}"
            )
    except LogBroken as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None


def _time(at_ms: int) -> str:
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):  # a date beyond the year 9999
        return f"{at_ms} ms"
