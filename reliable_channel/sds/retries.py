"""When an unacknowledged own message is sent again: policies, which are pure functions."""

from collections.abc import Callable
from typing import Final

from .value import value

MAX_MS: Final = 60 * 60 * 1000
"""The longest wait of `doubling`."""


@value
class Unacknowledged:
    """What a retry policy knows of a message that was dispatched."""

    attempts: int
    """How often it was dispatched, at least 1."""
    possibly_acknowledged: bool
    """Whether a participant's bloom filter has it."""
    interval_ms: int
    """What the options say: `retry_interval_ms`, or `possibly_acknowledged_retry_interval_ms`."""


RetryPolicy = Callable[[Unacknowledged], int]
"""How many milliseconds after its last dispatch a message goes again, at least 1.

Asked at each dispatch, and again when a participant may have the message. Must be pure: equal
arguments, equal answer.
"""


def fixed(message: Unacknowledged) -> int:
    """What the options say, each time: js-waku's policy, and the default."""
    return message.interval_ms


def doubling(message: Unacknowledged) -> int:
    """Twice as long each time, up to an hour: for participants that are away for long."""
    doublings = min(message.attempts - 1, MAX_MS.bit_length())
    return max(message.interval_ms, min(message.interval_ms << doublings, MAX_MS))
