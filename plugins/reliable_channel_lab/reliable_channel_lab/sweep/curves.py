"""Curves and answers that are computed from the records of runs.

Runs that differ only in the seed become one figure, with mean, lowest and highest value. A run that
lacks a value, such as a delay without messages, is left out.
"""

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .runs import Record, Value

Conditions = Mapping[str, Value]
"""Values of settings, by the names of the settings."""

_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
}


@dataclass(frozen=True, slots=True)
class Figure:
    """Mean, lowest and highest measurement of runs that differ only in the seed."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Target:
    """Condition that an answer must meet, such as `delivered_share >= 0.999`."""

    measure: str
    comparison: str
    bound: float

    @classmethod
    def parse(cls, text: str) -> "Target":
        """Return the target that a text describes.

        Raises:
            ValueError: it is none.
        """
        if (found := re.fullmatch(r"(\w+) (>=|<=) ([-+.\de]+)", text)) is None:
            raise ValueError(
                f"{text!r} is not a target; write MEASURE >= NUMBER, or MEASURE <= NUMBER"
            )
        measure, comparison, bound = found.groups()
        return cls(measure, comparison, float(bound))

    def is_met(self, figure: Figure | None) -> bool:
        """Return True if the mean of a figure meets the target."""
        compare = _COMPARISONS[self.comparison]
        return figure is not None and compare(figure.mean, self.bound)

    def __str__(self) -> str:
        return f"{self.measure} {self.comparison} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Best:
    """Choice of settings that meets a target at the lowest cost."""

    given: Conditions
    choice: Conditions | None
    """Chosen values of the settings. If no choice meets the target, `choice` is None."""
    cost: float | None


def select(records: Iterable[Record], where: Conditions) -> list[Record]:
    """Return the records in which settings have the given values."""
    return [r for r in records if all(r.get(name) == value for name, value in where.items())]


def figure(records: Iterable[Record], measure: str) -> Figure | None:
    """Return mean, lowest and highest value of a measure in records, or None without values."""
    values = [record.get(measure) for record in records]
    numbers = [float(value) for value in values if isinstance(value, (int, float))]
    if not numbers:
        return None
    return Figure(sum(numbers) / len(numbers), min(numbers), max(numbers))


def values_of(records: Iterable[Record], setting: str) -> list[Value]:
    """Return the values of a setting that occur in records, in order."""
    return sorted({record.get(setting) for record in records}, key=_order)


def curve(records: Collection[Record], x: str, y: str) -> list[tuple[float, Figure | None]]:
    """Return the measure `y` at each value of the setting `x`."""
    points = []
    for value in values_of(records, x):
        assert isinstance(value, (int, float))
        points.append((float(value), figure(select(records, {x: value}), y)))
    return points


def best(
    records: Sequence[Record],
    *,
    of: Sequence[str],
    target: Target,
    least: str,
    each: Sequence[str] = (),
) -> list[Best]:
    """Return the best values of the settings `of` for each combination of the settings `each`. The
    best values meet the target at the lowest value of the measure `least`. Of several equally good
    choices, the first is returned."""
    answers = []
    for given in combinations(records, each):
        candidates = []
        for choice in combinations(select(records, given), of):
            runs = select(records, {**given, **choice})
            cost = figure(runs, least)
            if cost is not None and target.is_met(figure(runs, target.measure)):
                candidates.append((cost.mean, choice))
        cost_of_best, chosen = min(candidates, key=lambda one: one[0], default=(None, None))
        answers.append(Best(given, chosen, cost_of_best))
    return answers


def combinations(records: Iterable[Record], settings: Sequence[str]) -> list[Conditions]:
    """Return the combinations of the settings' values that occur in records, in order."""
    rows = {tuple(record.get(name) for name in settings) for record in records}
    ordered = sorted(rows, key=lambda row: [_order(value) for value in row])
    return [dict(zip(settings, row, strict=True)) for row in ordered]


def _order(value: Value) -> tuple[bool, float, str]:
    """Numbers by size, then words by letters."""
    if isinstance(value, (int, float)):
        return False, float(value), ""
    return True, 0.0, str(value)
