"""Joining a conversation that began long ago.

A newcomer hears references to messages that were sent before it joined. A reference does not tell
when its message was sent, nor if the message can still be found. For a while, a newcomer therefore
assumes that unknown messages were sent before it joined. No message waits for these earlier
messages, and they never count as lost. The newcomer still searches earlier messages, because a
message may be lost right after the join. If a message is found, it is delivered if sent after the
join, and otherwise dropped.
"""

from collections import OrderedDict
from collections.abc import KeysView
from operator import attrgetter
from typing import Final

from ..changes import CHANNEL, NO_RECORDER, Recorder, Table, Tables, typed_table
from ..ids import RecentIds
from ..message import HistoryEntry
from ..states import OnTransition, Trigger, unchecked
from .incoming import MissingEntry, MissingRow, missing_entry

PRESUMED: Final = typed_table("presumed_earlier", MissingRow)
HISTORIC: Final = Table("settled_earlier", (("message_id", "TEXT"),))


class Joining:
    """Start of the wanted messages, and ids of messages from before the start."""

    def __init__(
        self, limit: int, recorder: Recorder = NO_RECORDER, on_transition: OnTransition = unchecked
    ) -> None:
        self._on_transition = on_transition
        self.wanted_from = 0
        """Messages with an earlier Lamport timestamp are not wanted."""
        self.presumed: OrderedDict[str, MissingEntry] = OrderedDict()
        """References taken for earlier messages, to be looked for quietly; the oldest make room."""
        self.historic = RecentIds(limit, recorder=recorder, table=HISTORIC)
        """Messages that are not searched any more."""
        self._presume_until_ms = 0
        self._limit = limit
        self._recorder = recorder

    def start(self, *, wanted_from: int, presume_until_ms: int) -> None:
        self.wanted_from = wanted_from
        self._presume_until_ms = presume_until_ms
        self._recorder.put(CHANNEL, "wanted_from", wanted_from)
        self._recorder.put(CHANNEL, "presume_until_ms", presume_until_ms)

    def presumes(self, now_ms: int) -> bool:
        """Return True if unknown references now count as references to messages before the join."""
        return now_ms < self._presume_until_ms

    def __contains__(self, message_id: str) -> bool:
        return message_id in self.presumed or message_id in self.historic

    def known(self, message_ids: KeysView[str]) -> set[str]:
        """Return those of the given ids that count as messages before the join."""
        return message_ids & self.presumed.keys() | message_ids & self.historic.keys()

    def is_earlier(self, entry: HistoryEntry, now_ms: int) -> bool:
        """Return True if no message needs to wait for a reference. While the participant joins, no
        message needs to wait for an unknown reference."""
        message_id = entry.message_id
        if message_id in self:
            return True
        if not self.presumes(now_ms):
            return False
        self.presumed[message_id] = missing = MissingEntry(entry, now_ms)
        self._recorder.put(PRESUMED, *missing.row)
        self._on_transition(message_id, Trigger.REFERENCED_JOINING)
        if len(self.presumed) > self._limit:
            self.mark_historic(oldest := next(iter(self.presumed)))
            self._on_transition(oldest, Trigger.LIMIT)
        return True

    def arrived(self, message_id: str) -> None:
        """Note that a message arrived that was assumed to be from before the join."""
        if self.presumed.pop(message_id, None):
            self._recorder.delete(PRESUMED, message_id)

    def mark_historic(self, message_id: str) -> None:
        """Note that a message was sent before the join, and stop the search for it. The oldest ids
        are evicted."""
        self.arrived(message_id)
        self.historic.add(message_id)

    def expire(self, now_ms: int, timeout_ms: int) -> None:
        """Stop the search for messages that were not found within `timeout_ms`."""
        while self.presumed:
            message_id, missing = next(iter(self.presumed.items()))
            if now_ms - missing.since_ms <= timeout_ms:
                return
            self.mark_historic(message_id)
            self._on_transition(message_id, Trigger.TIMEOUT)

    def restore(self, wanted_from: int, presume_until_ms: int, tables: Tables) -> None:
        """Restore the start of the wanted messages that was saved before a restart."""
        self.wanted_from = wanted_from
        self._presume_until_ms = presume_until_ms
        presumed = PRESUMED.read(tables.get(PRESUMED.name, ()))
        for row in sorted(presumed, key=attrgetter("since_ms")):
            self.presumed[row.message_id] = missing_entry(row)
        self.historic.restore(tables.get(HISTORIC.name, ()))
