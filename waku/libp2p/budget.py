"""Prices of a peer's actions, and the budget of a connection that pays them."""

from __future__ import annotations

import sys
from typing import Final

from .errors import LimitExceeded

__all__ = ["FRAME", "MESSAGE", "NONSENSE", "PING", "STREAM", "TURN", "Budget"]

FRAME: Final = 1
"""Price of a muxer frame, and of a noise message."""
MESSAGE: Final = 4
"""Price of decoding a message for a `MessageSink`."""
PING: Final = 50
"""Price of a ping, of yamux or libp2p. Honest peers ping every 30 s or less often."""
STREAM: Final = 10
"""Price of a new stream, because it costs a negotiation and a serving task."""
NONSENSE: Final = 100
"""Price of a frame that honest peers rarely send. Examples are a frame for no stream, an answer
without a question, and a reset before the answer."""
TURN: Final = 128
"""Price that ends a turn. Other connections then have their turn."""
BURST_S: Final = 2
"""Burst of a peer, as the time in which it would earn the tokens."""


class Budget:
    """Token bucket of one connection. An ordinary frame costs one token."""

    def __init__(self, per_s: int, now_ms: int = 0) -> None:
        self._per_s = per_s
        self.left: float = per_s * BURST_S
        self._at_ms = now_ms
        self._turn = sys.maxsize

    @property
    def is_spent(self) -> bool:
        """True if the turn is over. The rest is handled in the next turn."""
        return self._turn <= 0

    def begin_turn(self, now_ms: int) -> None:
        """Begin a turn. Without this call, turns never end."""
        earned = (now_ms - self._at_ms) * self._per_s / 1000
        self.left = min(self.left + earned, self._per_s * BURST_S)
        self._at_ms = now_ms
        self._turn = TURN

    def charge(self, price: int, what: str) -> None:
        """Pay for an action of the peer.

        Raises:
            LimitExceeded: the budget is used up; the message names `what`.
        """
        self._turn -= price
        self.left -= price
        if self.left < 0:
            raise LimitExceeded("frames_per_s", self._per_s, f"more, the last: {what}")
