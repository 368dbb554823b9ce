"""The events of a group that the state machine emits."""

from dataclasses import dataclass
from enum import Enum

from .name import Name


@dataclass(frozen=True, slots=True)
class PublicationsKnown:
    """A node has publications that were not known yet. Fetch the ones that you want."""

    name: Name
    bootstrap_time: int
    first_seq: int
    last_seq: int
    """The sender chooses this number, up to 2^64 - 1. Never loop over all numbers up to it."""


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
    """A member says that this node published something that it did not publish. An earlier run may
    have lost its state, a second process may use the same name, or the member lies."""

    bootstrap_time: int
    claimed_seq: int
    own_seq: int


@dataclass(frozen=True, slots=True)
class Rebootstrapped:
    """Further publications of this node are numbered from 1 under a new bootstrap time."""

    bootstrap_time: int


class Limit(Enum):
    """The limits, by their names in `Limits`."""

    NAMES = "names"
    BOOTSTRAP_TIMES = "bootstrap_times"
    NAME_BYTES = "name_bytes"


@dataclass(frozen=True, slots=True)
class LimitReached:
    """A part of a received vector was left out."""

    limit: Limit
    name: Name


@dataclass(frozen=True, slots=True)
class VectorSplit:
    """This node's vector no longer fits into one packet, and is sent in this many packets."""

    parts: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class EventsDropped:
    """This many older events were lost because the application did not take them in time."""

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
