"""Lamport clock of a channel (LIP 109, Participant state and Send Message).

The core uses milliseconds everywhere, whatever the unit of a dialect. One log thus orders the
messages of all dialects, and all participants end with the same log.
"""

from typing import Final

SECOND_MS: Final = 1000


class LamportClock:
    """Logical clock (ms) that never falls behind the time of its owner."""

    __slots__ = ("value",)

    def __init__(self, now_ms: int) -> None:
        self.value = now_ms

    def tick(self, now_ms: int) -> int:
        """Advance for a message to send: `max(now, value + 1)`."""
        self.value = max(now_ms, self.value + 1)
        return self.value

    def merge(self, lamport_timestamp: int) -> None:
        """Adopt the timestamp of a delivered message if it is ahead."""
        self.value = max(self.value, lamport_timestamp)


class SecondsClock(LamportClock):
    """Clock of nim-sds in whole seconds (counted in milliseconds). It starts at 0, and also steps
    with each received message.

    In a channel with more than one message a second it runs ahead of the time, without limit.
    """

    __slots__ = ()

    def __init__(self, now_ms: int) -> None:
        super().__init__(0)

    def tick(self, now_ms: int) -> int:
        """Advance for a message to send: `max(now, value) + 1` in seconds."""
        self._step(now_ms)
        return self.value

    def merge(self, lamport_timestamp: int) -> None:
        """Advance for a delivered message: `max(lamport_timestamp, value) + 1` in seconds.

        The timestamp may belong to the other dialect and be no whole second. The clock still moves
        beyond it.
        """
        self._step(lamport_timestamp)

    def _step(self, other_ms: int) -> None:
        self.value = (max(other_ms, self.value) // SECOND_MS + 1) * SECOND_MS
