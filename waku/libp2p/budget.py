"""Prices of a peer's actions, which are paid from the budget of its connection."""

from __future__ import annotations

import sys
from typing import Final

from .errors import LimitExceeded

__all__ = ["FRAME", "MESSAGE", "NONSENSE", "PING", "STREAM", "TURN", "Budget"]

FRAME: Final = 1
"""Price of a muxer frame and of a noise message (tokens)."""
MESSAGE: Final = 4
"""Price of decoding a message for a `MessageSink` (tokens)."""
PING: Final = 50
"""Price of a ping, of yamux or libp2p (tokens). Honest peers send a ping every 30 s or less
often."""
STREAM: Final = 10
"""Price of a new stream (tokens), because a stream costs a negotiation and a serving task."""
NONSENSE: Final = 100
"""Price of a frame that honest peers rarely send (tokens). Examples are a frame of no stream, an
unrequested answer, and a reset before the answer."""
TURN: Final = 128
"""Price after which a turn ends (tokens). Other connections then have their turn."""
BURST_S: Final = 2
"""Size of a peer's burst, as the time (s) in which the budget earns as many tokens."""


class Budget:
    """Token bucket of one connection. An ordinary frame of the muxer costs one token."""

    def __init__(self, per_s: int, now_ms: int = 0) -> None:
        self._per_s = per_s
        self.left: float = per_s * BURST_S
        self._at_ms = now_ms
        self._turn = sys.maxsize

    @property
    def is_spent(self) -> bool:
        """True if the turn of the connection is over. The connection continues in its next turn."""
        return self._turn <= 0

    def begin_turn(self, now_ms: int) -> None:
        """Begin a turn of the connection. Without this call, a turn never ends."""
        earned = (now_ms - self._at_ms) * self._per_s / 1000
        self.left = min(self.left + earned, self._per_s * BURST_S)
        self._at_ms = now_ms
        self._turn = TURN

    def charge(self, price: int, what: str) -> None:
        """Charge the price of a peer's action to the budget.

        Raises:
            LimitExceeded: the budget is used up; the message names `what`.
        """
        self._turn -= price
        self.left -= price
        if self.left < 0:
            raise LimitExceeded("frames_per_s", self._per_s, f"more, the last: {what}")
