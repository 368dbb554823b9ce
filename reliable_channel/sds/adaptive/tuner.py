"""Tuner of a channel, which applies the measurements.

The core asks a `Tuner` when to repeat, request, answer and sync, in place of a fixed option.
`law.py` contains the law as pure functions, and docs/decisions.md explains it.
"""

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Final

from ..agenda import Agenda, Slot, Timetable
from ..message import Message, MessageKind
from ..options import RepairOptions, SdsOptions
from ..outgoing import Unacknowledged
from ..pacing import Bucket
from ..repair.buffers import RepairTimers
from ..sync import Random
from . import law
from .estimates import Observations
from .sync_timer import AdaptiveSyncTimer

REMEMBERED: Final = 2_000
"""Maximum number of messages whose last transmission time is remembered."""
HOLD_DOWN_SCALES: Final = 1.5
"""Time after a transmission of a message in which it is not broadcast for others, in units of D."""
LATE_SCALES: Final = 3.0
LATE_SCALES_OF_PAIR: Final = 1.2
"""Time after the last copy of a message, in units of D. A copy that arrives later shows that its
sender lacks an acknowledgement."""
REQUESTED_SCALES: Final = 8
"""Time in which a repeated message counts as the answer to a heard request, in units of D."""
REQUESTS: Final = 8
REQUESTS_EVERY_MS: Final = 2_000
"""Interval (ms) in which one more sync with requests may be sent, because references may be false.
A request that leads to its message does not count."""
FOREIGN_MS: Final = 3_600_000
FOREIGN_MESSAGES: Final = 120
"""Number of messages after another implementation was heard in which own messages also suit it. The
time `FOREIGN_MS` must have passed too, because a clock may be changed."""


class Tuner:
    """Measurements and plans of one self-tuning participant."""

    def __init__(
        self,
        options: SdsOptions,
        timers: RepairTimers,
        random: Random,
        *,
        has_filters: bool,
        agenda: Agenda | None = None,
    ) -> None:
        self.agenda = agenda or Agenda()
        """Where `Slot.COPY` and `Slot.SYNC` are planned."""
        self.observations = Observations()
        self.sync_timer = AdaptiveSyncTimer(
            options.sync_min_interval_ms, self.observations, random, self.agenda
        )
        self.timers = RepairTimers(
            self._t_req, self._t_resp, self._in_response_group, self.again_ms
        )
        self.random = random
        self._options = options
        self._family = timers
        self._has_filters = has_filters
        self._copies = Timetable(partial(self.agenda.plan, Slot.COPY))
        self._copies_left: dict[str, int] = {}
        self._on_air = Times()
        self._first_heard = Times()
        self._requested = Times()
        self._dispatched = Times()
        self._requests = Bucket(REQUESTS, REQUESTS_EVERY_MS)
        self._asked = Times()
        self._foreign_ms: int | None = None
        self._since_foreign = 0
        """Messages made and syncs heard since then."""
        self._long_sync_ms = -options.sync_min_interval_ms

    # -- what is heard -----------------------------------------------------------------------------

    def heard(
        self, message: Message, sent_at_ns: int | None, now_ms: int, participants: int
    ) -> None:
        """Note that a message of another participant arrived, for the first time or again."""
        self.observations.heard = participants
        if sent_at_ns is not None:
            self.observations.delays.add(now_ms - sent_at_ns // 1_000_000)
        if message.bloom_filter:  # a participant that tunes itself sends none
            self._foreign_ms, self._since_foreign = now_ms, 0
        if message.kind is MessageKind.SYNC:
            self._since_foreign += 1
            self.sync_timer.sync_heard(message.message_id)
            round_ms = 2 * self.observations.delays.scale_ms
            self.observations.crowd.sync_heard(message.sender_id, now_ms, round_ms)
        for entry in message.repair_request:
            self._requested.note(entry.message_id, now_ms)

    def arrived(
        self, message: Message, sent_at_ns: int | None, missing_for_ms: int | None, now_ms: int
    ) -> None:
        """Note that a content message arrived for the first time."""
        scale_ms = self.observations.delays.scale_ms
        is_late = missing_for_ms is not None and missing_for_ms > scale_ms / 2
        self.observations.losses.arrived(message, sent_at_ns, is_late=is_late)
        self._on_air.note(message.message_id, now_ms)
        self._first_heard.note(message.message_id, now_ms)
        if self._asked.get(message.message_id) is not None:
            self._requests.give_back(now_ms)

    def came_again(self, message_id: str, now_ms: int) -> bool:
        """Note that a known content message arrived again. Return True if the sender of the message
        wants an acknowledgement."""
        self._on_air.note(message_id, now_ms)
        first_ms = self._first_heard.get(message_id)
        if first_ms is None:
            return False
        scale_ms = self.observations.delays.scale_ms
        if self._requested.is_within(message_id, REQUESTED_SCALES * scale_ms, now_ms):
            return False
        is_pair = self.observations.measured().others == 1
        late_scales = LATE_SCALES_OF_PAIR if is_pair else LATE_SCALES
        return now_ms - first_ms > (self.observations.copies() - 1 + late_scales) * scale_ms

    def acknowledged(self, message_id: str, now_ms: int) -> None:
        """Note that another participant has received an own message."""
        if (dispatched_ms := self._dispatched.get(message_id)) is not None:
            self.observations.delays.add_round_trip(now_ms - dispatched_ms)

    # -- what is sent ------------------------------------------------------------------------------

    def suits_others(self, now_ms: int) -> bool:
        """Return True if the next message has as many references as documented.

        Participants that do not tune themselves need them.
        """
        foreign_ms = self._foreign_ms
        self._since_foreign += 1
        is_recent = foreign_ms is not None and (
            self._since_foreign < FOREIGN_MESSAGES or 0 <= now_ms - foreign_ms < FOREIGN_MS
        )
        self.sync_timer.gives_way = is_recent
        return self._has_filters or is_recent

    def sync_suits_others(self, now_ms: int) -> bool:
        """Return True if the next sync has as many references as documented.

        Beside other participants only one sync in each documented interval has.
        """
        is_spared = 0 <= now_ms - self._long_sync_ms < self._options.sync_min_interval_ms
        if not self.suits_others(now_ms) or (is_spared and not self._has_filters):
            return False
        self._long_sync_ms = now_ms
        return True

    def dispatched(self, message_id: str, now_ms: int) -> None:
        """Note that an own message was sent. Plan the copies of the message if this is its first
        transmission."""
        self._on_air.note(message_id, now_ms)
        if self._dispatched.get(message_id) is not None:
            return
        self._dispatched.note(message_id, now_ms)
        if (left := self.observations.copies() - 1) > 0:
            self._copies_left[message_id] = left
            self._copies.add(message_id, now_ms + self._scale_ms)

    def take_copies(self, now_ms: int) -> Collection[str]:
        """Return own messages of which a copy is due."""
        due = self._copies.until(now_ms, len(self._copies))
        for message_id in due:
            self._copies.remove(message_id)
            self._on_air.note(message_id, now_ms)
            self._copies_left[message_id] -= 1
            if self._copies_left[message_id]:
                self._copies.add(message_id, now_ms + self._scale_ms)
            else:
                del self._copies_left[message_id]
        return due

    def retry_ms(self, message: Unacknowledged) -> int:
        """Return the time of the next retry, by the retry policy of a self-tuning participant.

        A participant that has heard no other one retries three times, and then in documented
        intervals.
        """
        observations = self.observations
        if not observations.heard and message.attempts > law.EQUAL_RETRIES:
            return message.interval_ms
        return law.retry_ms(
            *(observations.measured(), message.attempts),
            *(observations.copies(), message.interval_ms),
        )

    def gives_up(self, message_id: str, now_ms: int) -> bool:
        """Return True if an own message was sent for as long as the documented number of retries
        takes."""
        options = self._options
        first_ms = self._dispatched.get(message_id)
        if first_ms is None:
            self._dispatched.note(message_id, now_ms)
            return False
        return now_ms - first_ms > options.max_retry_attempts * options.retry_interval_ms

    # -- requests and answers ----------------------------------------------------------------------

    def request_pause_ms(self, now_ms: int) -> int:
        """Note that a sync with repair requests is sent. Return the wait (ms) until the next sync
        with requests."""
        self._requests.take(now_ms)
        return max(self._scale_ms // 2, self._requests.wait_ms(now_ms))

    def asked(self, message_ids: Collection[str], now_ms: int) -> None:
        """Note that a message with these repair requests was sent."""
        for message_id in message_ids:
            self._asked.note(message_id, now_ms)

    def is_on_air(self, message_id: str, now_ms: int) -> bool:
        """Return True if a message was broadcast a moment ago, so that no answer is needed."""
        hold_ms = HOLD_DOWN_SCALES * self._scale_ms
        return self._on_air.is_within(message_id, hold_ms, now_ms)

    def answered(self, message_id: str, now_ms: int) -> None:
        """Note that a message was broadcast for other participants."""
        self._on_air.note(message_id, now_ms)

    def _t_req(
        self, participant_id: str, message_id: str, now_ms: int, options: RepairOptions
    ) -> int:
        min_ms, max_ms = law.request_bounds(
            self.observations.measured(), self.observations.copies()
        )
        max_ms = max(1, min(max_ms, options.t_max_ms))
        bounded = replace(options, t_min_ms=min(min_ms, max_ms), t_max_ms=max_ms)
        return self._family.t_req(participant_id, message_id, now_ms, bounded)

    def again_ms(self, attempts: int) -> int:
        """Return the extra delay (ms) of a repeated repair request for a message."""
        return law.request_again_ms(
            self.observations.measured(), attempts, self._options.repair.t_max_ms
        )

    def _t_resp(
        self,
        participant_id: str,
        sender_id: str,
        message_id: str,
        now_ms: int,
        options: RepairOptions,
    ) -> int:
        span_ms = min(law.answer_span_ms(self.observations.measured()), options.t_max_ms)
        bounded = replace(options, t_min_ms=min(options.t_min_ms, span_ms), t_max_ms=span_ms)
        return self._family.t_resp(participant_id, sender_id, message_id, now_ms, bounded)

    def _in_response_group(
        self, participant_id: str, sender_id: str, message_id: str, groups: int
    ) -> bool:
        own_groups = max(groups, law.response_groups(self.observations.measured()))
        return self._family.in_response_group(participant_id, sender_id, message_id, own_groups)

    @property
    def _scale_ms(self) -> int:
        return round(self.observations.delays.scale_ms)


class Times:
    """Time (ms) at which each message last occurred. The oldest entries are evicted."""

    def __init__(self) -> None:
        self._times: OrderedDict[str, int] = OrderedDict()

    def note(self, message_id: str, now_ms: int) -> None:
        self._times[message_id] = now_ms
        self._times.move_to_end(message_id)
        if len(self._times) > REMEMBERED:
            self._times.popitem(last=False)

    def get(self, message_id: str) -> int | None:
        """Return the time at which a message last occurred, or None if it is not remembered."""
        return self._times.get(message_id)

    def is_within(self, message_id: str, span_ms: float, now_ms: int) -> bool:
        """Return True if a message last occurred at most that long ago."""
        at_ms = self._times.get(message_id)
        return at_ms is not None and 0 <= now_ms - at_ms <= span_ms
