"""Explanation of a message's delay, as facts and as one sentence.

`ReliableChannel.explain` makes an `Explanation` from a channel's events, and `watch` from journals.
The sentence is made in this module, so that a channel and `watch` give the same sentence.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Final, NamedTuple

__all__ = ["Dispatch", "Explanation", "RequestSeen", "StoreSearch", "Way"]

LATE_MS: Final = 1_000
"""Waiting time at the sender (ms) from which the sender counts as the cause of a delay."""
WAITED_MS: Final = 100
"""Waiting time for other messages (ms) from which they count as the cause of a delay."""
MAX_NAMED: Final = 3
"""Maximum number of messages that the sentence names. For more messages, the sentence gives their
number."""
SHORT_ID: Final = 8
"""Number of characters of an id in the sentence."""


class Way(Enum):
    """Path by which a message arrived."""

    FIRST_COPY = "first_copy"
    """First transmission of the message, which the id proves."""
    EXTRA_COPY = "extra_copy"
    """Later copy of the message with the same bytes, without an observed request."""
    REPAIR = "repair"
    """Later copy of the message, after a repair request. A copy after a repair request does not
    name the participant that sent it."""
    STORE = "store"
    RECONCILIATION = "reconciliation"
    """Broadcast of another participant that repairs a difference between logs."""
    LIVE = "live"
    """Message from the network, whose id does not show which copy arrived."""


class RequestSeen(NamedTuple):
    """Repair request for the message, as this participant saw it."""

    at_ms: int
    participant_id: str


class StoreSearch(NamedTuple):
    """Query to Store for the message."""

    at_ms: int
    """Time of the answer to the query, or of its failure."""
    by: str
    """Kind of the query, `hint` or `time`."""
    took_ms: int
    outcome: str
    """Result of the query, out of `found`, `not found` and `failed`."""


class Dispatch(NamedTuple):
    """Attempt in which the transport accepted an own message."""

    at_ms: int
    kind: str
    """Kind of the attempt, out of `content`, `copy`, `retry` and `repair`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """History of one message at one participant. All times except `sent_ms` are by this
    participant's clock."""

    message_id: str
    participant_id: str
    """Id of the participant that recorded the history."""
    at_ms: int
    """Time of the request for an explanation."""
    sender_id: str | None = None
    sent_ms: int | None = None
    """Time of sending, by the sender's clock."""
    noticed_ms: int | None = None
    """Time at which another message first referred to this missing message."""
    noticed_through: str = ""
    """Id of the message that first referred to this message."""
    noticed_from: str = ""
    """Sender of the message that first referred to this message."""
    requests: tuple[RequestSeen, ...] = ()
    """Repair requests for the message, own and heard (the oldest 16)."""
    searches: tuple[StoreSearch, ...] = ()
    """Queries to Store for the message (the oldest 16)."""
    arrived_ms: int | None = None
    way: Way | None = None
    answered_by: str = ""
    """Participant that sent the message to reconcile logs. Answers to repair requests name no
    participant."""
    waited_for: tuple[str, ...] = ()
    """Dependencies that the message waited for after its arrival, if known. Each dependency has an
    id of 8 characters, and its sender if known."""
    logged_ms: int | None = None
    """Time at which the message entered the log."""
    lost_ms: int | None = None
    """Time at which the message was declared lost."""
    dispatches: tuple[Dispatch, ...] = ()
    """Times at which the transport accepted an own message (the oldest 16)."""
    acknowledged_ms: int | None = None
    acknowledged_by: str = ""
    failure: str = ""
    """Reason why an own message will not be sent any more."""
    in_log: bool = False
    """True if the message is in the log at the time of the explanation."""

    @property
    def is_own(self) -> bool:
        """True if this participant sent the message."""
        return self.sender_id == self.participant_id

    @property
    def late_ms(self) -> int | None:
        """Time from sending the message until it entered the log of this participant (ms)."""
        if self.is_own or self.logged_ms is None or self.sent_ms is None:
            return None
        return self.logged_ms - self.sent_ms

    @property
    def sentence(self) -> str:
        """Sentence with the reason for the message's delay, or with the path of the message."""
        return "; ".join(self._own() if self.is_own else self._of_another())

    @property
    def steps(self) -> tuple[tuple[int, str], ...]:
        """Return the steps of the history in order of time (ms since 1970), in words."""
        return tuple(sorted(self._steps()))

    def to_dict(self) -> dict[str, object]:
        """Return the explanation as plain values for JSON."""
        return {
            **asdict(self),
            "way": None if self.way is None else self.way.value,
            "requests": [request._asdict() for request in self.requests],
            "searches": [search._asdict() for search in self.searches],
            "dispatches": [dispatch._asdict() for dispatch in self.dispatches],
            "sentence": self.sentence,
        }

    # -- the sentence ------------------------------------------------------------------------------

    def _own(self) -> Iterator[str]:
        if not self.dispatches:
            yield self.failure or (
                "it was sent before the channel was opened, or too many messages ago"
                if self.sent_ms is None
                else f"no node has taken it for {_seconds(self.at_ms - self.sent_ms)}"
            )
            return
        first_ms, last_ms = self.dispatches[0].at_ms, self.dispatches[-1].at_ms
        sent_ms = first_ms if self.sent_ms is None else self.sent_ms
        if first_ms - sent_ms >= LATE_MS:
            yield f"it waited {_seconds(first_ms - sent_ms)} for a node"
        times = len(self.dispatches)
        yield (
            "it was published once"
            if times == 1
            else (f"it was published {times} times within {_seconds(last_ms - first_ms)}")
        )
        if self.acknowledged_ms is not None:
            took = _seconds(self.acknowledged_ms - first_ms)
            yield f"{self.acknowledged_by} acknowledged it {took} after it was published"
        else:
            waits = f"not acknowledged for {_seconds(self.at_ms - first_ms)}"
            yield self.failure or waits

    def _of_another(self) -> Iterator[str]:
        if self.arrived_ms is None and self.noticed_ms is None:
            yield (
                "it entered the log before the channel was opened, or too many messages ago"
                if self.in_log
                else "it did not arrive, and no message that arrived refers to it"
            )
            return
        if self.arrived_ms is None or self.way not in (Way.FIRST_COPY, Way.LIVE):
            yield (
                "its first copy did not arrive"
                if self.way is Way.EXTRA_COPY
                else ("it did not arrive")
            )
        yield from self._search()
        if self.arrived_ms is not None:
            yield f"{self._arrival()} {self._after(self.arrived_ms)}"
        elif self.lost_ms is not None:
            yield f"it was declared lost {self._after(self.lost_ms)}"
        else:
            yield f"it is still missing {self._after(self.at_ms)}"
        if self.arrived_ms is not None and (self.logged_ms or self.at_ms) - self.arrived_ms >= (
            WAITED_MS
        ):
            waited = _seconds((self.logged_ms or self.at_ms) - self.arrived_ms)
            verb = "waits" if self.logged_ms is None else "waited"
            yield f"it {verb} {waited} for {self._dependencies()}"

    def _search(self) -> Iterator[str]:
        """From when it was known to be missing."""
        if self.noticed_ms is not None:
            through = f", through a message of {self.noticed_from}" if self.noticed_from else ""
            when = "" if self.sent_ms is None else f" {self._after(self.noticed_ms)}"
            yield f"it was noticed as missing{when}{through}"
        if self.requests:
            number, own = len(self.requests), self.participant_id
            by = {each.participant_id for each in self.requests}
            names = "" if by == {own} else f" by {', '.join(sorted(by)[:MAX_NAMED])}"
            requests = "a repair request" if number == 1 else f"{number} repair requests"
            first = "" if number == 1 else " first"
            yield f"{requests}{names},{first} {self._after(self.requests[0].at_ms)}"
        failed = sum(search.outcome == "failed" for search in self.searches)
        if failed:
            yield f"Store failed {_times(failed)}"
        if (asked := len(self.searches) - failed) > 1:
            yield f"Store was searched {_times(asked)}"

    def _arrival(self) -> str:
        match self.way:
            case Way.FIRST_COPY:
                return "its first copy arrived"
            case Way.EXTRA_COPY:
                return "another copy arrived"
            case Way.REPAIR:
                return "a repeated copy arrived"
            case Way.STORE:
                return "Store had it"
            case Way.RECONCILIATION:
                by = self.answered_by or "another participant"
                return f"{by} sent it to repair a difference of the logs,"
            case _:
                return "it arrived"

    def _dependencies(self) -> str:
        names = self.waited_for[:MAX_NAMED]
        more = len(self.waited_for) - len(names)
        named = ", ".join(names) or "messages that it refers to"
        return f"{named} and {more} more" if more else named

    def _after(self, at_ms: int) -> str:
        """How long after it was sent, or after it was noticed where that is all that is known."""
        since_ms = self.noticed_ms if self.sent_ms is None else self.sent_ms
        return f"after {_seconds(at_ms - (at_ms if since_ms is None else since_ms))}"

    # -- the steps ---------------------------------------------------------------------------------

    def _steps(self) -> Iterator[tuple[int, str]]:
        if self.sent_ms is not None:
            yield self.sent_ms, "sent, by the clock of its sender"
        for dispatch in self.dispatches:
            yield dispatch.at_ms, f"published ({dispatch.kind})"
        if self.acknowledged_ms is not None:
            yield self.acknowledged_ms, f"acknowledged by {self.acknowledged_by}"
        if self.noticed_ms is not None:
            through = f"{self.noticed_through[:SHORT_ID]} of {self.noticed_from}"
            yield self.noticed_ms, f"noticed as missing, through {through}"
        for request in self.requests:
            yield request.at_ms, f"requested by {request.participant_id}"
        for search in self.searches:
            took = _seconds(search.took_ms)
            yield search.at_ms, f"Store searched by {search.by} for {took}: {search.outcome}"
        if self.arrived_ms is not None:
            way = "" if self.way is None else f" ({self.way.value.replace('_', ' ')})"
            yield self.arrived_ms, f"arrived{way}"
        if self.lost_ms is not None:
            yield self.lost_ms, "declared lost"
        if self.logged_ms is not None:
            yield self.logged_ms, "entered the log"


def _seconds(duration_ms: int) -> str:
    return f"{duration_ms / 1000:.1f} s"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
