"""Control law of a self-tuning channel, as pure functions of the measurements.

D is the latency scale, which is the usual time until a message arrives, plus its variation. p is
the share of first copies that are lost. N is the number of other participants. `estimates.py`
measures D, p and N, and `tuner.py` applies the results of this module. All times are in
milliseconds.
"""

import math
from dataclasses import dataclass
from typing import Final

from ..repair import buffers

LEFT_OVER: Final = 0.15
"""Mean number of participants that may lack a message after its last copy (N * p ** copies)."""
LEFT_OVER_OF_PAIR: Final = 0.3
"""Mean number of lacking participants in a channel of two, where a repetition costs as much as an
answer."""
MAX_COPIES: Final = 6
"""Maximum number of copies of a message. More copies help little against loss, and add to
congestion."""
MIN_LOSS: Final = 0.001
ANSWER_SHARE: Final = 0.2
"""Minimum wait of a sync after a new message, in units of D."""
RETRY_SCALES: Final = 4.5
"""Wait for an acknowledgement after the last copy, in units of D."""
RETRY_SCALES_OF_PAIR: Final = 2.0
EQUAL_RETRIES: Final = 3
"""Number of retries with equal waits. The wait before each later retry is multiplied by
`GROWTH`."""
GROWTH: Final = 1.5
REQUEST_AGAIN_SCALES: Final = 2.2
"""Time from a request until it is repeated, in units of D."""
FIRST_STAGE_MS: Final = 2_000
"""Interval (ms) between two syncs after a new message. The interval doubles with each sync, up to
the interval of the specification."""
FIRST_STAGE_OF_PAIR_MS: Final = 5_000
"""Interval (ms) between two syncs if there is one other participant. After the acknowledgement of
that participant, no participant lacks the message. In a group without loss such a long interval
would delay a newcomer by seconds. Root hashes travel with the second sync after a new message."""
GROUPS_FROM: Final = 1_000
"""Minimum number of participants for which there are two response groups."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Measured values of the network, as one participant sees it."""

    scale_ms: float
    """Latency scale D of the channel (ms), which is a typical delay plus its variation."""
    loss: float
    """Share p of first copies that are lost, from 0 to 1."""
    others: int
    """Number N of other participants, at least 1."""


def copies(measured: Measured, most: int = MAX_COPIES) -> int:
    """Return how many copies of a new message are sent, the first transmission included."""
    loss = min(max(measured.loss, MIN_LOSS), 0.9)
    left_over = LEFT_OVER if measured.others > 1 else LEFT_OVER_OF_PAIR
    wanted = math.ceil(math.log(left_over / measured.others) / math.log(loss) - 1e-9)
    return max(1, min(most, wanted))


def retry_ms(measured: Measured, attempts: int, copies_sent: int, longest_ms: int) -> int:
    """Return the time (ms) from the last transmission of an unacknowledged message to the next."""
    if measured.others == 1:
        first_ms = (copies_sent - 1 + RETRY_SCALES_OF_PAIR) * measured.scale_ms
    else:
        first_ms = (copies_sent - 1 + RETRY_SCALES) * measured.scale_ms
    grown_ms = first_ms * GROWTH ** min(max(0, attempts - EQUAL_RETRIES), 64)
    return max(1, min(round(grown_ms), longest_ms))


def request_bounds(measured: Measured, copies_sent: int) -> tuple[int, int]:
    """Return the earliest and latest time (T_min, T_max) of a first repair request. T_min lies
    after the copies of a message, and T_max grows with the number of participants.

    DIVERGES: LIP 109 has a T_min of 30 s and more, and so have js-waku and nim-sds.
    """
    min_ms = max(0.7, 0.8 * (copies_sent - 1)) * measured.scale_ms
    lacking = measured.others * measured.loss**copies_sent
    return round(min_ms), round(min_ms + measured.scale_ms * (1 + lacking))


def request_again_ms(measured: Measured, attempts: int, longest_ms: int) -> int:
    """Return the time (ms) from a repair request until the next request for the same message."""
    again_ms = REQUEST_AGAIN_SCALES * measured.scale_ms * GROWTH ** min(max(0, attempts - 1), 64)
    return min(round(again_ms), longest_ms)


def response_groups(measured: Measured) -> int:
    """Return the number of response groups. One group answers a repair request. In large groups the
    result is the number that SDS-R defines."""
    size = measured.others + 1
    return buffers.response_groups(size) if size > GROUPS_FROM else 1


def answer_span_ms(measured: Measured) -> int:
    """Return the time (ms) over which answers are spread, with one D for each possible answer."""
    return max(1, round(measured.scale_ms * measured.others / response_groups(measured)))


def feedback_ms(measured: Measured, uniform: float) -> int:
    """Return a random delay by which about e participants speak before they hear the first speaker.

    The delay is drawn from the exponential feedback timer of Nonnenmacher and Biersack. The density
    grows by the factor e in each D, and the first of N participants speaks after about D.
    """
    span = 1 + math.log(measured.others)
    return round(measured.scale_ms * math.log1p(uniform * math.expm1(span)))


def acknowledge_ms(measured: Measured, uniform: float) -> int:
    """Return the time (ms) after a new message until a sync, unless another participant syncs
    first."""
    min_ms = ANSWER_SHARE * measured.scale_ms
    if measured.others == 1:
        return max(1, round(min_ms))
    return max(1, round(min_ms) + feedback_ms(measured, uniform))


def stage_ms(measured: Measured, stage: int, longest_ms: int) -> int:
    """Return the interval (ms) until the next sync, for a number of syncs since the last new
    message."""
    first_ms = FIRST_STAGE_MS if measured.others > 1 else FIRST_STAGE_OF_PAIR_MS
    return min(first_ms << min(max(0, stage - 1), 32), longest_ms)
