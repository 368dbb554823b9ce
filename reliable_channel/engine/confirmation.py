"""Whether Store has what was sent, and has what did not come.

A subscription that died is as quiet as a network without traffic; only Store shows the
difference (LIP 172, P2P reliability: one query by content topic serves both). Ephemeral messages
are not stored, and not expected there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ..sds.events import Outgoing, OutgoingKind
from ..sds.recent_set import RecentSet
from .sync_core import Arrival, Outcome

SKEW_MS: Final = 30_000
"""What clocks may differ: Store orders by the sender's time."""
LOOKS: Final = 2
"""Looks in which a message must be absent before it counts as not stored."""
AWAITED_LIMIT: Final = 10_000
"""Own messages that are looked for in Store; the oldest are dropped beyond."""
RECENT_LIMIT: Final = 20_000
"""Hashes of own messages, and of others' that came live."""


@dataclass(slots=True)
class _Awaited:
    """An own message that Store was not seen to have."""

    newest_ns: int
    """The timestamp of its newest envelope."""
    hashes: set[bytes] = field(default_factory=set)
    """Of all envelopes that it was sent in. By a clock that was set back two may be one."""
    looks: int = 0


class Confirmation:
    """What is remembered from one look into Store to the next."""

    def __init__(self, *, interval_ms: int, now_ms: int) -> None:
        self.interval_ms: Final = interval_ms
        """Between two looks; 0 where there are none."""
        self._opened_ms = now_ms
        self._awaited: dict[str, _Awaited] = {}
        self._message_ids: dict[bytes, str] = {}
        self._own = RecentSet[bytes](RECENT_LIMIT)
        self._came = RecentSet[bytes](RECENT_LIMIT)
        self._heard = self._heard_before = 0

    def dispatched(self, outgoing: Outgoing, message_hash: bytes, timestamp_ns: int) -> None:
        """A message is out; from now on Store should have it."""
        self._own.add(message_hash)
        message_id = outgoing.message_id
        if outgoing.kind is OutgoingKind.CONTENT and self.interval_ms:
            self._awaited[message_id] = _Awaited(timestamp_ns)
            if len(self._awaited) > AWAITED_LIMIT:
                self.forget(next(iter(self._awaited)))
        elif outgoing.kind is not OutgoingKind.RETRY:
            return
        if awaited := self._awaited.get(message_id):
            awaited.newest_ns = timestamp_ns
            awaited.hashes.add(message_hash)
            self._message_ids[message_hash] = message_id

    def is_own(self, message_hash: bytes) -> bool:
        """Return True if this is the hash of an own message."""
        return message_hash in self._own

    def came_live(self, message_hash: bytes, arrival: Arrival) -> bool:
        """A message came by itself; return whether it shows that the subscription lives. Our own
        do not: a node that is cut off echoes them."""
        if message_hash in self._own:
            return False
        self._came.add(message_hash)
        is_others = arrival.outcome is not Outcome.OWN
        self._heard += is_others
        return is_others

    def look_from_ms(self, now_ms: int) -> int:
        """From when on to look."""
        return max(now_ms - LOOKS * self.interval_ms - SKEW_MS, self._opened_ms)

    def stored(self, message_hash: bytes) -> str | None:
        """Store has this; return which own message it is, the first time."""
        message_id = self._message_ids.get(message_hash)
        if message_id is not None:
            self.forget(message_id)
        return message_id

    def absent(self, reached_ns: int) -> Iterator[str]:
        """Own messages that Store lacks after enough looks, the last of which went through what was
        stamped up to `reached_ns`. Call `forget` for those that are not sent again."""
        for message_id, awaited in list(self._awaited.items()):
            if awaited.newest_ns <= reached_ns:
                awaited.looks += 1
                if awaited.looks >= LOOKS:
                    awaited.looks = 0
                    yield message_id

    def knows(self, message_hash: bytes) -> bool:
        """Return True if this is an own message, or came by itself."""
        return message_hash in self._own or message_hash in self._came

    def heard_anything(self) -> bool:
        """Return True if anything of others came by itself since the last call."""
        heard, self._heard_before = self._heard - self._heard_before, self._heard
        return heard > 0

    def forget(self, message_id: str) -> None:
        """Look for an own message no more."""
        for message_hash in self._awaited.pop(message_id).hashes:
            del self._message_ids[message_hash]
