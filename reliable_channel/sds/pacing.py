"""Token buckets, which limit how often an action may happen."""

from math import ceil
from typing import Final

_ROUNDING: Final = 1e-6


class Bucket:
    """Token bucket that gains one token in each interval. A clock that is set back adds no
    tokens."""

    def __init__(self, most: int, every_ms: float) -> None:
        self._most = most
        self._every_ms = every_ms
        self._left = float(most)
        self._noted_ms: int | None = None

    def take(self, now_ms: int, count: int = 1) -> bool:
        """Take `count` tokens and return True, or return False if there are too few."""
        self._refill(now_ms)
        if self._left < count - _ROUNDING:
            return False
        self._left -= count
        return True

    def give_back(self, now_ms: int) -> None:
        """Put one token back into the bucket."""
        self._refill(now_ms)
        self._left = min(float(self._most), self._left + 1)

    def wait_ms(self, now_ms: int) -> int:
        """Return the time (ms) until the bucket has a token, or 0."""
        self._refill(now_ms)
        return max(0, ceil((1 - self._left - _ROUNDING) * self._every_ms))

    def _refill(self, now_ms: int) -> None:
        if self._noted_ms is not None:
            gained = max(0, now_ms - self._noted_ms) / self._every_ms
            self._left = min(float(self._most), self._left + gained)
        self._noted_ms = now_ms
