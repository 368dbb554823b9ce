"""Whether a subscription still hears, judged by our own messages: a node gives them back.

A subscription can die while every request succeeds: on nwaku, another application's `DELETE` leaves
the shard for all clients, and Store and filter of that node fall silent with it. A quiet channel
looks the same. Own messages make the difference, and cost no request.
"""

from collections.abc import Iterable
from math import inf, isfinite
from typing import Final

PATIENCE_S: Final = 15.0
"""How long an own message may take to come back; ten times what polling and a slow node need."""
MAX_PATIENCE_S: Final = 600.0
"""Patience doubles up to this while reviving does not help."""
MIN_UNHEARD: Final = 2
"""Own messages that must be missing: one may have been dropped as a repetition."""
WATCHED: Final = 16
"""Own messages that are watched at a time, the oldest; more prove nothing more."""


class SubscriptionWatchdog:
    """Watches own messages of one subscription, in seconds of any steady clock.

    Deaf means: at least two own messages did not come back in time, and nothing else came either.
    Where others' messages come and ours do not, the node gives none back; then silence proves
    nothing, until one of ours does come.
    """

    def __init__(self) -> None:
        self._unheard: dict[bytes, float] = {}
        self._patience_s = PATIENCE_S
        self._gives_back = True
        self.restorations = 0
        """Revivals in a row that did not help so far."""

    def publishing(self, message_hash: bytes) -> None:
        """Note an own message, before it goes out: it may be back before the node's answer."""
        if len(self._unheard) < WATCHED:
            self._unheard.setdefault(message_hash, inf)

    def published(self, message_hash: bytes, now_s: float) -> None:
        """Give an own message its time from now on: the node took it."""
        if message_hash in self._unheard:
            self._unheard[message_hash] = now_s

    def not_published(self, message_hash: bytes) -> None:
        """The node did not take it."""
        self._unheard.pop(message_hash, None)

    def heard(self, message_hashes: Iterable[bytes], now_s: float) -> None:
        """Note that something came, and the hashes of what may be ours. The cost is their
        number."""
        late = sum(now_s - since_s > PATIENCE_S for since_s in self._unheard.values())
        if any(digest in self._unheard for digest in message_hashes):
            self._gives_back = True
        elif late >= MIN_UNHEARD:
            self._gives_back = False
        self._unheard.clear()
        self._patience_s, self.restorations = PATIENCE_S, 0

    def deaf_for_s(self, now_s: float) -> float | None:
        """How long nothing has come, where that means deaf; else None."""
        since_s = sorted(filter(isfinite, self._unheard.values()))
        if not self._gives_back or len(since_s) < MIN_UNHEARD:
            return None
        late = now_s - since_s[MIN_UNHEARD - 1] >= self._patience_s
        return now_s - since_s[0] if late else None

    @property
    def not_echoed(self) -> tuple[bytes, ...]:
        """Hashes of own messages that did not come back so far."""
        return tuple(self._unheard)

    def taken_by_others(self) -> None:
        """Forget the messages that did not come back, because the node heard them: another reader
        emptied its cache."""
        self._unheard.clear()

    def restored(self) -> None:
        """The subscription was made anew; give it time."""
        self._unheard.clear()
        self._patience_s = min(2 * self._patience_s, MAX_PATIENCE_S)
        self.restorations += 1
