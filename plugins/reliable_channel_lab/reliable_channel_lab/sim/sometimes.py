"""Situations that a good choice of seeds reaches, because an unreached situation is not tested.

No situation is removed just to shorten the list.
"""

from collections.abc import Iterable
from typing import Final

from reliable_channel.engine.logged import Logged
from reliable_channel.events import AnyEvent
from reliable_channel.sds import Arrival, Outcome
from reliable_channel.sds.events import MessageAcknowledged, RejectionReason

EVENTS: Final = (
    "delivery_failed",
    "message_forged",
    "message_lost",
    "message_missing",
    "message_possibly_acknowledged",
    "references_dropped",
    "bloom_filter_ignored",
    "repair_requested",
    "repair_request_received",
    "repair_budget_reached",
    "repair_sent",
    "log_differs",
    "log_agrees",
    "payload_dropped",
    "segment_discarded",
    "receive_progress",
    "send_failed",
    "message_stored",
    "rate_limit_reached",
    "transport_degraded",
    "state_degraded",
    "state_recovered",
    "state_rolled_back",
)
"""Names of events that an application receives in some run."""
OUTCOMES: Final = (
    Outcome.PARKED,
    Outcome.DUPLICATE,
    Outcome.OWN,
    Outcome.SYNC,
    Outcome.EPHEMERAL,
    Outcome.UNWANTED,
)
LIVES: Final = ("restarted", "rolled_back", "left")
"""Names of restarts and departures of participants in some run."""
SITUATIONS: Final = frozenset(
    {
        *(f"event: {name}" for name in EVENTS),
        *(f"acknowledged by: {source}" for source in ("causal_history", "bloom_filter")),
        *(f"outcome: {outcome.value}" for outcome in OUTCOMES),
        *(f"rejected: {reason.value}" for reason in RejectionReason),
        *(f"participant: {what}" for what in LIVES),
        "delivered after a message that was given up",
        "full: the incoming buffer",
        "full: the buffer of repair requests",
        "full: the log",
        "the bloom filter rolled over",
    }
)


class Reached:
    """Situations that one run reached."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def add(self, name: str) -> None:
        """Note that the run reached a situation, if the list contains it."""
        if name in SITUATIONS:
            self.names.add(name)

    def event(self, event: AnyEvent | Logged) -> None:
        """Note the situations that an event proves."""
        if isinstance(event, Logged):
            return
        self.add(f"event: {event.wire_name}")
        if isinstance(event, MessageAcknowledged):
            self.add(f"acknowledged by: {event.source.value}")

    def arrival(self, arrival: Arrival) -> None:
        """Note the situation that the result of a received message proves."""
        self.add(f"outcome: {arrival.outcome.value}")
        if arrival.reason is not None:
            self.add(f"rejected: {arrival.reason.value}")

    def full(self, name: str) -> None:
        """Note that the buffer with a name is full."""
        self.add(f"full: {name}")


def never(reached: Iterable[Iterable[str]]) -> list[str]:
    """Return the situations that none of the runs reached."""
    return sorted(SITUATIONS.difference(*reached))
