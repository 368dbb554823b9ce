"""Control law of a self-tuning channel, as pure functions of the measurements.

D is the latency scale: how long a message takes to arrive, variation included. p is the share of
first copies that are lost. N is the number of other participants. `estimates.py` measures them,
`tuner.py` applies the results of this module, and docs/decisions.md explains the law, its stability
and its sources. All times are in milliseconds.
"""

import math
from dataclasses import dataclass
from typing import Final

from ..repair import buffers

LEFT_OVER: Final = 0.15
"""Mean number of participants that may lack a message after its last copy: N * p ** copies."""
LEFT_OVER_OF_PAIR: Final = 0.3
"""Limit with one other participant, where a repetition costs as much as an answer."""
MAX_COPIES: Final = 6
"""Maximum number of copies. More copies help little against loss, and add to congestion."""
MIN_LOSS: Final = 0.001
ANSWER_SHARE: Final = 0.2
"""Minimum wait of a sync after news, in units of D, so that one sync covers news that comes
together."""
RETRY_SCALES: Final = 4.5
"""Time after the last copy, in units of D: the news, the wait for the first sync, and its way
back."""
RETRY_SCALES_OF_PAIR: Final = 2.0
EQUAL_RETRIES: Final = 3
"""Number of retries at one rate. The wait then grows by `GROWTH`."""
GROWTH: Final = 1.5
REQUEST_AGAIN_SCALES: Final = 2.2
"""Time from a request to its repetition, in units of D: two ways, and the wait before the
answer."""
FIRST_STAGE_MS: Final = 2_000
"""Interval between two syncs after news. It doubles with each sync, up to the documented
interval."""
FIRST_STAGE_OF_PAIR_MS: Final = 5_000
"""Interval with one other participant. After its acknowledgement, no participant lacks a message.
In a group without loss such a long interval would cost a newcomer seconds. Roots come with the
second sync after news."""
GROUPS_FROM: Final = 1_000
"""Minimum number of participants of two response groups."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of a participant about its network."""

    scale_ms: float
    """Latency scale D of the channel (ms)."""
    loss: float
    """Share p of lost first copies."""
    others: int
    """Number N of other participants, at least 1."""


def copies(measured: Measured, most: int = MAX_COPIES) -> int:
    """Return how often a new message is sent, including the first time."""
    loss = min(max(measured.loss, MIN_LOSS), 0.9)
    left_over = LEFT_OVER if measured.others > 1 else LEFT_OVER_OF_PAIR
    wanted = math.ceil(math.log(left_over / measured.others) / math.log(loss) - 1e-9)
    return max(1, min(most, wanted))


def retry_ms(measured: Measured, attempts: int, copies_sent: int, longest_ms: int) -> int:
    """Return the time from a message's last dispatch until it is sent again without an
    acknowledgement."""
    if measured.others == 1:
        first_ms = (copies_sent - 1 + RETRY_SCALES_OF_PAIR) * measured.scale_ms
    else:
        first_ms = (copies_sent - 1 + RETRY_SCALES) * measured.scale_ms
    grown_ms = first_ms * GROWTH ** min(max(0, attempts - EQUAL_RETRIES), 64)
    return max(1, min(round(grown_ms), longest_ms))


def request_bounds(measured: Measured, copies_sent: int) -> tuple[int, int]:
    """Return T_min and T_max of a first request. They lie after the copies, and later if more
    participants may lack the same message.

    DIVERGES: LIP 109 has a T_min of 30 s and more, and so have js-waku and nim-sds.
    """
    min_ms = max(0.7, 0.8 * (copies_sent - 1)) * measured.scale_ms
    lacking = measured.others * measured.loss**copies_sent
    return round(min_ms), round(min_ms + measured.scale_ms * (1 + lacking))


def request_again_ms(measured: Measured, attempts: int, longest_ms: int) -> int:
    """Return the time from a request until the next one for the same message."""
    again_ms = REQUEST_AGAIN_SCALES * measured.scale_ms * GROWTH ** min(max(0, attempts - 1), 64)
    return min(round(again_ms), longest_ms)


def response_groups(measured: Measured) -> int:
    """Return the number of response groups, of which one answers a request. In groups of sufficient
    size it is the number of SDS-R."""
    size = measured.others + 1
    return buffers.response_groups(size) if size > GROUPS_FROM else 1


def answer_span_ms(measured: Measured) -> int:
    """Return the time over which answers are spread: one D for each participant that may answer."""
    return max(1, round(measured.scale_ms * measured.others / response_groups(measured)))


def feedback_ms(measured: Measured, uniform: float) -> int:
    """Return a random delay, chosen so that about e participants speak before they hear the first
    one.

    It is the exponential feedback timer of Nonnenmacher and Biersack. The density grows by e in
    each D, and the first of N speaks after about one D.
    """
    span = 1 + math.log(measured.others)
    return round(measured.scale_ms * math.log1p(uniform * math.expm1(span)))


def acknowledge_ms(measured: Measured, uniform: float) -> int:
    """Return the time after news until a sync, unless another one comes first."""
    min_ms = ANSWER_SHARE * measured.scale_ms
    if measured.others == 1:
        return max(1, round(min_ms))
    return max(1, round(min_ms) + feedback_ms(measured, uniform))


def stage_ms(measured: Measured, stage: int, longest_ms: int) -> int:
    """Return the interval after the given number of syncs since the last news."""
    first_ms = FIRST_STAGE_MS if measured.others > 1 else FIRST_STAGE_OF_PAIR_MS
    return min(first_ms << min(max(0, stage - 1), 32), longest_ms)
