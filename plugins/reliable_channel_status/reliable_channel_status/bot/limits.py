"""How often a user may call the bot: token buckets. Pure: the time is given."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from ..recent import Recent

REMEMBERED: Final = 10_000
"""Buckets that are not full; the one unused for longest goes, and with it what it had used."""


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many calls at once, and then one whenever `per_ms / calls` have passed.

    Raises:
        ValueError: fewer than one call, or no time.
    """

    calls: int
    per_ms: int

    def __post_init__(self) -> None:
        if self.calls < 1 or self.per_ms < 1:
            raise ValueError(f"{self.calls} calls in {self.per_ms} ms is no limit")


class Buckets:
    """A limit that holds for each key by itself, such as a user."""

    def __init__(self, limit: RateLimit, *, remembered: int = REMEMBERED) -> None:
        self._limit = limit
        self._buckets: Recent[Hashable, tuple[float, int]] = Recent(remembered)

    def take(self, key: Hashable, now_ms: int) -> bool:
        """Whether one more call is within the limit; if so it counts."""
        calls, per_ms = self._limit.calls, self._limit.per_ms
        left, since_ms = self._buckets.get(key, (float(calls), now_ms))
        now_ms = max(now_ms, since_ms)
        left = min(calls, left + (now_ms - since_ms) * calls / per_ms)
        is_allowed = left >= 1
        self._buckets.renew(key, (left - is_allowed, now_ms))
        return is_allowed
