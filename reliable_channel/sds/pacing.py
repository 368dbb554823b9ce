"""Token buckets, which limit how often something may happen."""

from math import ceil
from typing import Final

_ROUNDING: Final = 1e-6


class Bucket:
    """Token bucket that gains a token in each interval. A clock set back refills nothing."""

    def __init__(self, most: int, every_ms: float) -> None:
        self._most = most
        self._every_ms = every_ms
        self._left = float(most)
        self._noted_ms: int | None = None

    def take(self, now_ms: int, count: int = 1) -> bool:
        """Take tokens, if there are enough."""
        self._refill(now_ms)
        if self._left < count - _ROUNDING:
            return False
        self._left -= count
        return True

    def give_back(self, now_ms: int) -> None:
        """Return a token, because its use was worth it."""
        self._refill(now_ms)
        self._left = min(float(self._most), self._left + 1)

    def wait_ms(self, now_ms: int) -> int:
        """Return the time until there is a token (0 if there is one)."""
        self._refill(now_ms)
        return max(0, ceil((1 - self._left - _ROUNDING) * self._every_ms))

    def _refill(self, now_ms: int) -> None:
        if self._noted_ms is not None:
            gained = max(0, now_ms - self._noted_ms) / self._every_ms
            self._left = min(float(self._most), self._left + gained)
        self._noted_ms = now_ms
