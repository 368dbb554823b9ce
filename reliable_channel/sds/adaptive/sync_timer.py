"""Timer for the sync messages of a self-tuning participant.

A sync is sent soon after a new message, unless another participant syncs first. The interval
doubles with each sync sent or heard, up to the interval of the specification. Only a new message
resets the interval. Few rounds of about e syncs each thus happen between two messages, in a group
of any size (`law.py`). Until another participant is heard, the intervals are those of the preset
`documented`.
"""

from dataclasses import replace
from typing import Final
from zlib import crc32

from ..agenda import Agenda
from ..pacing import Bucket
from ..sync import Random, SuppressedSchedule, SyncTimer, SyncTrigger
from .estimates import Observations
from .law import acknowledge_ms, feedback_ms, stage_ms

DEAD_SHARE: Final = 0.9
"""Share of an interval, at its start, in which the participant sends no sync."""
POLITE_SHARE: Final = 1.2
"""Longer share of an interval, in which the participant leaves the turn to others. Without this
share, participants with the interval of the specification would never send first. The participant
takes a turn again after as many syncs as there are other participants."""
LISTENS: Final = 10
"""Number of syncs of which one lets all hearers leave a turn to participants not heard yet."""
JOINING: Final = 1_000
"""Number of participants that a newcomer assumes, because it has heard no other participant."""
LONG_STAGE: Final = 2
PROMPTS: Final = 5
PROMPTS_EVERY_MS: Final = 3_000
"""Interval (ms) in which one more sync may be sent because a participant lacks messages."""
STRANGER_SHARE: Final = 2
"""Factor for the wait after an own sync, so that another participant sends the next sync."""
PATIENCE: Final = 10
"""Maximum number of requests by others in a row that delay a sync."""


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
        self._all_listen = False
        """True if all hearers of the last sync leave a turn to participants not heard yet."""
        self._interval_ms = interval_ms
        self._observations = observations
        self._random = random
        self._documented = SuppressedSchedule(interval_ms, random)
        self._requests = 0
        """Requests since news, or since a sync that was no request."""
        self._silent = 0
        """Syncs heard since the last own message."""
        self._prompts = Bucket(PROMPTS, PROMPTS_EVERY_MS)

    def sync_heard(self, message_id: str) -> None:
        """Note that a sync arrived, before its call of `restart`."""
        # All hearers know the id. The stages differ, so a count of syncs would not be a shared one.
        self._all_listen = crc32(message_id.encode()) % LISTENS == 0

    def restart(self, heard: SyncTrigger, now_ms: int) -> None:
        """Start the wait for a sync again, after a sent or received message."""
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
                self._silent = 0 if heard is SyncTrigger.OWN_SYNC else self._silent + 1
        if not self._observations.heard:  # there may be nobody to acknowledge anything
            self._plan(now_ms + self._backed_off_ms(self._documented, heard, now_ms))
            return
        leaves_turn = self.gives_way and self._silent < measured.others
        is_polite = leaves_turn or (self._all_listen and self.stage >= LISTENS)
        share = POLITE_SHARE if is_polite else DEAD_SHARE
        quiet_ms = share * stage_ms(measured, self.stage, self._interval_ms)
        if heard is SyncTrigger.OWN_SYNC:
            self._own_ms = now_ms
            quiet_ms *= STRANGER_SHARE
        self._plan(now_ms + round(quiet_ms) + feedback_ms(measured, self._random()))

    @property
    def is_long(self) -> bool:
        """True if several syncs were heard since the last new message, so that comparing logs is
        useful."""
        return self.stage >= LONG_STAGE

    def prompt(self, now_ms: int) -> None:
        """Note that a participant lacks messages that an own sync would name. Send a sync soon,
        without a change of the interval."""
        if not self._interval_ms or self.due_ms is None or not self._prompts.take(now_ms):
            return
        soon_ms = acknowledge_ms(self._observations.measured(), self._random())
        self._plan(min(self.due_ms, now_ms + soon_ms))
