"""Lamport clock of a channel (LIP 109, Participant state and Send Message).

The core counts time in milliseconds, whatever unit a dialect uses on the wire. One log thus orders
the messages of all dialects, and all participants get the same log.
"""

from typing import Final

SECOND_MS: Final = 1000


class LamportClock:
    """Lamport clock (ms) that is never behind the wall clock of its owner."""

    __slots__ = ("value",)

    def __init__(self, now_ms: int) -> None:
        self.value = now_ms

    def tick(self, now_ms: int) -> int:
        """Return the Lamport timestamp `max(now, value + 1)` of the next own message."""
        self.value = max(now_ms, self.value + 1)
        return self.value

    def merge(self, lamport_timestamp: int) -> None:
        """Adopt the Lamport timestamp of a delivered message if the clock is behind it."""
        self.value = max(self.value, lamport_timestamp)


class SecondsClock(LamportClock):
    """Lamport clock of nim-sds in whole seconds, stored in milliseconds. The clock starts at 0 and
    advances with each received message.

    In a channel with more than one message a second, the clock runs ahead of the time without
    limit.
    """

    __slots__ = ()

    def __init__(self, now_ms: int) -> None:
        super().__init__(0)

    def tick(self, now_ms: int) -> int:
        """Return the Lamport timestamp `max(now, value) + 1` (in seconds) of the next own
        message."""
        self._step(now_ms)
        return self.value

    def merge(self, lamport_timestamp: int) -> None:
        """Advance the clock for a delivered message to `max(lamport_timestamp, value) + 1` (in
        seconds).

        The timestamp may come from a dialect that does not use whole seconds. The clock also
        advances beyond a timestamp that is not a whole second.
        """
        self._step(lamport_timestamp)

    def _step(self, other_ms: int) -> None:
        self.value = (max(other_ms, self.value) // SECOND_MS + 1) * SECOND_MS
