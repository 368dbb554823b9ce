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
    """A service peer is gone, could not be reached, or belongs to another network. Another peer
    replaces the lost peer."""

    reason: str
    peer_id: PeerId | None = None
    """None if the dialled address names no peer."""


@dataclass(frozen=True, slots=True)
class PeerPaused:
    """A peer refused a request. The client repeats the request after a pause."""

    peer_id: PeerId | None
    role: Role
    pause_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class PeerDeaf:
    """A peer answers, but pushes nothing on a shard, not even own messages. Until the peer pushes a
    message, the client prefers other peers for filter and Store, and searches a further peer."""

    peer_id: PeerId | None
    pubsub_topic: str
    reason: str


@dataclass(frozen=True, slots=True)
class PeerBehind:
    """A relay peer reads too slowly: its queue is full, and further messages are not sent to the
    peer. Other peers may send the peer these messages. Emitted once each time the queue fills
    up."""

    peer_id: PeerId


@dataclass(frozen=True, slots=True)
class PushRefused:
    """A peer pushed a message that cannot be read, or is longer than the network's limit. Store may
    have the message. After twenty such messages, the client closes the connection to the peer."""

    peer_id: PeerId
    reason: str


@dataclass(frozen=True, slots=True)
class SearchFailed:
    """A search failed: a list of nodes, or a peer in peer exchange, returned no usable peer."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class TooFewPeers:
    """Fewer peers than wanted offer a service, and the client knows no further candidate."""

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
    """A peer pushes the subscription's messages again. Query Store for messages that were missed
    before."""

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
