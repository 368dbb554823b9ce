"""Curves and answers, from records alone.

Figures of runs that differ in the seed only are put together: their mean, their lowest and their
highest. A run in which there was nothing to measure, such as the delay of messages where none came,
has no part in it.
"""

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .runs import Record, Value

Conditions = Mapping[str, Value]
"""Values by setting."""

_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
}


@dataclass(frozen=True, slots=True)
class Figure:
    """What runs measured that differ in the seed."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Target:
    """What an answer must reach, such as `delivered_share >= 0.999`."""

    measure: str
    comparison: str
    bound: float

    @classmethod
    def parse(cls, text: str) -> "Target":
        """Read one.

        Raises:
            ValueError: it is none.
        """
        if (found := re.fullmatch(r"(\w+) (>=|<=) ([-+.\de]+)", text)) is None:
            raise ValueError(f"{text!r} is not a target; write MEASURE >= NUMBER, or <=")
        measure, comparison, bound = found.groups()
        return cls(measure, comparison, float(bound))

    def is_met(self, figure: Figure | None) -> bool:
        """Return True if the mean reaches it."""
        compare = _COMPARISONS[self.comparison]
        return figure is not None and compare(figure.mean, self.bound)

    def __str__(self) -> str:
        return f"{self.measure} {self.comparison} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Best:
    """The choice that reaches a target at the least cost."""

    given: Conditions
    choice: Conditions | None
    """None where none reaches it."""
    cost: float | None


def select(records: Iterable[Record], where: Conditions) -> list[Record]:
    """The records with these values."""
    return [r for r in records if all(r.get(name) == value for name, value in where.items())]


def figure(records: Iterable[Record], measure: str) -> Figure | None:
    """What they measured; None where none of them has such a figure."""
    values = [record.get(measure) for record in records]
    numbers = [float(value) for value in values if isinstance(value, (int, float))]
    if not numbers:
        return None
    return Figure(sum(numbers) / len(numbers), min(numbers), max(numbers))


def values_of(records: Iterable[Record], setting: str) -> list[Value]:
    """The values of a setting, in order."""
    return sorted({record.get(setting) for record in records}, key=_order)


def curve(records: Collection[Record], x: str, y: str) -> list[tuple[float, Figure | None]]:
    """What was measured of `y` at each value of the setting `x`, by `x`."""
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
    """For each combination of the settings `each`: the values of the settings `of` with which the
    target is reached at the least `least`; of equal ones those that come first."""
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
    """The values that these settings have together, in order."""
    rows = {tuple(record.get(name) for name in settings) for record in records}
    ordered = sorted(rows, key=lambda row: [_order(value) for value in row])
    return [dict(zip(settings, row, strict=True)) for row in ordered]


def _order(value: Value) -> tuple[bool, float, str]:
    """Numbers by size, then words by letters."""
    if isinstance(value, (int, float)):
        return False, float(value), ""
    return True, 0.0, str(value)
