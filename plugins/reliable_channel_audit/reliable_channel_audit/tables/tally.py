"""Counts of equal values, by group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from ..columns.arrays import Whole

MAX_KEY: Final = 2**60
"""Limit of the numbers that stand for a group and a value."""
NO: Final = np.zeros(0, np.int64)


class Counts(Sequence[int]):
    """Sorted values, each stored with its count."""

    def __init__(self, values: Whole, counts: Whole) -> None:
        self.values, self.counts = values, counts
        self._up_to = np.cumsum(counts)

    def __len__(self) -> int:
        return int(self._up_to[-1]) if len(self._up_to) else 0

    def __getitem__(self, place: Any) -> Any:
        return int(self.values[self._up_to.searchsorted(place, side="right")])


class Tally:
    """Counts of each value in each group of values."""

    def __init__(self) -> None:
        self._parts: list[tuple[Whole, Whole, Whole]] = []

    def add(self, groups: Whole, values: Whole, counts: Whole | None = None) -> None:
        self._parts.append(_counted(groups, values, counts))

    def merged(self) -> tuple[Whole, Whole, Whole]:
        """Return groups, values and counts in order."""
        if len(self._parts) > 1:
            self._parts = [_counted(*map(np.concatenate, zip(*self._parts, strict=True)))]
        return self._parts[0] if self._parts else (NO, NO, NO)

    def by_group(
        self, of: Callable[[Whole], Whole] = lambda groups: groups
    ) -> Iterator[tuple[int, Counts]]:
        """Yield the values of each group, where groups with an equal `of` are joined."""
        groups, values, counts = self.merged()
        groups, values, counts = _counted(of(groups), values, counts)
        begins = np.flatnonzero(np.diff(groups, prepend=groups[:1] - 1))
        ends = np.append(begins, len(groups))[1:]
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            yield int(groups[begin]), Counts(values[begin:end], counts[begin:end])


def _counted(
    groups: Whole, values: Whole, counts: Whole | None = None
) -> tuple[Whole, Whole, Whole]:
    """Each group and value once, in order, with its counts added up. A count is 1 if not given."""
    if not len(groups):
        return groups, values, groups
    every, least, first = values, int(values.min()), int(groups.min())
    width = int(values.max()) - least + 1
    if is_wide := (int(groups.max()) - first + 1) * width >= MAX_KEY:  # a clock was set by ages
        every, values = np.unique(values, return_inverse=True)
        least, width = 0, len(every)
    keys = (groups - first) * width + (values - least)
    if counts is None:
        found, sums = np.unique(keys, return_counts=True)
    else:
        order = np.argsort(keys, kind="stable")  # quick where sorted keys are joined
        keys, counts = keys[order], counts[order]
        begins = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
        found, sums = keys[begins], np.add.reduceat(counts, begins)
    values = found % width + least
    return found // width + first, every[values] if is_wide else values, sums
