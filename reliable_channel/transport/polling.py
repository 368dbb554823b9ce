"""How often to look into a node's message cache.

A node's REST API has no push, and its cache drops the oldest beyond 50 messages (nwaku) or 30
(go-waku's filter). So the wait between two looks follows the traffic: short enough that the cache
is at most a quarter full at the present rate, and never so long that a sudden 200 messages a second
would overflow it.
"""

from typing import Final

CACHE_CAPACITY: Final = 30
"""The smallest cache among the nodes we know."""
FILL_SHARE: Final = 0.25
SMOOTHING: Final = 0.3


class AdaptivePolling:
    """The time to wait before the next look, from what the last ones brought."""

    def __init__(self, *, min_interval_ms: int, max_interval_ms: int) -> None:
        self._min_interval_ms = min_interval_ms
        self._max_interval_ms = max_interval_ms
        self._rate_per_ms = 0.0

    def next_interval_ms(self, messages: int, elapsed_ms: float) -> int:
        """Take note of a look that brought `messages` after `elapsed_ms`, and say when to look
        again."""
        rate = messages / max(elapsed_ms, 1.0)
        # A rising rate counts at once, a falling one slowly: too many looks cost little, too few
        # cost messages.
        weight = 1.0 if rate > self._rate_per_ms else SMOOTHING
        self._rate_per_ms += weight * (rate - self._rate_per_ms)
        if not self._rate_per_ms:
            return self._max_interval_ms
        wanted_ms = CACHE_CAPACITY * FILL_SHARE / self._rate_per_ms
        return round(min(max(wanted_ms, self._min_interval_ms), self._max_interval_ms))

    def overflow_suspected(self, messages: int) -> bool:
        """Return True if a look that brought so many may have come too late."""
        return messages >= CACHE_CAPACITY
