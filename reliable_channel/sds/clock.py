"""The Lamport clock of a channel (LIP 109, Participant state and Send Message).

Timestamps are milliseconds everywhere in the core, whichever unit a dialect has on the wire, so
that one log orders the messages of all dialects and all participants end with the same one.
"""

from typing import Final

SECOND_MS: Final = 1000


class LamportClock:
    """A logical clock in milliseconds that starts at, and never falls behind, the time of its
    owner."""

    __slots__ = ("value",)

    def __init__(self, now_ms: int) -> None:
        self.value = now_ms

    def tick(self, now_ms: int) -> int:
        """Step for a message to send: `max(now, value + 1)`."""
        self.value = max(now_ms, self.value + 1)
        return self.value

    def merge(self, lamport_timestamp: int) -> None:
        """Adopt the timestamp of a delivered message where it is ahead."""
        self.value = max(self.value, lamport_timestamp)


class SecondsClock(LamportClock):
    """The clock of nim-sds: whole seconds, still counted in milliseconds, which start at 0 and step
    with each message received, too.

    In a channel with more than one message a second it runs ahead of the time, without end.
    """

    __slots__ = ()

    def __init__(self, now_ms: int) -> None:
        super().__init__(0)

    def tick(self, now_ms: int) -> int:
        """Step for a message to send: `max(now, value) + 1` in seconds."""
        self._step(now_ms)
        return self.value

    def merge(self, lamport_timestamp: int) -> None:
        """Step for a delivered message: `max(lamport_timestamp, value) + 1` in seconds.

        The timestamp may be of the other dialect and no whole second; the step is beyond it all the
        same.
        """
        self._step(lamport_timestamp)

    def _step(self, other_ms: int) -> None:
        self.value = (max(other_ms, self.value) // SECOND_MS + 1) * SECOND_MS
