"""Measurements of a self-tuning participant, which are latency, loss of first copies, and group
size.

The measurements do not rely on equal clocks of the participants. Each measured value has a limit,
so that a hostile peer or a changed clock moves it little.
"""

from collections import OrderedDict, deque
from itertools import pairwise
from math import sqrt
from statistics import median
from typing import Final

from ..ids import js_waku_id, reliable_channel_id
from ..message import Message
from .law import MAX_COPIES, Measured, copies, feedback_ms

SCALE_BOUNDS_MS: Final = (50, 3_000)
PRIOR_SCALE_MS: Final = 500
PRIOR_LOSS: Final = 0.15
PRIOR_WEIGHT: Final = 4
"""Weight of the initial values of the estimates, in samples."""
FADE: Final = 1 / 32
"""Weight of a new loss sample after many samples."""
CAUTION: Final = 0.5
SAMPLES: Final = 64
MEASURE_EVERY: Final = 8
UNPROVEN: Final = 4
"""Number of messages of a sender without id proofs, after which the sender counts as unable to give
any."""
ROUND_TRIPS: Final = 16
PLAUSIBLE_SHARE: Final = 0.75
"""Maximum plausible one-way delay, as a share of the measured round trip. A longer one-way delay
means that the clocks of two participants differ."""
CLOCKS_APART_MS: Final = 3_000
"""Difference (ms) between two delays that shows different clocks, or a message from Store."""
REMEMBERED: Final = 2_000
"""Maximum number of senders and of messages that the measurements remember."""
CROWDED: Final = 8
"""Number of syncs in one round that means more participants than were heard. The expected number is
e / (1 - p)."""
CROWD_GROWTH: Final = 2.0
CROWD_FADE: Final = 0.98
MAX_CROWD: Final = 10_000.0
CONGESTION: Final = 0.15
"""Increase of the loss share from which copies are suspected as the cause of the loss."""


class Delays:
    """Latency scale D, which is a typical one-way delay plus twice its deviation."""

    def __init__(self) -> None:
        self.scale_ms: float = PRIOR_SCALE_MS
        self._samples: deque[int] = deque(maxlen=SAMPLES)
        self._round_trips: deque[int] = deque(maxlen=ROUND_TRIPS)
        self._since = 0

    def add(self, delay_ms: int) -> None:
        """Add the time between a message's timestamp and its arrival, by the clocks of both
        participants."""
        self._samples.append(delay_ms)
        self._since += 1
        if self._since >= MEASURE_EVERY or len(self._samples) < MEASURE_EVERY:
            self._measure()

    def add_round_trip(self, took_ms: int) -> None:
        """Add the time (ms) until an own message or an own request was answered."""
        if took_ms > 0:
            self._round_trips.append(took_ms)

    def _measure(self) -> None:
        self._since = 0
        trips = sorted(self._round_trips)
        trip_ms = trips[len(trips) // 4] if trips else None
        max_ms = SCALE_BOUNDS_MS[1] if trip_ms is None else PLAUSIBLE_SHARE * trip_ms
        samples = self._of_one_clock(max_ms)
        middle = median(samples)
        deviation = median(abs(sample - middle) for sample in samples)
        if not 0 <= middle <= max_ms:
            # The clocks disagree. Delays that vary as much as these start near nothing.
            middle = 2 * deviation if trip_ms is None else trip_ms / 2
        measured = middle + 2 * deviation
        count = len(samples)
        mixed = (measured * count + PRIOR_SCALE_MS * PRIOR_WEIGHT) / (count + PRIOR_WEIGHT)
        if count >= SAMPLES // 2:
            mixed = measured
        min_ms, max_scale_ms = SCALE_BOUNDS_MS
        self.scale_ms = min(max(mixed, min_ms), max_scale_ms)

    def _of_one_clock(self, max_ms: float) -> list[int]:
        """The delays of senders whose clocks agree with each other, and with the own one if some
        do; what came from Store or was stamped by another clock is far from them."""
        ordered = sorted(self._samples)
        groups = [ordered[:1]]
        for before, after in pairwise(ordered):
            if after - before > CLOCKS_APART_MS:
                groups.append([])
            groups[-1].append(after)
        plausible = [
            group
            for group in groups
            if len(group) >= MEASURE_EVERY and 0 <= median(group) <= max_ms
        ]
        return max(plausible or groups, key=len)


class Losses:
    """Share of messages of which the first copy did not arrive.

    An id by LIP 173 is a hash over the timestamp of the first copy. The id therefore proves that a
    received copy is the first copy. Clocks and the number of copies do not change the estimate.
    Senders whose ids prove nothing, such as js-waku, are not counted.
    """

    def __init__(self) -> None:
        self.share = PRIOR_LOSS
        self.samples = 0
        self._unproven: OrderedDict[str, int] = OrderedDict()
        """How many messages of a sender proved nothing, while none ever did; 0 once one has."""

    @property
    def cautious(self) -> float:
        """Loss share minus half of its possible error, because an unnecessary copy costs less than
        a loss."""
        return self.share + CAUTION * sqrt(self.share * (1 - self.share) * FADE)

    def arrived(self, message: Message, sent_at_ns: int | None, *, is_late: bool) -> None:
        """Note the first arrival of a message. `is_late` is True if the message was missing
        before."""
        if sent_at_ns is None or message.content is None:
            return
        sender_id = message.sender_id
        is_first = message.message_id == reliable_channel_id(sender_id, sent_at_ns, message.content)
        unproven = self._unproven.get(sender_id)
        if is_first:
            self._unproven[sender_id] = 0
        elif unproven != 0:
            self._unproven[sender_id] = unproven = (unproven or 0) + 1
            if unproven > UNPROVEN or js_waku_id(sender_id, 0, message.content) == (
                message.message_id
            ):
                return
        if len(self._unproven) > REMEMBERED:
            self._unproven.popitem(last=False)
        self.samples += 1
        weight = max(FADE, 1 / (self.samples + PRIOR_WEIGHT))
        self.share += weight * ((is_late or not is_first) - self.share)


class Crowd:
    """Factor by which the group is assumed larger than the participants that were heard. The factor
    grows while too many participants speak in one round, and then decays."""

    def __init__(self) -> None:
        self.factor = 1.0
        self._round: set[str] = set()
        self._round_ends_ms = 0

    def sync_heard(self, sender_id: str, now_ms: int, round_ms: float) -> None:
        if not self._round_ends_ms - 10 * round_ms <= now_ms < self._round_ends_ms:
            if len(self._round) <= CROWDED // 2:
                self.factor = max(1.0, self.factor * CROWD_FADE)
            self._round.clear()
            self._round_ends_ms = now_ms + round(round_ms)
        self._round.add(sender_id)
        if len(self._round) > CROWDED:
            self.factor = min(self.factor * CROWD_GROWTH, MAX_CROWD)
            self._round.clear()


class CopyGuard:
    """Control of the number of copies of a message. If loss rose after the number of copies did,
    the control sends single copies for a while. The number of copies stays low only if loss then
    falls, because that shows congestion."""

    def __init__(self) -> None:
        self._baseline: float | None = None
        """Loss when the number of copies last rose; None while too little is known."""
        self._tried_with: float | None = None
        """Loss when the trial with single copies began; None outside one."""
        self._next_at = SAMPLES // 2
        """The count of samples at which this is looked at again."""
        self._most = MAX_COPIES

    def copies(self, measured: Measured, samples: int) -> int:
        """Return how many copies of a new message are sent. `samples` is the number of loss samples
        so far."""
        if samples >= self._next_at:
            self._review(measured.loss)
            self._next_at = samples + SAMPLES // 2
        return copies(measured, self._most)

    def _review(self, loss: float) -> None:
        if self._tried_with is not None:
            is_congested = loss < self._tried_with - CONGESTION / 2
            self._most = 2 if is_congested else MAX_COPIES
            self._baseline, self._tried_with = loss, None
        elif self._baseline is not None and loss > self._baseline + CONGESTION:
            self._most, self._tried_with = 1, loss
        else:
            self._most = MAX_COPIES
            self._baseline = loss if self._baseline is None else min(self._baseline, loss)


class Observations:
    """Measurements of a participant, and the estimates from them."""

    def __init__(self) -> None:
        self.delays, self.losses, self.crowd = Delays(), Losses(), Crowd()
        self.heard = 0
        """Other participants heard."""
        self._guard = CopyGuard()
        self._measured_from: tuple[float, ...] = ()
        self._measured = Measured(PRIOR_SCALE_MS, PRIOR_LOSS, 1)

    def measured(self) -> Measured:
        """Return the measurements for the functions of the control law."""
        now = self.delays.scale_ms, self.losses.share, self.heard, self.crowd.factor
        if now != self._measured_from:
            others = max(1, self.heard)
            if others > 1:
                others = round(others * self.crowd.factor)
            loss = self.losses.share if others == 1 else self.losses.cautious
            self._measured_from = now
            self._measured = Measured(self.delays.scale_ms, loss, others)
        return self._measured

    def draw_ms(self, uniform: float) -> int:
        """Return the delay (ms) that a message of any participant may have."""
        measured = self.measured()
        return 1 if measured.others == 1 else 1 + feedback_ms(measured, uniform)

    def copies(self) -> int:
        """Return how many copies of a new message are sent."""
        return self._guard.copies(self.measured(), self.losses.samples)
