"""Comparison with Store, which finds own messages that Store lacks, and missed messages in Store.

A dead subscription looks like a quiet network, and only Store shows the difference. One query by
content topic finds both kinds of messages (LIP 172, P2P reliability). Ephemeral messages are not
expected in Store, because Store does not keep them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ..sds.events import Outgoing, OutgoingKind
from ..sds.recent_set import RecentSet
from .sync_core import Arrival, Outcome

SKEW_MS: Final = 30_000
"""Maximum expected difference between clocks (ms), because Store orders messages by sender time."""
LOOKS: Final = 2
"""Number of queries in which a message must be absent before it counts as not stored."""
AWAITED_LIMIT: Final = 10_000
"""Maximum number of own messages that are looked for in Store. The oldest of these messages are
dropped."""
RECENT_LIMIT: Final = 20_000
"""Maximum number of remembered hashes of own messages, and of received live messages."""


@dataclass(slots=True)
class _Awaited:
    """An own message that Store was not seen to have."""

    newest_ns: int
    """The timestamp of its newest envelope."""
    hashes: set[bytes] = field(default_factory=set)
    """Of all envelopes that it was sent in. By a clock that was set back two may be one."""
    looks: int = 0


class Confirmation:
    """State that is kept between two confirmation queries to Store."""

    def __init__(self, *, interval_ms: int, now_ms: int) -> None:
        self.interval_ms: Final = interval_ms
        """Between two looks; 0 where there are none."""
        self._opened_ms = now_ms
        self._awaited: dict[str, _Awaited] = {}
        self._message_ids: dict[bytes, str] = {}
        self.own: Final = RecentSet[bytes](RECENT_LIMIT)
        """Hashes of own messages; open to read."""
        self._came = RecentSet[bytes](RECENT_LIMIT)
        self._heard = self._heard_before = 0

    def dispatched(self, outgoing: Outgoing, message_hash: bytes, timestamp_ns: int) -> None:
        """Note a sent message, which Store is expected to have from now on."""
        self.own.add(message_hash)
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

    def came_live(self, message_hash: bytes, arrival: Arrival) -> bool:
        """Note a message that arrived live. Return True if the message shows that the subscription
        works. Own messages do not show that, because a disconnected node echoes them."""
        if message_hash in self.own:
            return False
        self._came.add(message_hash)
        is_others = arrival.outcome is not Outcome.OWN
        self._heard += is_others
        return is_others

    def look_from_ms(self, now_ms: int) -> int:
        """Return the start time of the next confirmation query (ms)."""
        return max(now_ms - LOOKS * self.interval_ms - SKEW_MS, self._opened_ms)

    def stored(self, message_hash: bytes) -> str | None:
        """Note that Store has a message. Return the id of the own message that is confirmed for the
        first time, or None."""
        message_id = self._message_ids.get(message_hash)
        if message_id is not None:
            self.forget(message_id)
        return message_id

    def absent(self, reached_ns: int) -> Iterator[str]:
        """Yield the ids of own messages that Store lacked in enough queries. The last query covered
        messages stamped up to `reached_ns`. Call `forget` for messages that are not sent again."""
        for message_id, awaited in list(self._awaited.items()):
            if awaited.newest_ns <= reached_ns:
                awaited.looks += 1
                if awaited.looks >= LOOKS:
                    awaited.looks = 0
                    yield message_id

    def knows(self, message_hash: bytes) -> bool:
        """Return True if the hash belongs to an own message, or to a message that arrived live."""
        return message_hash in self.own or message_hash in self._came

    def heard_anything(self) -> bool:
        """Return True if a message of another participant arrived live since the last call."""
        heard, self._heard_before = self._heard - self._heard_before, self._heard
        return heard > 0

    def forget(self, message_id: str) -> None:
        """Stop looking for an own message in Store."""
        for message_hash in self._awaited.pop(message_id).hashes:
            del self._message_ids[message_hash]
