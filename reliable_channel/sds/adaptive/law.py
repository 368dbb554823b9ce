"""The control law of a channel that tunes itself: pure functions of what was measured.

D is the latency scale, how long a message takes to arrive, variation included; p the share of first
copies that are lost; N the number of other participants. `estimates.py` measures them, `tuner.py`
applies what is computed here, and docs/decisions.md has the law on one page, with the argument for
its stability and its literature. All times are milliseconds.
"""

import math
from dataclasses import dataclass
from typing import Final

from ..repair import buffers

LEFT_OVER: Final = 0.15
"""Participants that lack a message after its last copy, in the mean: N * p ** copies."""
LEFT_OVER_OF_PAIR: Final = 0.3
"""The same with one other, where a repetition costs as much as an answer would."""
MAX_COPIES: Final = 6
"""More help little against loss, and add to congestion."""
MIN_LOSS: Final = 0.001
ANSWER_SHARE: Final = 0.2
"""Of D: what a sync waits at least after news, so that one sync covers what comes together."""
RETRY_SCALES: Final = 4.5
"""Of D after the last copy: news, the wait for the first sync, and its way back."""
RETRY_SCALES_OF_PAIR: Final = 2.0
EQUAL_RETRIES: Final = 3
"""Retries at one rate; then the wait grows by `GROWTH`."""
GROWTH: Final = 1.5
REQUEST_AGAIN_SCALES: Final = 2.2
"""Of D, from a request to its repetition: two ways, and the wait before the answer."""
FIRST_STAGE_MS: Final = 2_000
"""Between two syncs after news; doubled with each sync, up to the documented interval."""
FIRST_STAGE_OF_PAIR_MS: Final = 5_000
"""The same with one other: once it has acknowledged, none lacks a message. In a group that loses
nothing as long a wait costs a newcomer seconds, as roots come with the second sync after news."""
GROUPS_FROM: Final = 1_000
"""Fewer participants are one response group."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a participant knows of its network."""

    scale_ms: float
    """D."""
    loss: float
    """p."""
    others: int
    """N, at least 1."""


def copies(measured: Measured, most: int = MAX_COPIES) -> int:
    """How often a new message goes out, the first time included."""
    loss = min(max(measured.loss, MIN_LOSS), 0.9)
    left_over = LEFT_OVER if measured.others > 1 else LEFT_OVER_OF_PAIR
    wanted = math.ceil(math.log(left_over / measured.others) / math.log(loss) - 1e-9)
    return max(1, min(most, wanted))


def retry_ms(measured: Measured, attempts: int, copies_sent: int, longest_ms: int) -> int:
    """How long after its last dispatch an unacknowledged message goes again."""
    if measured.others == 1:
        first_ms = (copies_sent - 1 + RETRY_SCALES_OF_PAIR) * measured.scale_ms
    else:
        first_ms = (copies_sent - 1 + RETRY_SCALES) * measured.scale_ms
    grown_ms = first_ms * GROWTH ** min(max(0, attempts - EQUAL_RETRIES), 64)
    return max(1, min(round(grown_ms), longest_ms))


def request_bounds(measured: Measured, copies_sent: int) -> tuple[int, int]:
    """T_min and T_max of a first request: later than the copies, and the later the more others may
    lack the same message.

    DIVERGES: LIP 109 has a T_min of 30 s and more; js-waku and nim-sds have 30 s.
    """
    min_ms = max(0.7, 0.8 * (copies_sent - 1)) * measured.scale_ms
    lacking = measured.others * measured.loss**copies_sent
    return round(min_ms), round(min_ms + measured.scale_ms * (1 + lacking))


def request_again_ms(measured: Measured, attempts: int, longest_ms: int) -> int:
    """How long after a request the next one for the same message goes."""
    again_ms = REQUEST_AGAIN_SCALES * measured.scale_ms * GROWTH ** min(max(0, attempts - 1), 64)
    return min(round(again_ms), longest_ms)


def response_groups(measured: Measured) -> int:
    """Groups of participants of which one answers a request: as many as SDS-R says, in groups that
    are large enough to need them."""
    size = measured.others + 1
    return buffers.response_groups(size) if size > GROUPS_FROM else 1


def answer_span_ms(measured: Measured) -> int:
    """The span over which answers are spread: one D for each participant that may answer."""
    return max(1, round(measured.scale_ms * measured.others / response_groups(measured)))


def feedback_ms(measured: Measured, uniform: float) -> int:
    """A draw of when to speak, so that about e of all speak before they hear the first.

    The exponential feedback timer of Nonnenmacher and Biersack: the density grows by e in each D,
    and the first of N speaks after about one D.
    """
    span = 1 + math.log(measured.others)
    return round(measured.scale_ms * math.log1p(uniform * math.expm1(span)))


def acknowledge_ms(measured: Measured, uniform: float) -> int:
    """How long after news a sync follows, unless another one comes first."""
    min_ms = ANSWER_SHARE * measured.scale_ms
    if measured.others == 1:
        return max(1, round(min_ms))
    return max(1, round(min_ms) + feedback_ms(measured, uniform))


def stage_ms(measured: Measured, stage: int, longest_ms: int) -> int:
    """The interval after a number of syncs since the last news."""
    first_ms = FIRST_STAGE_MS if measured.others > 1 else FIRST_STAGE_OF_PAIR_MS
    return min(first_ms << min(max(0, stage - 1), 32), longest_ms)
