"""What the benchmark found: a JSON file for machines, tables for people, and what was wanted of it.

`receive` and `send` are lists of rows with the keys `history`, `causal_history`, `unacknowledged`,
`ours_us`, `js_waku_us`, `ratio` and `floor_ratio`; times are CPU microseconds a message, a ratio is
js-waku over ours, a floor ratio is ours over the floor, and what was not run is null. The other
keys describe the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from bench.machine import Machine
from bench.session import Row

LATEST: Final = Path(__file__).parent / "results" / "latest.json"
CAPTION: Final = (
    "CPU time, median of rounds; ratio: js-waku over ours;\n"
    "floor: protobuf decode and one set lookup a causal entry"
)

WANTED_RATIO: Final = 150.0
WANTED_FLOOR_RATIO: Final = 3.0
WANTED_GROWTH: Final = 1.3
WANTED_BYTES_PER_MESSAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of both sides, where js-waku's may be missing."""

    name: str
    unit: str
    ours: float
    js_waku: float | None

    @property
    def ratio(self) -> float | None:
        return None if self.js_waku is None else self.js_waku / self.ours


@dataclass(frozen=True, slots=True)
class Target:
    """A figure that is wanted, and what was found."""

    name: str
    wanted: str
    found: float
    met: bool


@dataclass(slots=True)
class Report:
    machine: Machine
    quick: bool
    rows: list[Row] = field(default_factory=list)
    primitives: list[Comparison] = field(default_factory=list)
    memory: list[Comparison] = field(default_factory=list)
    seconds: float = 0.0

    def targets(self) -> Iterator[Target]:
        """Yield the wanted figures that this run can speak about."""
        typical = self._default_receive(10_000)
        if typical is not None:
            if typical.ratio is not None:
                yield _at_least("receive at 10k, ratio", typical.ratio, WANTED_RATIO)
            yield _at_most("receive at 10k, floor ratio", typical.floor_ratio, WANTED_FLOOR_RATIO)
            largest = self._default_receive(1_000_000)
            if largest is not None:
                growth = largest.ours_us / typical.ours_us
                yield _at_most("receive at 1M over 10k", growth, WANTED_GROWTH)
        for entry in self.memory:
            yield _at_most(f"memory, {entry.name}: bytes", entry.ours, WANTED_BYTES_PER_MESSAGE)

    def _default_receive(self, history: int) -> Row | None:
        shape = ("receive", history, 200, 0)
        for row in self.rows:
            if (row.operation, row.history, row.causal_history, row.unacknowledged) == shape:
                return row
        return None


def as_json(report: Report) -> dict[str, object]:
    """Return the report as it stands in the results file."""
    return {
        "receive": [_row(row) for row in report.rows if row.operation == "receive"],
        "send": [_row(row) for row in report.rows if row.operation == "send"],
        "samples": [
            {
                "operation": row.operation,
                "history": row.history,
                "causal_history": row.causal_history,
                "unacknowledged": row.unacknowledged,
                "messages": row.messages,
                "floor_us": _rounded(row.floor_us),
            }
            for row in report.rows
        ],
        "primitives": [_comparison(entry) for entry in report.primitives],
        "memory": [_comparison(entry) for entry in report.memory],
        "targets": [asdict(target) for target in report.targets()],
        "machine": asdict(report.machine),
        "quick": report.quick,
        "seconds": round(report.seconds, 1),
    }


def write_json(report: Report, path: Path) -> None:
    """Write the results file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(as_json(report), indent=2) + "\n")
    partial.replace(path)


def print_tables(report: Report, console: Console) -> None:
    """Print the figures, and whether they are the wanted ones."""
    console.print(_row_table(report.rows))
    for title, entries in (("primitives", report.primitives), ("memory a message", report.memory)):
        if entries:
            console.print(_comparison_table(title, entries))
    table = Table("wanted", "", "found", title="wanted figures", title_justify="left")
    for target in report.targets():
        verdict = "[green]met[/]" if target.met else "[red]missed[/]"
        table.add_row(target.name, target.wanted, f"{_figure(target.found)}  {verdict}")
    if table.row_count:
        console.print(table)


def print_machine(machine: Machine, console: Console) -> None:
    """Print what the figures were measured on, and whether it was calm."""
    console.print(f"{machine.cpu}, {machine.cpus} CPUs, {machine.system}", highlight=False)
    console.print(
        f"{machine.python}, protobuf {machine.protobuf}, "
        f"Node {machine.node or 'none'}, load average {machine.load_average}",
        highlight=False,
    )
    if machine.busy:
        console.print("[yellow]the machine is busy: expect figures above the usual ones[/]")


def _row_table(rows: Sequence[Row]) -> Table:
    table = Table(title="µs a message", title_justify="left", caption=CAPTION)
    table.add_column("operation")
    for name in ("history", "causal", "unacked", "ours", "js-waku", "ratio", "floor ratio"):
        table.add_column(name, justify="right")
    for row in sorted(rows, key=lambda row: (row.operation, row.history)):
        table.add_row(
            row.operation,
            f"{row.history:,}",
            str(row.causal_history),
            str(row.unacknowledged),
            _figure(row.ours_us),
            _figure(row.js_waku_us),
            _figure(row.ratio),
            _figure(row.floor_ratio),
        )
    return table


def _comparison_table(title: str, entries: Sequence[Comparison]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for name in ("unit", "ours", "js-waku", "ratio"):
        table.add_column(name, justify="right")
    for entry in entries:
        table.add_row(
            entry.name,
            entry.unit,
            _figure(entry.ours),
            _figure(entry.js_waku),
            _figure(entry.ratio),
        )
    return table


def _row(row: Row) -> dict[str, float | None]:
    return {
        "history": row.history,
        "causal_history": row.causal_history,
        "unacknowledged": row.unacknowledged,
        "ours_us": _rounded(row.ours_us),
        "js_waku_us": _rounded(row.js_waku_us),
        "ratio": _rounded(row.ratio),
        "floor_ratio": _rounded(row.floor_ratio),
    }


def _comparison(entry: Comparison) -> dict[str, object]:
    return {
        "name": entry.name,
        "unit": entry.unit,
        "ours": _rounded(entry.ours),
        "js_waku": _rounded(entry.js_waku),
        "ratio": _rounded(entry.ratio),
    }


def _at_least(name: str, found: float, wanted: float) -> Target:
    return Target(name, f"at least {wanted:g}", round(found, 2), found >= wanted)


def _at_most(name: str, found: float, wanted: float) -> Target:
    return Target(name, f"at most {wanted:g}", round(found, 2), found <= wanted)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _figure(value: float | None) -> str:
    """Three digits that matter; a dash for what was not run."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
