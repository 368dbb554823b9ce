"""Pauses between attempts that fail."""

from collections.abc import Callable


class Backoff:
    """Exponential backoff of failing attempts, with jitter. Each pause is between half of a limit
    and the whole limit, which doubles each time."""

    def __init__(
        self, random: Callable[[], float], *, first_ms: int = 200, max_ms: int = 10_000
    ) -> None:
        self._random = random
        self._first_ms = first_ms
        self._max_ms = max_ms
        self._bound_ms = first_ms

    def next_s(self) -> float:
        """Return the next pause (s)."""
        bound_ms = self._bound_ms
        self._bound_ms = min(2 * bound_ms, self._max_ms)
        return bound_ms * (0.5 + self._random() / 2) / 1000

    def reset(self) -> None:
        """Start with the shortest pause again, after a success."""
        self._bound_ms = self._first_ms
