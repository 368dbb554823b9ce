"""The events of a node of a group on NDN, besides those of its state machine."""

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
    """A publication was fetched. The publications of one node and bootstrap time arrive in order,
    each of them once."""

    name: Name
    bootstrap_time: int
    seq: int
    content: bytes


@dataclass(frozen=True, slots=True)
class PublicationUnavailable:
    """No member had a publication for `give_up_after_ms`. The next ones are delivered without
    it."""

    name: Name
    bootstrap_time: int
    seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class PublicationEvicted:
    """An own publication made room for newer ones and can no longer be fetched."""

    bootstrap_time: int
    seq: int


@dataclass(frozen=True, slots=True)
class ForwarderConnected:
    """The forwarder is there, and the prefixes of this node are registered."""


@dataclass(frozen=True, slots=True)
class ForwarderLost:
    """The forwarder is away. The node keeps trying to reach it."""

    reason: str


@dataclass(frozen=True, slots=True)
class PacketRefused:
    """Something arrived that is no packet, or that is not signed as the group's trust demands."""

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
