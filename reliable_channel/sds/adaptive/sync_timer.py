"""Time of the next sync message of a self-tuning participant.

It is sent soon after news, unless another one is first. Then the intervals double with each sync
sent or heard, up to the documented one. Only news resets the interval. Between two messages there
are therefore few rounds, of about e syncs each, for any size of the group (`law.py`).
"""

from dataclasses import replace
from typing import Final

from ..agenda import Agenda
from ..pacing import Bucket
from ..sync import Random, SyncTimer, SyncTrigger
from .estimates import Observations
from .law import acknowledge_ms, feedback_ms, stage_ms

DEAD_SHARE: Final = 0.9
"""Share of an interval in which no sync is sent."""
POLITE_SHARE: Final = 1.2
"""Share for a group in which others use the documented interval, which they wait at most. Without
it they would never have a turn. This participant takes a turn after as many syncs of others as
there are others."""
LISTENS: Final = 10
"""Number of syncs since news after which all wait equally long, for participants that were not
heard yet."""
JOINING: Final = 1_000
"""Participants that a newcomer assumes, because it has heard none."""
LONG_STAGE: Final = 2
PROMPTS: Final = 5
PROMPTS_EVERY_MS: Final = 3_000
"""Limit of the syncs that others provoke by lacking messages."""
STRANGER_SHARE: Final = 2
"""Factor for the wait after an own sync, so that another participant is next."""
PATIENCE: Final = 10
"""Number of requests by others in a row that delay a sync."""


class AdaptiveSyncTimer(SyncTimer):
    """Sync timer of a self-tuning participant."""

    def __init__(
        self,
        interval_ms: int,
        observations: Observations,
        random: Random,
        agenda: Agenda | None = None,
    ) -> None:
        super().__init__(None, agenda)
        self.stage = 0
        """Syncs since the last news."""
        self.gives_way = False
        """True if participants that do not tune themselves were heard."""
        self._interval_ms = interval_ms
        self._observations = observations
        self._random = random
        self._own_ms: int | None = None
        self._requests = 0
        """SyncTrigger since news, or since a sync that was no request."""
        self._silent = 0
        """Syncs heard since the last own message."""
        self._prompts = Bucket(PROMPTS, PROMPTS_EVERY_MS)

    def restart(self, heard: SyncTrigger, now_ms: int) -> None:
        """Start the wait again after a sent or received message."""
        if not self._interval_ms:
            return
        measured = self._observations.measured()
        match heard:
            case SyncTrigger.MORE_CONTENT if not self.stage and now_ms <= (self.due_ms or 0):
                return  # the sync that is planned names it, too
            case SyncTrigger.CONTENT | SyncTrigger.MORE_CONTENT:
                self.stage = self._requests = 0
                self._plan(now_ms + acknowledge_ms(measured, self._random()))
                return
            case SyncTrigger.MISSED_CONTENT:
                return  # it was known of; a sync will name it
            case SyncTrigger.OWN_CONTENT:
                self.stage, self._silent = 1, 0
            case SyncTrigger.START:
                crowd = replace(measured, others=max(measured.others, JOINING))
                draw_ms = feedback_ms(crowd, self._random())
                self._plan(now_ms + round(measured.scale_ms) + draw_ms)
                return
            case SyncTrigger.OWN_SYNC if self._own_ms == now_ms:
                return
            case SyncTrigger.REQUEST if self._requests >= PATIENCE:
                return
            case SyncTrigger.OWN_SYNC | SyncTrigger.SYNC | SyncTrigger.REQUEST:
                self.stage += 1
                self._requests = self._requests + 1 if heard is SyncTrigger.REQUEST else 0
                self._silent += 1
                if heard is SyncTrigger.OWN_SYNC:
                    self._own_ms, self._silent = now_ms, 0
        leaves_turn = self.gives_way and self._silent < measured.others
        is_polite = leaves_turn or self.stage % LISTENS == 0
        share = POLITE_SHARE if is_polite else DEAD_SHARE
        quiet_ms = share * stage_ms(measured, self.stage, self._interval_ms)
        if heard is SyncTrigger.OWN_SYNC:
            quiet_ms *= STRANGER_SHARE
        self._plan(now_ms + round(quiet_ms) + feedback_ms(measured, self._random()))

    @property
    def is_long(self) -> bool:
        """True if several syncs passed since the last news, so that comparing logs is useful."""
        return self.stage >= LONG_STAGE

    def prompt(self, now_ms: int) -> None:
        """Note that a participant lacks messages that a sync of ours would name. Speak soon, at the
        same stage."""
        if not self._interval_ms or self.due_ms is None or not self._prompts.take(now_ms):
            return
        soon_ms = acknowledge_ms(self._observations.measured(), self._random())
        self._plan(min(self.due_ms, now_ms + soon_ms))
