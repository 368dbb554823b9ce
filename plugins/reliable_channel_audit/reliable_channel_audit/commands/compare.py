"""`reliable-channel audit compare`, which compares delivery, latency, holes and repairs of
groups."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.status import Status

from reliable_channel import printable
from reliable_channel.spi import ExitCode, err, out, say, warn

from ..group_reliability.runs import (
    HEADINGS,
    UNKNOWN,
    Run,
    by_scenario,
    differences,
    find_runs,
    measure,
    shown,
    varied,
)
from .journals import SettleMs
from .verdict_text import print_table

_OF_SCENARIOS: Final = "scenario", "implementation", "figures"
"""Values of each scenario as JSON."""


def register(app: typer.Typer) -> None:
    app.command()(compare)


def compare(
    logs: Annotated[
        list[Path],
        typer.Argument(
            help="Logs or journals: a directory for each run, or one directory with all runs."
        ),
    ],
    settle_ms: SettleMs = None,
    difference: Annotated[
        bool,
        typer.Option(
            "--difference",
            help="Compare two runs: print every figure of both runs, and the change.",
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print all figures of the runs as JSON.")
    ] = False,
) -> None:
    """Compare delivery rate, latency, holes and repairs of runs, scenarios and implementations.

    The command reads logs of nwaku and Status (10ksim), answers of VictoriaLogs, and
    journals. A file `metadata.json` beside the logs names the scenario and its settings. The exit
    status is 5 if a run contains no messages.
    """
    found = list(find_runs(logs))
    if difference and len(found) != 2:
        raise typer.BadParameter(
            f"a difference compares two runs (got {len(found)})", param_hint="--difference"
        )
    runs = []
    with Status("reading", console=err) as status:
        for name, files, metadata in found:
            status.update(f"reading {printable(name)}")
            runs.append(measure(name, files, metadata, settle_ms=settle_ms))
    together = by_scenario(runs)
    changes = differences(*runs) if len(runs) == 2 else []
    if as_json:
        values = {
            "scenarios": [
                {name: run.to_dict()[name] for name in _OF_SCENARIOS} for run in together
            ],
            "runs": [run.to_dict() for run in runs],
            "difference": changes,
        }
        out.print_json(json.dumps(values), ensure_ascii=True)
    elif difference:
        rows = [
            (
                each["figure"].removesuffix("_ms").replace("_", " "),
                *(shown(each["figure"], each[which]) for which in ("first", "second")),
                shown(each["figure"], each["change"], signed=True),
            )
            for each in changes
        ]
        print_table(("figure", *(run.name for run in runs), "change"), rows, labels=1)
    else:
        _table(
            together, ("scenario", "implementation"), lambda run: (run.scenario, run.implementation)
        )
        if len(runs) > 1:
            say("")
            names = varied(runs)
            _table(runs, ("run", *names), lambda run: (run.name, *map(run.settings.get, names)))
    for run in runs:
        for warning in run.warnings:
            warn(f"{run.name}: {warning}")
    measured = all(run.figures.expected for run in runs)
    raise typer.Exit(ExitCode.DONE if measured else ExitCode.UNKNOWN)


def _table(
    runs: list[Run], headings: tuple[str, ...], label: Callable[[Run], tuple[str | None, ...]]
) -> None:
    rows = []
    for run in runs:
        values = run.figures.values()
        labels = (each or UNKNOWN for each in label(run))
        rows.append((*labels, *(shown(name, values[name]) for name in HEADINGS)))
    print_table((*headings, *HEADINGS.values()), rows, labels=len(headings))
