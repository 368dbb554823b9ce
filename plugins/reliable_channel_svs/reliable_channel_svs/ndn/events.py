"""Events of a node on NDN, in addition to those of its state machine."""

from dataclasses import dataclass

from ..events import (
    EventsDropped,
    LimitReached,
    OwnNameClaimed,
    Rebootstrapped,
    VectorIgnored,
    VectorSplit,
)
from ..name import Name


@dataclass(frozen=True, slots=True)
class PublicationReceived:
    """Event that a publication of another node was fetched. The publications of a node under one
    bootstrap time arrive in order and once."""

    name: Name
    bootstrap_time: int
    seq: int
    content: bytes


@dataclass(frozen=True, slots=True)
class PublicationUnavailable:
    """Event that no member had a publication for `give_up_after_ms`. Later publications are
    delivered without the unavailable publication."""

    name: Name
    bootstrap_time: int
    seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class PublicationEvicted:
    """Event that an own publication was dropped for newer publications and cannot be fetched any
    more."""

    bootstrap_time: int
    seq: int


@dataclass(frozen=True, slots=True)
class ForwarderConnected:
    """Event that the forwarder is connected, and has registered the prefixes of this node."""


@dataclass(frozen=True, slots=True)
class ForwarderLost:
    """Event that the connection to the forwarder is lost. The node tries to connect to the
    forwarder again."""

    reason: str


@dataclass(frozen=True, slots=True)
class PacketRefused:
    """Event that received bytes are no packet, or not signed as the group's trust requires."""

    reason: str


NodeEvent = (
    PublicationReceived
    | PublicationUnavailable
    | PublicationEvicted
    | ForwarderConnected
    | ForwarderLost
    | PacketRefused
    | VectorIgnored
    | OwnNameClaimed
    | Rebootstrapped
    | LimitReached
    | VectorSplit
    | EventsDropped
)
