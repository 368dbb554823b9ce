"""`reliable-channel check`: whether a channel kept its promises, from the journals of its
participants."""

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.progress import Progress

from reliable_channel.cli.console import err, out, say
from reliable_channel.terminal_text import printable

from ..findings import PROMISES, SETTLE_MS, Audit

if TYPE_CHECKING:
    from ..verdict import Verdict

LONG_ID: Final = re.compile(r"\b([0-9a-f]{10})[0-9a-f]{54}\b")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(check)


def check(
    paths: Annotated[list[Path], typer.Argument(help="Journals, or directories of them.")],
    settle_ms: Annotated[
        int, typer.Option(min=0, help="How long something may be on its way.")
    ] = SETTLE_MS,
    as_json: Annotated[bool, typer.Option("--json", help="Print all findings as JSON.")] = False,
) -> None:
    """Say whether a channel kept its promises, from journals of its participants.

    For journals that fit into memory; `audit` judges any number of them. The exit status is 1 where
    a promise was broken.
    """
    from ..check import check as checked

    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("reading", total=None)
        verdict = checked(
            paths, settle_ms=settle_ms, progress=lambda participant: progress.advance(task)
        )
    if as_json:
        out.print_json(verdict.to_json(), ensure_ascii=True)
    else:
        tell(verdict)
    raise typer.Exit(0 if verdict.holds else 1)


def tell(verdict: "Verdict") -> None:
    """Print what a person needs to know, in a dozen lines."""
    logs = "one log" if verdict.logs == 1 else f"{verdict.logs} different logs"
    _say(
        f"{verdict.participants} participants, {verdict.messages} messages, "
        f"{verdict.deliveries} deliveries, {logs}"
    )
    for audit in Audit:
        times = verdict.broken.get(audit.value, 0)
        if not times:
            _say(f"kept    {PROMISES[audit]}")
            continue
        first = next(each for each in verdict.findings if each.audit == audit.value)
        at = f"{first.participant_id}: {first.message_id} {first.detail}"
        _say(f"BROKEN  {PROMISES[audit]}: {times} times, first at {at}", style="red")
    if verdict.on_the_way:
        _say(f"{verdict.on_the_way} deliveries were still on their way at the end")
    if verdict.set_aside:
        lines = sum(each.lines for each in verdict.set_aside)
        files = len({each.path for each in verdict.set_aside})
        reasons = Counter({each.reason: each.lines for each in verdict.set_aside})
        reason = reasons.most_common(1)[0][0]
        _say(f"set aside: {lines} lines of {files} files; most of them: {reason}", style="yellow")
    if verdict.holds:
        _say("every promise was kept", style="bold green")
    else:
        _say(f"{len(verdict.broken)} promises were broken", style="bold red")


def _say(text: str, style: str | None = None) -> None:
    """Print one line; ids are cut short, as what they begin with tells them apart."""
    # Journals have names and texts of any participant in them.
    say(LONG_ID.sub(r"\1…", printable(text)), style=style)
