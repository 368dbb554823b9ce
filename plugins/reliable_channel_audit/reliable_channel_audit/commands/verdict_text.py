"""Verdicts with their evidence, and tables, as text for people."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NoReturn

import typer

from reliable_channel import printable
from reliable_channel.spi import ExitCode, out, say

from ..evidence import Evidence, show
from ..findings import Audit
from ..lines import time_text
from ..rates import latency, percent
from ..verdict import NO_CASE, Rate, Value, Verdict

MAX_SHOWN: Final = 10
"""Maximum number of participants that are named, and of steps of a message in its evidence."""
MAX_WORST: Final = 3
"""Maximum number of delivery rates, and of findings with evidence, the worst first."""
LONG_ID: Final = re.compile(r"\b([0-9a-f]{10})[0-9a-f]{54}\b")


def conclude(
    verdict: Verdict, evidence: list[Evidence], last: str, *, as_json: bool, **more: object
) -> NoReturn:
    """Print a verdict, its evidence and a last line, and end with the exit status of `check`. JSON
    has the values `more` in place of the last line."""
    if as_json:
        values = more | json.loads(verdict.to_json())
        values["evidence"] = [each.to_dict() for each in evidence]
        out.print_json(json.dumps(values), ensure_ascii=True)
    else:
        _tell(verdict)
        for each in evidence[:MAX_WORST]:
            _tell_evidence(each)
        if last:
            say(last)
    codes = {Value.KEPT: ExitCode.DONE, Value.BROKEN: ExitCode.FAILED}
    raise typer.Exit(codes.get(verdict.value, ExitCode.UNKNOWN))


def _tell_evidence(of: Evidence) -> None:
    place = f" ({of.path}:{of.line})" if of.path else ""
    echo("")
    echo(
        f"{of.finding.audit} at {of.finding.participant_id}: {of.finding.detail}{place}",
        style="bold",
    )
    for step in of.life[:MAX_SHOWN]:
        echo(f"  {show(step)}")
    rest = of.life[MAX_SHOWN:]
    notes = [f"… and {counted(len(rest), 'more step')}"] if rest else []
    notes += of.clocks
    for where, lines in of.around.items():
        notes += [f"around {where}", *(f"  {line}" for line in lines)]
    for note in notes:
        echo(f"  {note}", style="dim")
    say(printable(f"  {of.command}"))


def _tell(verdict: Verdict) -> None:
    """Print the most important facts of a verdict on one screen."""
    _tell_deliveries(verdict)
    logs = "one log" if verdict.logs == 1 else f"{verdict.logs} different logs"
    echo(
        f"{counted(verdict.participants, 'participant')}, {counted(verdict.messages, 'message')}, "
        f"{counted(verdict.deliveries, 'delivery', 'deliveries')}, {logs}"
    )
    for audit in Audit:
        _tell_promise(verdict, audit)
    for what, times in sorted(verdict.misbehaviour.items()):
        echo(f"received, as no honest member sends it: {what}, {counted(times, 'time')}")
    for channel_id, name in verdict.without_journal[:MAX_SHOWN]:
        echo(f"{name} was heard in {channel_id} and left no journal", style="yellow")
    if verdict.set_aside:
        lines = sum(each.lines for each in verdict.set_aside)
        files = len({each.path for each in verdict.set_aside})
        reasons = Counter[str]()
        for each in verdict.set_aside:
            reasons[each.reason] += each.lines
        reason, _ = reasons.most_common(1)[0]
        what = f"{counted(lines, 'line')} of {counted(files, 'file')}"
        echo(f"set aside: {what}; most of them: {reason}", style="yellow")
    broken = f"broken: {counted(len(verdict.broken), 'promise')}"
    echo(
        *{
            Value.KEPT: ("every promise that was put to the test was kept", "bold green"),
            Value.UNKNOWN: ("it is not known whether all promises were kept", "bold yellow"),
            Value.BROKEN: (broken, "bold red"),
        }[verdict.value]
    )


def _tell_promise(verdict: Verdict, audit: Audit) -> None:
    owed = verdict.judged.get(audit.value, 0)
    value, promise = verdict.of(audit), audit.promise
    if value is Value.KEPT:
        echo(f"kept    {promise} ({owed:,} cases)")
    elif value is Value.UNKNOWN:
        why = verdict.unknown.get(audit.value, NO_CASE)
        echo(f"unknown {promise}: {why}", None if why == NO_CASE else "yellow")
    else:
        first = next(each for each in verdict.findings if each.audit == audit.value)
        number = verdict.broken[audit.value]
        count = f"{number:,} of {owed:,}" if number <= owed else counted(number, "time")
        where = f"at {first.participant_id}" if first.participant_id else "from an unknown sender"
        what = " ".join(filter(None, (first.message_id, first.detail)))
        echo(f"BROKEN  {promise}: {count}, first {where}: {what}", "red")


def _tell_deliveries(verdict: Verdict) -> None:
    """Print delivery rate and latency, the worst hours and pairs, and what is behind."""
    delivered, owed = verdict.delivered
    rate = f" ({percent(delivered / owed)})" if owed else ""
    late = f", {verdict.on_the_way:,} on their way at the end" if verdict.on_the_way else ""
    channels = [each for each in verdict.rates if each.hour_ms is None and each.sender_id is None]
    hours = [each for each in verdict.rates if each.hour_ms is not None]
    pairs = [each for each in verdict.rates if each.sender_id is not None]
    took = latency(channels[0]) if len(channels) == 1 else ""
    text = f"delivered to others: {delivered:,} of {owed:,}{rate}, {owed - delivered:,} lost{late}"
    echo(f"{text}; {took}" if took else text)
    for kind in (channels, hours, pairs):
        for each in sorted(kind, key=lambda each: each.badness)[: MAX_WORST * (len(kind) > 1)]:
            what = _what(each, channels)
            of = f"{each.delivered:,} of {each.delivered + each.lost:,} ({percent(each.rate)})"
            took = ", ".join(filter(None, (of, latency(each))))
            echo(f"  {what}: {took}", "yellow" if each.lost else None)
    for behind in verdict.behind[:MAX_SHOWN]:
        lacks, since = counted(behind.messages, "message"), time_text(behind.since_ms)
        echo(f"{behind.participant_id} is behind by {lacks} since {since}", "yellow")


def _what(rate: Rate, channels: Sequence[Rate]) -> str:
    """The hour or the pair that a rate is about, and its channel if there are several."""
    parts = [rate.channel_id] if len(channels) > 1 else []
    if rate.hour_ms is not None:
        parts.append(time_text(rate.hour_ms, "%Y-%m-%d %H:%M"))
    if rate.sender_id is not None:
        parts.append(f"{rate.sender_id} to {rate.receiver_id}")
    return ", ".join(parts)


def print_table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]], *, labels: int) -> None:
    """Print a table with headings and rows in its full width, also to a pipe or a narrow terminal.
    The first `labels` columns are texts, and the other columns are numbers."""
    cells = [headings, *(tuple(printable(cell) for cell in row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for number, row in enumerate(cells):
        padded = (
            cell.ljust(width) if place < labels else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        say("  ".join(padded).rstrip(), style=None if number else "bold")


def counted(count: int, thing: str, things: str | None = None) -> str:
    """Return a number followed by its noun in singular or plural."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def echo(text: str, style: str | None = None) -> None:
    """Print a line of text to the terminal. Ids in the line are shortened, because their beginnings
    usually differ."""
    # Journals have names and texts of any participant in them.
    say(LONG_ID.sub(r"\1…", printable(text)), style=style)
