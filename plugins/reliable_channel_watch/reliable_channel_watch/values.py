"""The parts of a view: participants, messages, gaps and services, each with the times of its
changes.

All times are milliseconds since the epoch, by the clock of the participant that noted them.
"""

from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

EXACT: Final = 8
"""For so many holders of a message each time is kept. Beyond it only one time in `STEP` is kept."""
STEP: Final = 1.5
MAX_DISPATCHES: Final = 32
"""The number for one message. A message that is repaired without end has more."""


class Dispatch(NamedTuple):
    """A time at which a message was on the wire."""

    at_ms: int
    kind: str
    """The reason: `content`, `retry` or `repair`, or `seen` where the view knows only that it was
    on the wire."""


@dataclass(slots=True)
class Lane:
    name: str
    since_ms: int
    has_journal: bool = False
    heard_ms: int = 0
    """The time of its last sign in the data."""


@dataclass(slots=True)
class Message:
    number: int
    message_id: str
    lane: int
    at_ms: int
    """The time at which its sender accepted it, or at which it was first seen."""
    lamport_timestamp: int | None = None
    hint: bytes | None = None
    """The message hash under which Store has it."""
    size_bytes: int = 0
    is_whole: bool = False
    """True if the message itself was seen, rather than only its entry in a log."""
    references: int = 0
    parents: tuple[int, ...] = ()
    """The numbers of the messages that it directly follows."""
    children: list[int] = field(default_factory=list)
    dispatches: list[Dispatch] = field(default_factory=list)
    holders: int = 0
    """A bit for each lane."""
    count: int = 0
    """The number of bits that are set."""
    reached: "array[int]" = field(default_factory=lambda: array("q"))
    """Times and numbers of holders, alternating."""
    acknowledged_ms: int | None = None
    acknowledged_how: str = ""
    failed_ms: int | None = None
    failure: str = ""

    def hold(self, lane: int, at_ms: int, others: int) -> bool:
        """Note that a participant has it. Return True if the time was kept."""
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
        """The time at which it was first on the wire."""
        return self.dispatches[0].at_ms if self.dispatches else None


@dataclass(slots=True)
class Gap:
    """A message that a participant knows only by reference."""

    number: int
    lane: int
    message_id: str
    sender_id: str | None
    since_ms: int
    hint: bytes | None = None
    until_ms: int | None = None
    is_lost: bool = False
    asked_ms: list[int] = field(default_factory=list)
    """The time at which the participant asked the others for it."""
    referrer: str = ""
    """The sender of the message that refers to it."""

    def asked(self, at_ms: int) -> str:
        """Return in words where it is requested at that time. The names are those of
        participants."""
        store = "Store, by its hint" if self.hint is not None else "Store, by time"
        times = bisect_right(self.asked_ms, at_ms)
        if not times:
            return f"{store}; the others are not asked yet"
        first = f"; {self.sender_id} answers first" if self.sender_id else ""
        often = "once" if times == 1 else f"{times} times"
        return f"{store}; all others, {often}{first}"


class Lamp(Enum):
    """A service of a node. There are three."""

    SEND = "send"
    RECEIVE = "receive"
    STORE = "store"


LAMPS: Final = tuple(Lamp)


@dataclass(slots=True)
class Service:
    """The times at which a service worked."""

    changes: list[tuple[int, bool, str]] = field(default_factory=list)
    """The time, whether it works since then, and the reason why not."""

    def at(self, at_ms: int) -> tuple[bool, str] | None:
        """Return True if it worked at that time, with the reason why not. Return None where nothing
        was known yet."""
        index = bisect_right(self.changes, at_ms, key=lambda change: change[0])
        return self.changes[index - 1][1:] if index else None


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a view. Beyond them the oldest entry is dropped, and `View.forgotten` counts
    it."""

    messages: int = 200_000
    participants: int = 2_000
    """Messages of further senders are counted and not drawn."""
    gaps: int = 20_000
    receptions: int = 500_000
    """The events that are kept for one message at one participant."""
    seconds: int = 1_000_000
    """The seconds of traffic: twelve days."""
    name_characters: int = 120
    parents: int = 4
    children: int = 16
    steps: int = 256
    """The steps back in the causal order within which the view marks messages that a participant
    has beyond its references."""
    changes: int = 1_000
    """The changes that are kept of one service."""
    nodes: int = 64
    """The entries that are kept of one participant."""
