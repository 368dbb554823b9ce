"""The price list of what a peer provokes, and the budget of a connection from which it is paid."""

from __future__ import annotations

import sys
from typing import Final

from .errors import LimitExceeded

__all__ = ["FRAME", "MESSAGE", "NONSENSE", "PING", "STREAM", "TURN", "Budget"]

FRAME: Final = 1
"""Price of a frame of the muxer, and of a message of noise."""
MESSAGE: Final = 4
"""Price of a message for a `MessageSink`, which is decoded."""
PING: Final = 50
"""Price of a ping, of yamux and of libp2p. Peers ping every 30 s, or now and then."""
STREAM: Final = 10
"""Price of a new stream: a negotiation, and a task that serves the stream."""
NONSENSE: Final = 100
"""Price of a frame that no honest peer sends often: for no stream, an answer without a question,
or a reset of a stream before its answer."""
TURN: Final = 128
"""Price of what is handled before other connections have their turn."""
BURST_S: Final = 2
"""A peer that was quiet may send as much at once as otherwise in this time."""


class Budget:
    """A token bucket for one connection. A frame of ordinary use costs one token."""

    def __init__(self, per_s: int, now_ms: int = 0) -> None:
        self._per_s = per_s
        self.left: float = per_s * BURST_S
        self._at_ms = now_ms
        self._turn = sys.maxsize

    @property
    def is_spent(self) -> bool:
        """True if the turn is over: handle the rest in the next turn."""
        return self._turn <= 0

    def begin_turn(self, now_ms: int) -> None:
        """Begin a turn. Without this call there are no turns."""
        earned = (now_ms - self._at_ms) * self._per_s / 1000
        self.left = min(self.left + earned, self._per_s * BURST_S)
        self._at_ms = now_ms
        self._turn = TURN

    def charge(self, price: int, what: str) -> None:
        """Pay for something that the peer sent.

        Raises:
            LimitExceeded: the budget is used up; the message names `what`.
        """
        self._turn -= price
        self.left -= price
        if self.left < 0:
            raise LimitExceeded("frames_per_s", self._per_s, f"more, the last: {what}")
