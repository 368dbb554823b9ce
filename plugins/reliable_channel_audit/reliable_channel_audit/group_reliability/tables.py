"""Tables of runs, by scenario, by setting, and as a comparison of two runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Final, NamedTuple

from ..rates import duration, percent
from .figures import Figures
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


class Row(NamedTuple):
    """Runs of one scenario and one implementation, added up."""

    scenario: str
    implementation: str
    figures: Figures


class Difference(NamedTuple):
    """Values of a figure in two runs."""

    figure: str
    first: float | int | None
    second: float | int | None

    @property
    def change(self) -> float | int | None:
        """Change of the figure from the first run to the second run. If a value is unknown, the
        change is None."""
        if self.first is None or self.second is None:
            return None
        return self.second - self.first


def by_scenario(runs: Iterable[Run]) -> list[Row]:
    """Return the figures of each scenario and implementation, added up over runs. The rows keep the
    order of scenarios, with implementations of a scenario together."""
    together: dict[tuple[str, str], Figures] = {}
    order: dict[str, int] = {}
    for run in runs:
        order.setdefault(run.scenario, len(order))
        key = run.scenario, run.implementation
        if key in together:
            together[key] += run.figures
        else:
            together[key] = deepcopy(run.figures)
    keys = sorted(together, key=lambda key: (order[key[0]], key[1]))
    return [Row(*key, together[key]) for key in keys]


def varied(runs: Sequence[Run]) -> list[str]:
    """Return the names of the settings that differ between runs."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    return [name for name in names if len({run.settings.get(name) for run in runs}) > 1]


def differences(first: Run, second: Run) -> list[Difference]:
    """Return the values of every figure in two runs."""
    one, other = first.figures.values(), second.figures.values()
    return [Difference(name, one[name], other[name]) for name in one]


def shown(name: str, value: float | int | None) -> str:
    """Return a figure as text, with its unit, or with a dash if it is unknown."""
    if value is None:
        return UNKNOWN
    if name.endswith("_rate"):
        return percent(value)
    if name.endswith("_ms"):
        return "-" * (value < 0) + duration(abs(value))
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}"
