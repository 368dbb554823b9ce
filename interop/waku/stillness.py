"""When js-waku has come to a stand: what it lacks then counts as missed.

Not by the clock alone, or a busy machine would decide what it gets. While there are messages that
it has yet to ask the others for, it moves: it asks for three at a time, in sync messages that are
seconds apart. And where it asks Store for some, Store must have answered without them.
"""

from collections.abc import Callable
from time import monotonic
from typing import Final

from .container import Event
from .peers import JsPeer

VAIN_QUERIES: Final = 3
"""That Store must have answered since the last thing came."""


class Stillness:
    """How long one js-waku participant has not moved."""

    def __init__(
        self,
        peer: JsPeer,
        patience_s: float,
        *,
        has_store: bool,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._peer = peer
        self._patience_s = patience_s
        self._has_store = has_store
        self._clock = clock
        self._seen: tuple[int, int, int] | None = None
        self._moved_at = clock()
        self._queries = 0

    @property
    def for_s(self) -> float:
        return self._clock() - self._moved_at

    @property
    def is_long(self) -> bool:
        """Whether that exceeds the longest wait, also if it still moves."""
        return self.for_s > self._patience_s

    def look(self, log: list[Event], wanted: set[str]) -> bool:
        """Look at it; return whether it stands. `wanted` is everything that it should have."""
        state = self._peer.state()
        others = wanted - set(self._peer.accepted)  # it drops its own, which it asks for in vain
        to_request = len(state.to_request & others)
        seen = len(log), len(state.waiting & wanted), to_request
        if seen != self._seen:
            self._seen, self._moved_at = seen, self._clock()
            self._queries = self._peer.queries()
        seeks = self._has_store and state.sought & others
        in_vain = self._peer.queries() - self._queries >= VAIN_QUERIES
        return not to_request and (not seeks or in_vain) and self.is_long
