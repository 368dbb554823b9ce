"""When a participant that tunes itself sends its next sync message.

Soon after news, unless another one is first; then at intervals that double with each sync said or
heard, up to the documented one. Only news resets the interval, so between two messages there are
few rounds, of about e syncs each, for any size of the group (`law.py`).
"""

from dataclasses import replace
from typing import Final

from ..agenda import Agenda
from ..pacing import Bucket
from ..sync import Random, SyncTimer, SyncTrigger
from .estimates import Observations
from .law import acknowledge_ms, feedback_ms, stage_ms

DEAD_SHARE: Final = 0.9
"""Of an interval, in which no sync is sent."""
POLITE_SHARE: Final = 1.2
"""The same where others keep to the documented interval, of which they wait that much at most.
They would never have their turn else; nor would this participant, unless it took one after as many
syncs of others as there are others."""
LISTENS: Final = 10
"""After each so many syncs since news all wait as long, for participants not heard yet."""
JOINING: Final = 1_000
"""Participants that a newcomer allows for, as it has heard none."""
LONG_STAGE: Final = 2
PROMPTS: Final = 5
PROMPTS_EVERY_MS: Final = 3_000
"""Syncs that others provoke, by saying that they lack something, are rationed."""
STRANGER_SHARE: Final = 2
"""After an own sync the wait is longer: another participant is to speak next."""
PATIENCE: Final = 10
"""Requests of others in a row that put a sync off."""


class AdaptiveSyncTimer(SyncTimer):
    """The sync timer of a participant that tunes itself."""

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
        """Wait anew after what was heard or said."""
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
        """True if news is some syncs ago, so that logs are worth to be compared."""
        return self.stage >= LONG_STAGE

    def prompt(self, now_ms: int) -> None:
        """A participant lacks what a sync of ours would name: speak soon, at the same stage."""
        if not self._interval_ms or self.due_ms is None or not self._prompts.take(now_ms):
            return
        soon_ms = acknowledge_ms(self._observations.measured(), self._random())
        self._plan(min(self.due_ms, now_ms + soon_ms))
