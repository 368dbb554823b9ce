"""`reliable-channel audit compare`, which compares delivery, latency, holes and repairs of
groups."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.status import Status

from reliable_channel import printable
from reliable_channel.spi import ExitCode, err, out, say, warn

from .ingest import SettleMs
from .plain_table import print_table

if TYPE_CHECKING:
    from ..group_reliability.figures import Figures
    from ..group_reliability.runs import Run


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
    from ..group_reliability.runs import find_runs, measure
    from ..group_reliability.tables import by_scenario, differences

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
    rows = by_scenario(runs)
    changes = differences(*runs) if len(runs) == 2 else []
    if as_json:
        values = {
            "scenarios": [
                {"scenario": row.scenario, "implementation": row.implementation}
                | {"figures": row.figures.values()}
                for row in rows
            ],
            "runs": [run.to_dict() for run in runs],
            "difference": [each._asdict() | {"change": each.change} for each in changes],
        }
        out.print_json(json.dumps(values), ensure_ascii=True)
    elif difference:
        _difference(runs)
    else:
        labels = [(row.scenario, row.implementation) for row in rows]
        _table(("scenario", "implementation"), labels, [row.figures for row in rows])
        if len(runs) > 1:
            _sweep(runs)
    for run in runs:
        for warning in run.warnings:
            warn(f"{run.name}: {warning}")
    measured = all(run.figures.expected for run in runs)
    raise typer.Exit(ExitCode.DONE if measured else ExitCode.UNKNOWN)


def _sweep(runs: "list[Run]") -> None:
    """A row for each run, with the settings that differ."""
    from ..group_reliability.tables import UNKNOWN, varied

    names = varied(runs)
    say("")
    labels = [(run.name, *(run.settings.get(name, UNKNOWN) for name in names)) for run in runs]
    _table(("run", *names), labels, [run.figures for run in runs])


def _difference(runs: "list[Run]") -> None:
    from ..group_reliability.tables import differences, shown

    rows = [
        (
            each.figure.removesuffix("_ms").replace("_", " "),
            shown(each.figure, each.first),
            shown(each.figure, each.second),
            _signed(shown(each.figure, each.change), each.change),
        )
        for each in differences(*runs)
    ]
    print_table(("figure", *(run.name for run in runs), "change"), rows, labels=1)


def _signed(text: str, change: float | None) -> str:
    if not change:
        return "" if change is not None else text
    return f"+{text}" if change > 0 else text


def _table(
    headings: tuple[str, ...], labels: Sequence[tuple[str, ...]], figures: "list[Figures]"
) -> None:
    from ..group_reliability.tables import HEADINGS, shown

    rows = [
        (*label, *(shown(name, each.values()[name]) for name in HEADINGS))
        for label, each in zip(labels, figures, strict=True)
    ]
    print_table((*headings, *HEADINGS.values()), rows, labels=len(headings))
