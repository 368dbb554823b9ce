"""Arrays of the column reader."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
Whole: TypeAlias = Array
"""Array of whole numbers with 64 bits."""
Bytes: TypeAlias = Array


class NeedsRowReader(Exception):
    """Error that the data cannot be read as columns, so it must be read row by row."""


def ramps(begins: Whole, counts: Whole) -> Whole:
    """Return joined ranges of numbers, each with a beginning and a count."""
    total = int(counts.sum())
    firsts = np.repeat(begins - (np.cumsum(counts) - counts), counts)
    return firsts + np.arange(total)
