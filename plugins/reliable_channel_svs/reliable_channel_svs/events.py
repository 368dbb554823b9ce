"""The events of a group, as the state machine emits them."""

from dataclasses import dataclass
from enum import Enum

from .name import Name


@dataclass(frozen=True, slots=True)
class PublicationsKnown:
    """A node has publications that were not known of yet; fetch those that you want."""

    name: Name
    bootstrap_time: int
    first_seq: int
    last_seq: int
    """Up to 2^64 - 1, as the sender has it: do not count on being able to count them off."""


class IgnoredReason(Enum):
    """Why a state vector was ignored as a whole."""

    MALFORMED = "malformed"
    BOOTSTRAP_TIME_AHEAD = "bootstrap_time_ahead"


@dataclass(frozen=True, slots=True)
class VectorIgnored:
    """A state vector was ignored as a whole."""

    reason: IgnoredReason
    detail: str


@dataclass(frozen=True, slots=True)
class OwnNameClaimed:
    """A member says that we published what we did not: an earlier self whose state was lost, a
    second process under our name, or a liar."""

    bootstrap_time: int
    claimed_seq: int
    own_seq: int


@dataclass(frozen=True, slots=True)
class Rebootstrapped:
    """Our further publications are numbered from 1 under a new bootstrap time."""

    bootstrap_time: int


class Limit(Enum):
    """Limits, by their names in `Limits`."""

    NAMES = "names"
    BOOTSTRAP_TIMES = "bootstrap_times"
    NAME_BYTES = "name_bytes"


@dataclass(frozen=True, slots=True)
class LimitReached:
    """Something of a received vector was left out."""

    limit: Limit
    name: Name


@dataclass(frozen=True, slots=True)
class VectorSplit:
    """Our vector no longer fits into one packet, and goes out in this many."""

    parts: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class EventsDropped:
    """This many older events were not taken in time."""

    count: int


SvsEvent = (
    PublicationsKnown
    | VectorIgnored
    | OwnNameClaimed
    | Rebootstrapped
    | LimitReached
    | VectorSplit
    | EventsDropped
)
