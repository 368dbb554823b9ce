"""Arrays of the column reader."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
Whole: TypeAlias = Array
"""Array of whole numbers with 64 bits."""
DIGEST_BYTES: Final = 32


class NeedsRowReader(Exception):
    """Error that the data cannot be read as columns, so it must be read row by row."""


def ramps(begins: Whole, counts: Whole) -> Whole:
    """Return joined ranges of numbers, each with a beginning and a count."""
    total = int(counts.sum())
    firsts = np.repeat(begins - (np.cumsum(counts) - counts), counts)
    return firsts + np.arange(total)


def digests(rows: Iterable[bytes]) -> Array:
    """Return hashes of 32 bytes as rows."""
    return np.frombuffer(b"".join(rows), np.uint8).reshape(-1, DIGEST_BYTES)


def rows_of(digests: Array) -> list[bytes]:
    """Return the rows of 32 bytes as a list."""
    data = digests.tobytes()
    return [data[at : at + DIGEST_BYTES] for at in range(0, len(data), DIGEST_BYTES)]
