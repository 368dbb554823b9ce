"""`reliable-channel conformance`, which prints a table of the rules that a program keeps or
breaks."""

import json
import shlex
import shutil
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated

import anyio
import typer

from reliable_channel.sds import wire_profile
from reliable_channel.spi import say

from ..kit.bench import Setting
from ..kit.row import Result, Row
from ..kit.table import ROWS, Outcome, markdown, run

OURS = f"{sys.executable} -m reliable_channel peer"


def register(app: typer.Typer) -> None:
    app.command()(conformance)


def conformance(
    peer: Annotated[
        str,
        typer.Option(
            help="Command line of the peer, as in a shell: `node my-peer.mjs`.",
            show_default="reliable-channel peer",
        ),
    ] = OURS,
    wire: Annotated[
        str, typer.Option("--wire-profile", help="Dialect of the peer: spec or nim.")
    ] = "spec",
    only: Annotated[
        list[str] | None,
        typer.Option("--row", help="Rows to run, by name or pattern (default: all)."),
    ] = None,
    beats: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of answers of the peer, each at least 100 ms apart, before a missing "
            "action counts as a failure.",
        ),
    ] = 300,
    out: Annotated[
        Path, typer.Option(help="Folder for the table of results, and for the trace of each row.")
    ] = Path("build/conformance"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON line for each row.")
    ] = False,
) -> None:
    """Test a program against the rules of SDS and SDS-R (docs/conformance-kit.md).

    The exit status is 1 if a required rule is broken.
    """
    patterns = only or ["*"]
    rows = [row for row in ROWS if any(fnmatch(row.name, pattern) for pattern in patterns)]
    if not rows:
        names = ", ".join(row.name for row in ROWS)
        raise ValueError(f"`--row` must be one of {names} (got {patterns})")
    if not shutil.which((shlex.split(peer) or [""])[0]):
        raise ValueError(f"`--peer` must begin with a program that can be run (got {peer!r})")
    setting = Setting(peer, wire_profile(wire), beats)
    out.mkdir(parents=True, exist_ok=True)
    outcomes = anyio.run(_run, setting, rows, out, as_json)
    (out / "table.md").write_text(markdown(peer, outcomes))
    broken = any(each.breaks_a_rule for each in outcomes)
    if as_json:
        raise typer.Exit(1 if broken else 0)
    counts = {result: sum(each.result is result for each in outcomes) for result in Result}
    say(", ".join(f"{count} {result}" for result, count in counts.items() if count))
    say(f"table and traces: {out}")
    raise typer.Exit(1 if broken else 0)


async def _run(setting: Setting, rows: list[Row], out: Path, as_json: bool) -> list[Outcome]:
    outcomes = []
    async for outcome in run(setting, rows, out):
        outcomes.append(outcome)
        if as_json:
            typer.echo(json.dumps(outcome.record()))
            continue
        line = f"{outcome.result:<15} {outcome.row.level:<9} {outcome.row.name}"
        say(f"{line}: {outcome.seen}" if outcome.seen else line)
    return outcomes
