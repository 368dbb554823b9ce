"""Parts of a view, such as participants, messages, gaps and services, with times of changes.

All times are milliseconds since 1970, by the clock of the participant that noted them.
"""

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

EXACT: Final = 8
"""Number of holders of a message for each of which the exact time is kept. Of further holders, only
one time in `STEP` is kept."""
STEP: Final = 1.5
MAX_DISPATCHES: Final = 32
"""Maximum number of publications that are kept for one message. A message that is repaired without
end has more publications."""


class Dispatch(NamedTuple):
    """Publication of a message, with its time."""

    at_ms: int
    kind: str
    """Reason of the publication, such as `content`, `retry` or `repair` (`seen` if it is
    unknown)."""


@dataclass(slots=True)
class Lane:
    name: str
    since_ms: int
    has_journal: bool = False
    heard_ms: int = 0
    """Time of the last data from the participant."""


@dataclass(slots=True)
class Message:
    number: int
    message_id: str
    lane: int
    at_ms: int
    """Time at which the sender accepted the message, or at which it was first seen."""
    lamport_timestamp: int | None = None
    hint: bytes | None = None
    """Hash under which Store has the message."""
    size_bytes: int = 0
    is_whole: bool = False
    """True if the whole message was seen, False if only its entry in a log was seen."""
    references: int = 0
    parents: tuple[int, ...] = ()
    """Numbers of the messages that this message directly follows."""
    children: list[int] = field(default_factory=list)
    dispatches: list[Dispatch] = field(default_factory=list)
    holders: int = 0
    """Participants that have the message, as bits of a number by lane."""
    count: int = 0
    """Number of participants that have the message."""
    reached: "array[int]" = field(default_factory=lambda: array("q"))
    """Times and numbers of holders, alternating."""
    acknowledged_ms: int | None = None
    acknowledged_how: str = ""
    failed_ms: int | None = None
    failure: str = ""

    def hold(self, lane: int, at_ms: int, others: int) -> bool:
        """Note that a participant has the message. If the time was kept, `hold` returns True."""
        if lane == self.lane or self.holders >> lane & 1:
            return False
        self.holders |= 1 << lane
        self.count += 1
        last = self.reached[-1] if self.reached else 0
        if self.count <= EXACT or self.count >= last * STEP or self.count >= others:
            # Clocks differ: what came later in the reading is not earlier here.
            previous = self.reached[-2] if self.reached else self.at_ms
            self.reached.extend((max(at_ms, previous), self.count))
            return True
        return False

    @property
    def sent_ms(self) -> int | None:
        """Time at which the message was first published."""
        return self.dispatches[0].at_ms if self.dispatches else None


@dataclass(slots=True)
class Gap:
    """Missing message that a participant knows only by reference."""

    number: int
    lane: int
    message_id: str
    sender_id: str | None
    since_ms: int
    hint: bytes | None = None
    until_ms: int | None = None
    is_lost: bool = False
    asked_ms: list[int] = field(default_factory=list)
    """Times at which the participant requested the message from others."""
    referrer: str = ""
    """Name of the sender whose message refers to the missing message."""

    def asked(self, at_ms: int) -> str:
        """Return the sources from which the message is requested at a time, in words. The words
        contain names of participants."""
        store = "Store, by its hint" if self.hint is not None else "Store, by time"
        times = bisect_right(self.asked_ms, at_ms)
        if not times:
            return f"{store}; the others are not asked yet"
        first = f"; {self.sender_id} answers first" if self.sender_id else ""
        often = "once" if times == 1 else f"{times} times"
        return f"{store}; all others, {often}{first}"


class Lamp(Enum):
    """Service of a node whose state is shown. A node has three services whose states are shown."""

    SEND = "send"
    RECEIVE = "receive"
    STORE = "store"


LAMPS: Final = tuple(Lamp)


@dataclass(slots=True)
class Service:
    """Changes of a service's state over time."""

    changes: list[tuple[int, bool, str]] = field(default_factory=list)
    """Time of each change, the state since then (True if the service works), and the reason."""

    def at(self, at_ms: int) -> tuple[bool, str] | None:
        """Return the state of the service at a time, with the reason if it did not work. If the
        state is not known yet, `at` returns None."""
        index = bisect_right(self.changes, at_ms, key=lambda change: change[0])
        return self.changes[index - 1][1:] if index else None


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a view. Beyond a limit the oldest entry is dropped, and `View.forgotten` counts
    it."""

    messages: int = 200_000
    participants: int = 2_000
    """Maximum number of participants that are drawn (messages of further senders are counted)."""
    gaps: int = 20_000
    receptions: int = 500_000
    """Maximum number of arrivals of messages at participants that are kept."""
    seconds: int = 1_000_000
    """Maximum number of seconds of traffic that are kept, which is twelve days."""
    name_characters: int = 120
    parents: int = 4
    children: int = 16
    steps: int = 256
    """Number of steps back in the causal order for which a reference shows that its sender has
    messages."""
    changes: int = 1_000
    """Maximum number of changes that are kept of one service."""
    nodes: int = 64
    """Maximum number of nodes that are kept of one participant."""
