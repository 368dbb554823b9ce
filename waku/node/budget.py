"""Budget for the requests of one peer to this node."""

from __future__ import annotations

from typing import Final

__all__ = ["RequestBudget"]

NS_PER_S: Final = 1_000_000_000
BURST_S: Final = 5
"""Size of a peer's burst, as the time (s) in which the budget earns as many requests."""


class RequestBudget:
    """Budget of one peer, in requests a second."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._left = self._most = max(1.0, BURST_S * per_s)
        self._at_ns: int | None = None

    def takes(self, now_ns: int) -> bool:
        """Return True if the budget allows one more request, and count it."""
        passed_s = 0.0 if self._at_ns is None else max(0, now_ns - self._at_ns) / NS_PER_S
        self._at_ns = now_ns
        self._left = min(self._most, self._left + passed_s * self._per_s)
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def charge(self, requests: float) -> None:
        """Charge work that took as long as the given number of requests. Further requests are
        refused until the budget has earned the charge."""
        self._left -= requests
