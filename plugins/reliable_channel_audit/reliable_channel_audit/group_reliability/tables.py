"""Tables of runs, by scenario, by setting, and as a comparison of two runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Final, NamedTuple

from ..rates import duration, percent
from .runs import Run

UNKNOWN: Final = "-"
HEADINGS: Final = {
    "participants": "participants",
    "messages": "messages",
    "delivery_rate": "delivered",
    "missing": "missing",
    "holes": "holes",
    "latency_p50_ms": "p50",
    "latency_p99_ms": "p99",
    "latency_max_ms": "max",
    "repaired": "repaired",
}
"""Figures that a table shows, with their headings. `Figures.values` contains all figures of a
run."""


class Difference(NamedTuple):
    """Values of a figure in two runs."""

    figure: str
    first: float | int | None
    second: float | int | None
    change: float | int | None
    """Change from the first run to the second run, or None if a value is unknown."""


def by_scenario(runs: Iterable[Run]) -> list[Run]:
    """Return the runs of each scenario and implementation as one run, with their figures added up.
    They keep the order of scenarios, with implementations of a scenario together."""
    together: dict[str, dict[str, Run]] = {}
    for run in runs:
        of_scenario = together.setdefault(run.scenario, {})
        if run.implementation in of_scenario:
            of_scenario[run.implementation].figures += run.figures
        else:
            of_scenario[run.implementation] = deepcopy(run)
    return [each[name] for each in together.values() for name in sorted(each)]


def varied(runs: Sequence[Run]) -> list[str]:
    """Return the names of the settings that differ between runs."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    return [name for name in names if len({run.settings.get(name) for run in runs}) > 1]


def differences(first: Run, second: Run) -> list[Difference]:
    """Return the values of every figure in two runs."""
    one, other = first.figures.values(), second.figures.values()
    return [
        Difference(name, was, now, None if was is None or now is None else now - was)
        for (name, was), now in zip(one.items(), other.values(), strict=True)
    ]


def shown(name: str, value: float | int | None, *, signed: bool = False) -> str:
    """Return a figure as text, with its unit, or with a dash if it is unknown. A `signed` figure of
    0 is empty."""
    if value is None:
        return UNKNOWN
    if signed and value >= 0:
        return f"+{shown(name, value)}" if value else ""
    if name.endswith("_rate"):
        return percent(value)
    if name.endswith("_ms"):
        return "-" * (value < 0) + duration(abs(value))
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}"
