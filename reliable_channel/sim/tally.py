"""What repair took in a run: how long messages were missing, and what was asked for them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..sds import Arrival
from ..sds.events import MessageLost, Outgoing, OutgoingKind, RepairRequested, SdsEvent


@dataclass(slots=True)
class RepairTally:
    """Counts of one participant, or of a whole group."""

    waits_ms: list[int] = field(default_factory=list)
    """For how long each message that was missing, and came, was missing."""
    lost: int = 0
    """Missing messages that were given up, for the time being at least."""
    store_queries: int = 0
    """Queries to Store for what was missing."""
    requests: int = 0
    """Messages that asked others."""
    answers: int = 0
    """Messages that were broadcast again for others."""

    def received(self, arrival: Arrival) -> None:
        """A message came."""
        if arrival.missing_for_ms is not None:
            self.waits_ms.append(arrival.missing_for_ms)

    def told(self, event: SdsEvent) -> None:
        """The core told something."""
        self.lost += isinstance(event, MessageLost)
        self.requests += isinstance(event, RepairRequested)

    def published(self, outgoing: Outgoing) -> None:
        """A message went out."""
        self.answers += outgoing.kind is OutgoingKind.REPAIR


def summed(tallies: Iterable[RepairTally]) -> RepairTally:
    """The counts of several."""
    total = RepairTally()
    for tally in tallies:
        total.waits_ms += tally.waits_ms
        total.lost += tally.lost
        total.store_queries += tally.store_queries
        total.requests += tally.requests
        total.answers += tally.answers
    return total
