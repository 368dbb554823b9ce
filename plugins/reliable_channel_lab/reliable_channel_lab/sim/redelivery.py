"""Judge of redelivery, which checks that a restart repeats exactly the unconfirmed events."""

from collections import Counter
from typing import Any, Final

from reliable_channel.engine.logged import Logged
from reliable_channel.events import (
    AnyEvent,
    DeliveryFailed,
    MessageAcknowledged,
    MessageLost,
    MessageReceived,
    PayloadDropped,
    SendFailed,
)

from .ledger import Fail

REDELIVERED: Final = "what is not confirmed is emitted again"
CONFIRMED: Final = "what is confirmed is not emitted again"
ONCE: Final = "an event is emitted once"
OVERTAKEN: Final = "nothing new overtakes what is emitted again"
MARKED: Final = "what is emitted again is marked"
_KINDS: Final = (MessageReceived, MessageAcknowledged, DeliveryFailed, SendFailed, MessageLost)
_Key = tuple[type[Any], str]


class Redelivery:
    """Events of one participant that its application must receive, also after restarts."""

    def __init__(self, fail: Fail) -> None:
        self._fail = fail
        self.started()

    def started(self) -> None:
        """Begin with a process that has no state."""
        self._seen: set[_Key] = set()
        self._unconfirmed: Counter[_Key] = Counter()
        """How often it was emitted since: what counts as lost, comes to be wanted again and is
        lost once more is reported twice."""
        self._owed: Counter[_Key] = Counter()
        """To be emitted again, so many times."""
        self._before: set[_Key] = set()
        """Seen before a state was rolled back."""
        self._is_sure = True
        """True if what is owed is known."""
        self._has_dropped = False
        """True if a payload was dropped: its segments are read again after a restart, as far as
        that was not confirmed, and one that came late may make it whole."""

    def restarted(self) -> None:
        """Begin with a process that starts from its disk."""
        self._owed += self._unconfirmed
        self._unconfirmed.clear()

    def rolled_back(self) -> None:
        """Begin with a process that starts from an older state, without the later confirmations."""
        before = self._before | self._seen
        self.started()
        self._before, self._is_sure = before, False

    def repeated(self) -> None:
        """Check that all pending events were emitted again."""
        if self._owed and self._is_sure:
            kind, message_id = next(iter(self._owed))
            detail = f"{kind.__name__} and {self._owed.total() - 1} others were not"
            self._fail(REDELIVERED, message_id, detail)
        self._owed.clear()
        self._before = set()
        self._is_sure = True

    def emitted(self, event: AnyEvent | Logged) -> bool:
        """Note an event that was emitted, or that is on disk to be emitted. If the event was known
        before, `emitted` returns True."""
        if not isinstance(event, _KINDS):
            self._has_dropped |= isinstance(event, PayloadDropped)
            return False
        key = type(event), event.message_id
        if self._is_repetition(event, key):
            self._owed[key] -= 1
            if not self._owed[key]:
                del self._owed[key]
            self._seen.add(key)
            self._unconfirmed[key] += 1
            return True
        if key in self._seen and not isinstance(event, MessageLost):
            promise = ONCE if key in self._unconfirmed else CONFIRMED
            self._fail(promise, event.message_id, f"{event.wire_name} is emitted again")
        is_of_state = self._has_dropped and isinstance(event, MessageReceived) and event.redelivered
        if self._owed and self._is_sure and not is_of_state:
            detail = f"{event.wire_name}, while {self._owed.total()} are still owed"
            self._fail(OVERTAKEN, event.message_id, detail)
        self._seen.add(key)
        self._unconfirmed[key] += 1
        return False

    def _is_repetition(self, event: AnyEvent, key: _Key) -> bool:
        if not self._is_sure:
            return event.redelivered if isinstance(event, MessageReceived) else key in self._before
        if key not in self._owed:
            return False
        if isinstance(event, MessageReceived) and not event.redelivered:
            self._fail(MARKED, event.message_id, "it is not marked")
        return True

    def confirmed(self, event: AnyEvent) -> None:
        """Note that the confirmation of an event is on disk."""
        if isinstance(event, _KINDS):
            self._unconfirmed.pop((type(event), event.message_id), None)
