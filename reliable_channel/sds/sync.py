"""Time of a periodic sync message (LIP 109, Periodic Sync Message).

The whole channel shares the sync messages of an interval, because one sync makes others
unnecessary. js-waku draws each timer uniformly from 0, so a sync prevents no other sync. Right
after a sync, each of N participants sends a sync with probability 1/30 a second. A quiet channel
thus carries N/30 syncs a second. `SuppressedSchedule` instead uses a feedback timer (Nonnenmacher
and Biersack, Scalable feedback for large groups, 1999). The delay of `SuppressedSchedule` is a dead
time without syncs, followed by a skewed random time. About one participant is expected to send
within one network latency of the first, in any group.
"""

import math
from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol

from .agenda import Agenda, Slot

Random = Callable[[], float]
"""Function that returns a uniform random number in [0, 1)."""


class SyncTrigger(Enum):
    """Event that restarts the sync timer."""

    START = "start"
    CONTENT = "content"
    MORE_CONTENT = "more_content"
    """Content message, while no participant has acknowledged earlier messages. A stream of content
    must not delay its acknowledgements."""
    MISSED_CONTENT = "missed_content"
    """Content message that was known to be missing."""
    SYNC = "sync"
    REQUEST = "request"
    """Sync message with repair requests. A sync with requests is sent even if others have just sent
    a sync, so it takes no turn. If a sync with requests took a turn, one participant could delay
    all syncs without end."""
    OWN_CONTENT = "own_content"
    OWN_SYNC = "own_sync"

    __hash__ = object.__hash__  # the one of Enum hashes the name, in Python


_OWN: Final = (SyncTrigger.START, SyncTrigger.OWN_CONTENT, SyncTrigger.OWN_SYNC)
_PUTS_OFF: Final = (
    SyncTrigger.CONTENT,
    SyncTrigger.MISSED_CONTENT,
    SyncTrigger.OWN_CONTENT,
    SyncTrigger.REQUEST,
)


class SyncSchedule(Protocol):
    """Rule for the time of the next sync message."""

    patience: int
    """Number of delays after which content and requests no longer postpone a sync, or 0 for no
    limit."""
    doublings: int
    """Number of times that the delay doubles while own syncs get no reply."""

    def delay_ms(self, heard: SyncTrigger) -> int:
        """Return the wait (ms) from now until the next sync."""
        ...


GROUP_SIZE_BOUND: Final = 100_000
"""Maximum group size for which the draw is made. The first of N participants sends when N *
bound^(t - 1) is 1, for the elapsed share t."""
_LEAST: Final = 1 / GROUP_SIZE_BOUND
_LOG_BOUND: Final = math.log(GROUP_SIZE_BOUND)


class SuppressedSchedule:
    """Schedule with about one sync an interval in a channel of 2 to 10,000 participants.

    After a content message the wait is half as long, because its sender waits for an
    acknowledgement. The sender of the content waits slightly longer than the other participants. If
    the sender waited less, its own sync would prevent the acknowledgements of the others. If the
    sender waited much longer, a lost last message would not be noticed. After an own sync the wait
    is twice as long, so that another participant sends the next sync.
    """

    _SHARES: Final = {
        SyncTrigger.CONTENT: 0.5,
        SyncTrigger.MISSED_CONTENT: 0.5,
        SyncTrigger.OWN_CONTENT: 0.75,
        SyncTrigger.OWN_SYNC: 2.0,
    }
    patience = 10
    doublings = 2

    DEAD_SHARE: Final = 0.8
    DRAW_SHARE: Final = 0.4

    def __init__(self, interval_ms: int, random: Random) -> None:
        self._interval_ms = interval_ms
        self._random = random

    def delay_ms(self, heard: SyncTrigger) -> int:
        """Return a dead time plus an exponentially skewed random time (ms)."""
        uniform = _LEAST + self._random() * (1 - _LEAST)
        skewed = 1 + math.log(uniform) / _LOG_BOUND
        share = self.DEAD_SHARE + self.DRAW_SHARE * skewed
        return round(self._interval_ms * self._SHARES.get(heard, 1.0) * share)


class JsWakuSchedule:
    """Schedule of js-waku, for comparison, with a uniform delay from 0. The delay is halved after
    content, and doubled after an own sync."""

    _MULTIPLIER: Final = {
        SyncTrigger.CONTENT: 0.5,
        SyncTrigger.MISSED_CONTENT: 0.5,
        SyncTrigger.OWN_SYNC: 2.0,
    }
    patience = doublings = 0

    def __init__(self, interval_ms: int, random: Random) -> None:
        self._interval_ms = interval_ms
        self._random = random

    def delay_ms(self, heard: SyncTrigger) -> int:
        return round(self._random() * self._interval_ms * self._MULTIPLIER.get(heard, 1.0))


def make_schedule(name: str, interval_ms: int, random: Random) -> SyncSchedule | None:
    """Return the schedule with the given name, or None if the interval is 0."""
    if not interval_ms:
        return None
    rule = SuppressedSchedule if name == "suppressed" else JsWakuSchedule
    return rule(interval_ms, random)


class SyncTimer:
    """Timer of this participant's next sync message.

    Content and requests postpone the next sync, but at most `patience` times. Only sync messages
    carry the roots by which participants compare their logs. Without the limit, a busy channel or a
    participant that always asks would prevent syncs.

    A participant that hears no other waits longer after each own sync, so that a thousand deserted
    channels cost little. Where no other was ever heard, the second wait is longer already, because
    a newcomer makes itself heard.
    """

    def __init__(self, schedule: SyncSchedule | None, agenda: Agenda | None = None) -> None:
        self.due_ms: int | None = None
        """None where no sync messages are sent."""
        self._agenda = agenda or Agenda()
        self._schedule = schedule
        self._latest_ms = 0
        self._own_ms: int | None = None
        self._is_alone = True
        """True until another participant is heard."""
        self._unanswered = 0
        """Own syncs since anything else was heard or sent."""
        self._doublings = 0
        """Number of times that the last wait was doubled, where the schedule permitted it."""

    def restart(self, heard: SyncTrigger, now_ms: int) -> None:
        """Start the wait for the next sync again, with the length that the schedule gives."""
        if (schedule := self._schedule) is None:
            return
        delay_ms = self._backed_off_ms(schedule, heard, now_ms)
        due_ms = now_ms + delay_ms
        if heard not in _PUTS_OFF:
            self._latest_ms = now_ms + schedule.patience * delay_ms
        elif schedule.patience:
            due_ms = min(due_ms, max(now_ms, self._latest_ms))
        self.due_ms = due_ms
        self._agenda.plan(Slot.SYNC, due_ms)

    def prompt(self, now_ms: int) -> None:
        """Note that a participant lacks messages that a sync of this participant would name. The
        call ends a longer wait."""
        if self._doublings:
            self.restart(SyncTrigger.SYNC, now_ms)

    def _backed_off_ms(self, schedule: SyncSchedule, heard: SyncTrigger, now_ms: int) -> int:
        """Return the wait of a schedule (ms), which is longer while own syncs get no reply."""
        self._is_alone &= heard in _OWN
        if heard is not SyncTrigger.OWN_SYNC:
            self._unanswered = 0
        elif self._own_ms != now_ms:
            self._unanswered, self._own_ms = self._unanswered + 1, now_ms
        self._doublings = self._unanswered if self._is_alone else max(0, self._unanswered - 1)
        return schedule.delay_ms(heard) << min(self._doublings, schedule.doublings)

    def _plan(self, due_ms: int) -> None:
        self.due_ms = due_ms
        self._agenda.plan(Slot.SYNC, due_ms)
