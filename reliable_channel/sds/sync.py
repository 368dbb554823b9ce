"""Time of a periodic sync message (LIP 109, Periodic Sync Message).

The whole channel shares the duty of the interval: the first participant spares the others. js-waku
draws each timer uniformly from 0, which suppresses nothing. Right after a sync, each of N
participants fires with probability 1/30 a second. A quiet channel thus carries N/30 syncs a second.
`SuppressedSchedule` is the feedback timer of scalable multicast instead (Nonnenmacher and Biersack,
Scalable feedback for large groups, 1999). After a dead time without syncs comes a skewed draw.
About one participant is expected to fire within one network latency of the first, for every group
size.
"""

import math
from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol

from .agenda import Agenda, Slot

Random = Callable[[], float]
"""Function that returns a uniform random number in [0, 1)."""


class SyncTrigger(Enum):
    """Event that restarts the timer."""

    START = "start"
    CONTENT = "content"
    MORE_CONTENT = "more_content"
    """Content while no participant has acknowledged earlier messages. A stream must not delay its
    acknowledgements."""
    MISSED_CONTENT = "missed_content"
    """Content that was known to be missing."""
    SYNC = "sync"
    REQUEST = "request"
    """Sync message with requests. It is sent even if others spoke, so it takes no turn. Otherwise
    one participant could send them without end."""
    OWN_CONTENT = "own_content"
    OWN_SYNC = "own_sync"

    __hash__ = object.__hash__  # the one of Enum hashes the name, in Python


_PUTS_OFF: Final = (
    SyncTrigger.CONTENT,
    SyncTrigger.MISSED_CONTENT,
    SyncTrigger.OWN_CONTENT,
    SyncTrigger.REQUEST,
)


class SyncSchedule(Protocol):
    """Rule for the next sync message."""

    patience: int
    """Number of delays after which content and requests no longer postpone a sync (0: never)."""

    def delay_ms(self, heard: SyncTrigger) -> int:
        """Return the wait from now (ms)."""
        ...


class SuppressedSchedule:
    """Schedule with about one sync an interval in the whole channel, from 2 to 10,000 participants.

    After content the wait is half as long, because its sender waits for an acknowledgement. The
    sender itself comes right after that. If it came earlier, its own sync would suppress the
    answers. If it came much later, the loss of a last message would not be noticed. After an own
    sync the wait is twice as long, so that another participant is next.
    """

    _SHARES: Final = {
        SyncTrigger.CONTENT: 0.5,
        SyncTrigger.MISSED_CONTENT: 0.5,
        SyncTrigger.OWN_CONTENT: 0.75,
        SyncTrigger.OWN_SYNC: 2.0,
    }
    patience = 10

    DEAD_SHARE: Final = 0.8
    DRAW_SHARE: Final = 0.4
    GROUP_SIZE_BOUND: Final = 100_000
    """Limit of the draw, so that the first of N fires when N * bound^(t - 1) reaches 1. t is the
    elapsed share of the draw."""

    def __init__(self, interval_ms: int, random: Random) -> None:
        self._interval_ms = interval_ms
        self._random = random

    def delay_ms(self, heard: SyncTrigger) -> int:
        """Return a dead time plus an exponentially skewed draw."""
        interval = self._interval_ms * self._SHARES.get(heard, 1.0)
        bound = self.GROUP_SIZE_BOUND
        uniform = 1 / bound + self._random() * (1 - 1 / bound)
        skewed = 1 + math.log(uniform) / math.log(bound)
        return round(interval * (self.DEAD_SHARE + self.DRAW_SHARE * skewed))


class JsWakuSchedule:
    """Rule of js-waku, for comparison: uniform from 0, times 0.5 after content, times 2 after an
    own sync."""

    _MULTIPLIER: Final = {
        SyncTrigger.CONTENT: 0.5,
        SyncTrigger.MISSED_CONTENT: 0.5,
        SyncTrigger.OWN_SYNC: 2.0,
    }
    patience = 0

    def __init__(self, interval_ms: int, random: Random) -> None:
        self._interval_ms = interval_ms
        self._random = random

    def delay_ms(self, heard: SyncTrigger) -> int:
        return round(self._random() * self._interval_ms * self._MULTIPLIER.get(heard, 1.0))


def make_schedule(name: str, interval_ms: int, random: Random) -> SyncSchedule | None:
    """Return the schedule of that name, or None if the interval is 0."""
    if not interval_ms:
        return None
    rule = SuppressedSchedule if name == "suppressed" else JsWakuSchedule
    return rule(interval_ms, random)


class SyncTimer:
    """Timer of this participant's next sync message.

    Content and requests postpone it, but not without end. Only sync messages carry the roots by
    which logs are compared. In a busy channel, or beside a participant that asks on and on, they
    would otherwise never be heard.
    """

    def __init__(self, schedule: SyncSchedule | None, agenda: Agenda | None = None) -> None:
        self.due_ms: int | None = None
        """None where no sync messages are sent."""
        self._agenda = agenda or Agenda()
        self._schedule = schedule
        self._latest_ms = 0

    def restart(self, heard: SyncTrigger, now_ms: int) -> None:
        """Start the wait again, with the length of the schedule after the last event."""
        if (schedule := self._schedule) is None:
            return
        delay_ms = schedule.delay_ms(heard)
        due_ms = now_ms + delay_ms
        if heard not in _PUTS_OFF:
            self._latest_ms = now_ms + schedule.patience * delay_ms
        elif schedule.patience:
            due_ms = min(due_ms, max(now_ms, self._latest_ms))
        self.due_ms = due_ms
        self._agenda.plan(Slot.SYNC, due_ms)

    def prompt(self, now_ms: int) -> None:
        """Note that a participant lacks messages that a sync of ours would name. By default this
        changes nothing."""

    def _plan(self, due_ms: int) -> None:
        self.due_ms = due_ms
        self._agenda.plan(Slot.SYNC, due_ms)
