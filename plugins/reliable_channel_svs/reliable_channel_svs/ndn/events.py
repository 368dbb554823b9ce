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
    """A publication was fetched. Those of one node and bootstrap time come in order, each once."""

    name: Name
    bootstrap_time: int
    seq: int
    content: bytes


@dataclass(frozen=True, slots=True)
class PublicationUnavailable:
    """No member had a publication for `give_up_after_ms`; the next ones are taken without it."""

    name: Name
    bootstrap_time: int
    seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class PublicationEvicted:
    """An own publication made room for newer ones: it cannot be fetched any more."""

    bootstrap_time: int
    seq: int


@dataclass(frozen=True, slots=True)
class ForwarderConnected:
    """The forwarder is there and our prefixes are registered."""


@dataclass(frozen=True, slots=True)
class ForwarderLost:
    """The forwarder is away; it is tried again."""

    reason: str


@dataclass(frozen=True, slots=True)
class PacketRefused:
    """Something arrived that is not a packet, or not signed as the group's trust demands."""

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
