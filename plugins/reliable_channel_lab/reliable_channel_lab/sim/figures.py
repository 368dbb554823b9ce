"""Figures of a comparison as CSV rows, and their means over the seeds."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, fields
from io import StringIO
from typing import Any, Final

from .comparison import Cell, ComparedCell
from .measures import Measures

_CELL: Final = {"participants": int, "loss": float, "seed": int}


def row(figure: ComparedCell) -> dict[str, Any]:
    """Return a flat record of a cell, its measures, and the reason if the cell was not run."""
    measures = figure.measures.row() if figure.measures is not None else {}
    return {**asdict(figure.cell), "not_run": figure.not_run, **measures}


def to_csv(figures: Iterable[ComparedCell]) -> str:
    """Return a CSV table with one line for each cell."""
    rows = [row(figure) for figure in figures]
    columns = max(rows, key=len, default={})
    written = StringIO()
    writer = csv.DictWriter(written, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _short(value) for name, value in each.items()} for each in rows)
    return written.getvalue()


def to_json_line(figure: ComparedCell) -> str:
    return json.dumps({name: _short(value) for name, value in row(figure).items()})


def from_csv(text: str) -> Iterator[ComparedCell]:
    """Yield the cells in a CSV table of `to_csv`.

    Raises:
        ValueError: it is something else.
    """
    kept = {field.name for field in fields(Measures)}
    for number, values in enumerate(csv.DictReader(StringIO(text)), 2):
        try:
            cell = Cell(**{f.name: _CELL.get(f.name, str)(values[f.name]) for f in fields(Cell)})
            not_run = values["not_run"]
            numbers: dict[str, Any] = {}
            if not not_run:
                numbers = {name: _number(values[name]) for name in kept}
        except (KeyError, ValueError, TypeError) as error:
            raise ValueError(
                f"line {number} is not a measurement of a comparison: {error!r}"
            ) from error
        yield ComparedCell(cell, Measures(**numbers) if numbers else None, not_run)


def over_seeds(
    figures: Iterable[ComparedCell], value: Callable[[Measures], float | None]
) -> tuple[float, float, float] | None:
    """Return the mean, the smallest and the largest of a value over seeds, or None without
    values."""
    values = [v for f in figures if f.measures is not None and (v := value(f.measures)) is not None]
    return (sum(values) / len(values), min(values), max(values)) if values else None


def _short(value: object) -> object:
    return round(value, 4) if isinstance(value, float) else value


def _number(text: str) -> float | int | None:
    if not text:
        return None
    return float(text) if "." in text else int(text)
