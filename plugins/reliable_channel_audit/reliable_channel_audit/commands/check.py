"""`reliable-channel check`: whether a channel kept its promises, from the journals of its
participants."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.progress import Progress

from reliable_channel._terminal_text import printable
from reliable_channel.cli.console import err, out, say
from reliable_channel.cli.exit_codes import ExitCode

from ..findings import PROMISES, SETTLE_MS, Audit

if TYPE_CHECKING:
    from ..evidence import Evidence
    from ..verdict import Verdict

MAX_NAMES: Final = 10
"""So many participants without a journal are named."""
MAX_STEPS: Final = 10
"""Of the life of a message in the evidence; the command below it shows all."""
MAX_PRINTED: Final = 3
"""Of so many findings, the worst, the evidence is printed."""
LONG_ID: Final = re.compile(r"\b([0-9a-f]{10})[0-9a-f]{54}\b")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(check)


def check(
    paths: Annotated[list[Path], typer.Argument(help="Journals, or directories of them.")],
    settle_ms: Annotated[
        int, typer.Option(min=0, help="How long something may be on its way.")
    ] = SETTLE_MS,
    message: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Show the life of a message across all journals instead; 8 characters will do.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all findings as JSON.")] = False,
) -> None:
    """Say whether a channel kept its promises, from journals of its participants.

    For journals that fit into memory; `audit` judges any number of them. The exit status is 1 where
    a promise was broken, and 5 where none was and it is not known of all of them.
    """
    from ..check import check as checked

    if message is not None:
        raise typer.Exit(_explain(paths, message, as_json=as_json))
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("reading", total=None)
        verdict = checked(
            paths, settle_ms=settle_ms, progress=lambda participant: progress.advance(task)
        )
    if as_json:
        shown = [each.to_dict() for each in _evidence(verdict, paths)]
        values = json.loads(verdict.to_json()) | {"evidence": shown}
        out.print_json(json.dumps(values), ensure_ascii=True)
    else:
        tell(verdict)
        tell_evidence(_evidence(verdict, paths))
    raise typer.Exit(exit_status(verdict))


def _explain(paths: list[Path], message_id: str, *, as_json: bool) -> ExitCode:
    """Print the life of a message."""
    from ..evidence import SHORTEST_ID, lives_of, show
    from ..journals import journal_files, participants

    if len(message_id) < SHORTEST_ID:
        raise typer.BadParameter(
            f"an id must have at least {SHORTEST_ID} characters (got {message_id!r})",
            param_hint="--message",
        )
    group, _ = participants(journal_files(paths))
    lives = lives_of(group, {message_id})
    if as_json:
        steps = {each: [step._asdict() for step in life] for each, life in lives.items()}
        out.print_json(json.dumps(steps), ensure_ascii=True)
    for each, life in () if as_json else lives.items():
        say(printable(each))
        for step in life:
            _say(f"  {show(step)}")
    if not lives:
        err.print(f"no journal has a message {printable(message_id)}", markup=False)
    return ExitCode.DONE if lives else ExitCode.FAILED


def _evidence(verdict: "Verdict", paths: list[Path]) -> "list[Evidence]":
    """The evidence of the worst findings."""
    from ..evidence import evidence
    from ..journals import journal_files, participants

    if not verdict.findings:
        return []
    group, _ = participants(journal_files(paths))
    return evidence(group, verdict.findings, paths)


def tell_evidence(evidence: "list[Evidence]") -> None:
    """Print the evidence of the worst findings, and the command that shows it again."""
    from ..evidence import show

    for each in evidence[:MAX_PRINTED]:
        finding = each.finding
        place = f" ({each.path}:{each.line})" if each.path else ""
        _say("")
        _say(f"{finding.audit} at {finding.participant_id}: {finding.detail}{place}", style="bold")
        for step in each.life[:MAX_STEPS]:
            _say(f"  {show(step)}")
        if len(each.life) > MAX_STEPS:
            _say(f"  … and {counted(len(each.life) - MAX_STEPS, 'more step')}", style="dim")
        for where, lines in each.around.items():
            _say(f"  around {where}", style="dim")
            for line in lines:
                _say(f"    {line}", style="dim")
        say(printable(f"  {each.command}"))


def exit_status(verdict: "Verdict") -> ExitCode:
    """What a verdict means to a shell."""
    from ..verdict import Value

    codes = {
        Value.KEPT: ExitCode.DONE,
        Value.BROKEN: ExitCode.FAILED,
        Value.UNKNOWN: ExitCode.UNKNOWN,
    }
    return codes[verdict.value]


def tell(verdict: "Verdict") -> None:
    """Print what a person needs to know, in a dozen lines."""
    logs = "one log" if verdict.logs == 1 else f"{verdict.logs} different logs"
    _say(
        f"{counted(verdict.participants, 'participant')}, {counted(verdict.messages, 'message')}, "
        f"{counted(verdict.deliveries, 'delivery', 'deliveries')}, {logs}"
    )
    from ..verdict import Value

    for audit in Audit:
        cases = f"({verdict.judged.get(audit.value, 0):,} cases)"
        value = verdict.of(audit)
        if value is Value.KEPT:
            _say(f"kept    {PROMISES[audit]} {cases}")
        elif value is Value.UNKNOWN:
            why = verdict.unknown.get(audit.value, "no case")
            style = None if why == "no case" else "yellow"
            _say(f"unknown {PROMISES[audit]}: {why}", style=style)
        else:
            first = next(each for each in verdict.findings if each.audit == audit.value)
            times = verdict.broken[audit.value]
            count = "once," if times == 1 else f"{times:,} times, first"
            what = " ".join(filter(None, (first.message_id, first.detail)))
            _say(f"BROKEN  {PROMISES[audit]}: {count} at {first.participant_id}: {what}", "red")
    for channel_id, name in verdict.without_journal[:MAX_NAMES]:
        _say(f"{name} was heard in {channel_id} and left no journal", style="yellow")
    if verdict.on_the_way:
        on_the_way = counted(verdict.on_the_way, "delivery", "deliveries")
        _say(f"not due yet at the end, and on the way: {on_the_way}")
    if verdict.set_aside:
        lines = sum(each.lines for each in verdict.set_aside)
        files = len({each.path for each in verdict.set_aside})
        reasons = Counter({each.reason: each.lines for each in verdict.set_aside})
        reason = reasons.most_common(1)[0][0]
        what = f"{counted(lines, 'line')} of {counted(files, 'file')}"
        _say(f"set aside: {what}; most of them: {reason}", style="yellow")
    if verdict.value is Value.KEPT:
        _say("every promise that was put to the test was kept", style="bold green")
    elif verdict.value is Value.UNKNOWN:
        _say("it is not known whether all promises were kept", style="bold yellow")
    else:
        _say(f"broken: {counted(len(verdict.broken), 'promise')}", style="bold red")


def counted(count: int, thing: str, things: str | None = None) -> str:
    """A number with its noun."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def _say(text: str, style: str | None = None) -> None:
    """Print one line; ids are cut short, as their beginnings differ."""
    # Journals have names and texts of any participant in them.
    say(LONG_ID.sub(r"\1…", printable(text)), style=style)
