"""Events that the SVS state machine of a group emits."""

from dataclasses import dataclass
from enum import Enum

from .name import Name


@dataclass(frozen=True, slots=True)
class PublicationsKnown:
    """Event that a node has publications that were unknown until now. The application may fetch the
    new publications that it wants."""

    name: Name
    bootstrap_time: int
    first_seq: int
    last_seq: int
    """Highest known number of the node's publications, chosen by the sender (at most 2^64 - 1). An
    application must not loop over all numbers up to `last_seq`."""


class IgnoredReason(Enum):
    """Reason why a whole state vector was ignored."""

    MALFORMED = "malformed"
    BOOTSTRAP_TIME_AHEAD = "bootstrap_time_ahead"


@dataclass(frozen=True, slots=True)
class VectorIgnored:
    """Event that a whole state vector was ignored, with the reason."""

    reason: IgnoredReason
    detail: str


@dataclass(frozen=True, slots=True)
class OwnNameClaimed:
    """Event that a member names a publication of this node that the node did not make. Causes are
    lost state of an earlier run, a second process with the name, or a dishonest member."""

    bootstrap_time: int
    claimed_seq: int
    own_seq: int


@dataclass(frozen=True, slots=True)
class Rebootstrapped:
    """Event that further publications of this node are numbered from 1 under a new bootstrap
    time."""

    bootstrap_time: int


class Limit(Enum):
    """Limits of the state machine, with the names of the fields in `Limits`."""

    NAMES = "names"
    BOOTSTRAP_TIMES = "bootstrap_times"
    NAME_BYTES = "name_bytes"


@dataclass(frozen=True, slots=True)
class LimitReached:
    """Event that a part of a received state vector was ignored because of a limit."""

    limit: Limit
    name: Name


@dataclass(frozen=True, slots=True)
class VectorSplit:
    """Event that this node's state vector is now sent in several packets, because it is too long
    for one."""

    parts: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class EventsDropped:
    """Event that older events were lost because the application did not take them in time."""

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
