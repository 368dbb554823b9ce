"""Participants that were heard in a channel, with the time. The record shows signs of life, and is
not a list of members.

The time until a participant counts as silent follows the sync schedule. An idle channel carries
about one sync message an interval, from any of its N participants. Each participant is therefore
heard every N intervals on average. Within `ROUNDS` times N intervals, an honest participant is
heard with a probability of 1 - e^-7.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Literal

from .._notifier import Notifier
from ..diagnostics import MessageReconciled, RepairRequestReceived, SyncReceived
from ..events import (
    AnyEvent,
    EphemeralReceived,
    MessageReceived,
    ParticipantSeen,
    ParticipantSilent,
)
from ..sds.fast_dataclass import value

ROUNDS: Final = 7
"""Number of average waits for a sync message after which a participant counts as silent."""
PARTICIPANTS_LIMIT: Final = 1_000
"""Maximum number of remembered participants. The participant that was silent for longest is removed
first."""
EARLIEST_MS: Final = 1_600_000_000_000
"""Smallest Lamport timestamp (ms) that is a time of day. The clock of a sender with a smaller
timestamp counts from 0."""
Sign = Literal["message", "ephemeral", "sync", "repair_request", "reconciliation"]
SIGNS: Final[dict[type, Sign]] = {
    MessageReceived: "message",
    EphemeralReceived: "ephemeral",
    SyncReceived: "sync",
    RepairRequestReceived: "repair_request",
    MessageReconciled: "reconciliation",
}


@value
class Participant:
    """Other participant, with its last sign of life."""

    sender_id: str
    last_heard_ms: int
    """Wall-clock time of the last sign of life (ms since 1970). For a message, the value is the
    time of sending."""
    heard_by: Sign
    """Kind of the last sign of life."""
    is_silent: bool
    """True if the last sign of life is too long ago."""


class Presence:
    """Participants of one channel that were heard since the channel was opened.

    Args:
        sync_interval_ms: the interval of sync messages (ms). 0 if there are no sync messages.
    """

    def __init__(
        self,
        sender_id: str,
        sync_interval_ms: int,
        emit: Callable[[AnyEvent], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._sender_id = sender_id
        self._interval_ms = sync_interval_ms
        self._emit = emit
        self._now_ms = now_ms
        self._heard: OrderedDict[str, Participant] = OrderedDict()
        self._present: set[str] = set()
        """Names of those that are not silent."""
        self._changed = Notifier()

    def participants(self) -> tuple[Participant, ...]:
        """Return the participants, with the most recently heard participant first."""
        return tuple(sorted(self._heard.values(), key=lambda one: -one.last_heard_ms))

    @property
    def silent_after_ms(self) -> int | None:
        """Time without a sign after which a participant is silent (ms), or None without sync
        messages."""
        return ROUNDS * self._interval_ms * max(2, 1 + len(self._present)) or None

    def note(self, event: Any, now_ms: int) -> None:
        """Note the sign of life that an event contains, if any."""
        if (sign := SIGNS.get(type(event))) is not None:
            heard_ms = event.lamport_timestamp if sign == "message" else now_ms
            self.heard(event.sender_id, sign, heard_ms, now_ms)

    def heard(self, sender_id: str, sign: Sign, heard_ms: int, now_ms: int) -> None:
        """Note that a participant was heard. If `heard_ms` is before 2020, the current time is
        used."""
        if sender_id == self._sender_id:
            return
        heard_ms = min(heard_ms, now_ms) if heard_ms >= EARLIEST_MS else now_ms
        known = self._heard.get(sender_id)
        if known is not None and known.last_heard_ms > heard_ms:
            return
        was_silent = known is None or known.is_silent
        after_ms = self.silent_after_ms
        is_silent = after_ms is not None and now_ms - heard_ms >= after_ms
        self._heard[sender_id] = Participant(sender_id, heard_ms, sign, is_silent)
        self._heard.move_to_end(sender_id)
        if len(self._heard) > PARTICIPANTS_LIMIT:
            self._present.discard(self._heard.popitem(last=False)[0])
        if was_silent and not is_silent:
            self._present.add(sender_id)
            self._emit(ParticipantSeen(sender_id, sign))
            self._changed.notify()

    async def run(self) -> None:
        """Emit `ParticipantSilent` for each participant that becomes silent, until cancelled."""
        while True:
            due_ms = self._next_silent_ms()
            if due_ms is None:
                await self._changed.wait()
                continue
            if (wait_ms := due_ms - self._now_ms()) > 0:
                await self._changed.wait(wait_ms / 1000)
            self._silence()

    def _next_silent_ms(self) -> int | None:
        after_ms = self.silent_after_ms
        if after_ms is None or not self._present:
            return None
        return min(self._heard[name].last_heard_ms for name in self._present) + after_ms

    def _silence(self) -> None:
        after_ms, now_ms = self.silent_after_ms, self._now_ms()
        for name in sorted(self._present):
            quiet_ms = now_ms - self._heard[name].last_heard_ms
            if after_ms is not None and quiet_ms >= after_ms:
                self._present.discard(name)
                self._heard[name] = replace(self._heard[name], is_silent=True)
                self._emit(ParticipantSilent(name, quiet_ms))
