"""Polling interval for a node's message cache.

A node's REST API cannot push messages. The cache drops the oldest of more than 50 messages (nwaku)
or 30 messages (go-waku's filter). The interval therefore follows the traffic. At a constant rate of
messages, the cache is at most a quarter full at each read. A sudden rate of 200 messages a second
would not overflow the cache.
"""

from typing import Final

CACHE_CAPACITY: Final = 30
"""Number of messages in the smallest cache of all known nodes."""
FILL_SHARE: Final = 0.25
SMOOTHING: Final = 0.3


class AdaptivePolling:
    """Wait before the next read, computed from the results of the last reads."""

    def __init__(self, *, min_interval_ms: int, max_interval_ms: int) -> None:
        self._min_interval_ms = min_interval_ms
        self._max_interval_ms = max_interval_ms
        self._rate_per_ms = 0.0

    def next_interval_ms(self, messages: int, elapsed_ms: float) -> int:
        """Note that a read returned `messages` after `elapsed_ms`. Return the wait before the next
        read (ms)."""
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
        """Return True if a read with that many messages may have come too late."""
        return messages >= CACHE_CAPACITY
