"""Events that a light client reports to `on_event`."""

from __future__ import annotations

from dataclasses import dataclass

from waku.libp2p import PeerId

from .protocols import Role

__all__ = [
    "ClientEvent",
    "MessageDropped",
    "PeerBehind",
    "PeerConnected",
    "PeerDeaf",
    "PeerLost",
    "PeerPaused",
    "PushRefused",
    "SearchFailed",
    "SubscriptionInterrupted",
    "SubscriptionRenewed",
    "SurroundingsChanged",
    "TooFewPeers",
]


@dataclass(frozen=True, slots=True)
class PeerConnected:
    """A service peer of the right network answers."""

    peer_id: PeerId
    agent: str


@dataclass(frozen=True, slots=True)
class PeerLost:
    """A service peer is gone, could not be reached, or does not fit. Another replaces it."""

    reason: str
    peer_id: PeerId | None = None
    """None where an address was dialled that names no peer."""


@dataclass(frozen=True, slots=True)
class PeerPaused:
    """A peer refused a request. It is asked for this again after a pause."""

    peer_id: PeerId | None
    role: Role
    pause_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class PeerDeaf:
    """A peer answers and pushes nothing on a shard, not even own messages. Until it does, other
    peers are asked first for filter and Store, and one more is looked for."""

    peer_id: PeerId | None
    pubsub_topic: str
    reason: str


@dataclass(frozen=True, slots=True)
class PeerBehind:
    """A relay peer takes messages too slowly: its queue is full, and what comes now is not sent to
    it. Once for each time that the queue fills up. Other peers may bring it the messages."""

    peer_id: PeerId


@dataclass(frozen=True, slots=True)
class PushRefused:
    """A peer pushed a message that cannot be read, or is longer than the network's limit. Store may
    have it. At the twentieth, the peer's connection is closed."""

    peer_id: PeerId
    reason: str


@dataclass(frozen=True, slots=True)
class SearchFailed:
    """A list of nodes or a peer that was asked for others gave nothing that can be used."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class TooFewPeers:
    """Fewer peers than wanted offer a service, and no other is known that may."""

    role: Role
    connected: int
    wanted: int


@dataclass(frozen=True, slots=True)
class SubscriptionInterrupted:
    """No peer pushes this subscription's messages at the moment."""

    pubsub_topic: str
    content_topics: frozenset[str]
    reason: str


@dataclass(frozen=True, slots=True)
class SubscriptionRenewed:
    """Messages are pushed again. Ask Store for those in between."""

    pubsub_topic: str
    content_topics: frozenset[str]
    reason: str


@dataclass(frozen=True, slots=True)
class SurroundingsChanged:
    """The machine slept or its address changed: connections are checked, messages may be lost."""

    reason: str


@dataclass(frozen=True, slots=True)
class MessageDropped:
    """A subscription's reader is slow: a message was dropped, which Store may still have."""

    pubsub_topic: str
    content_topic: str


ClientEvent = (
    PeerConnected
    | PeerLost
    | PeerDeaf
    | PeerBehind
    | PeerPaused
    | PushRefused
    | SearchFailed
    | TooFewPeers
    | SubscriptionInterrupted
    | SubscriptionRenewed
    | SurroundingsChanged
    | MessageDropped
)
