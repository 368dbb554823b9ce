"""The Lamport clock of a channel (LIP 109, Participant state and Send Message)."""


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
