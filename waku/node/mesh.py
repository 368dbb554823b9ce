"""Passing messages on between a node and its peers: each message once to each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from waku.node.envelope import Envelope
from waku.node.services import Services

__all__ = ["GOSSIP", "Gossip", "Mesh", "MeshLink", "PeerInfo", "SeenSet"]

GOSSIP: Final = "gossip"
"""Source of messages that came through libp2p's relay."""
SEEN_TTL_NS: Final = 120 * 1_000_000_000
"""As in nwaku: two minutes after, a message that is published again travels again."""
SEEN_CAPACITY: Final = 200_000


@dataclass(frozen=True, slots=True)
class PeerInfo:
    """Properties of a peer, as it reports them."""

    peer_id: str
    multiaddr: str
    """Without the peer id; empty where it names none."""
    protocols: tuple[str, ...]
    shards: tuple[int, ...]
    agent: str


class MeshLink(Protocol):
    """A way to one other node: a libp2p peer, or a node of this process."""

    @property
    def key(self) -> str:
        """Peer id of the other node."""

    @property
    def info(self) -> PeerInfo | None:
        """The other node; None until it has answered once."""

    @property
    def connected(self) -> bool:
        """True if there is a connection."""

    @property
    def services(self) -> Services:
        """What the other node does for light clients."""

    def follows(self, pubsub_topic: str) -> bool:
        """Return True if the other node takes messages of a pubsub topic."""

    def send(self, envelope: Envelope) -> None:
        """Hand over a message; nothing happens where gossip brings it."""


class Gossip(Protocol):
    """libp2p's relay, which brings messages to all peers at once."""

    def send(self, envelope: Envelope) -> None:
        """Publish a message, now or when a peer is there; never waits."""


class SeenSet:
    """The messages of the last two minutes, bounded."""

    def __init__(self, now_ns: Callable[[], int], *, capacity: int = SEEN_CAPACITY) -> None:
        self._now_ns = now_ns
        self._capacity = capacity
        self._seen_at: dict[bytes, int] = {}

    def add(self, message_hash: bytes) -> bool:
        """Note a message; return whether it is new."""
        now_ns = self._now_ns()
        self._forget(now_ns)
        if message_hash in self._seen_at:
            return False
        self._seen_at[message_hash] = now_ns
        return True

    def _forget(self, now_ns: int) -> None:
        while self._seen_at:
            oldest = next(iter(self._seen_at))
            full = len(self._seen_at) >= self._capacity
            if not full and now_ns - self._seen_at[oldest] < SEEN_TTL_NS:
                return
            del self._seen_at[oldest]


class Mesh:
    """The peers of one node, and what it has passed on already."""

    def __init__(self, deliver: Callable[[Envelope], None], now_ns: Callable[[], int]) -> None:
        self.links: dict[str, MeshLink] = {}
        self.gossip: Gossip | None = None
        """What passes messages to libp2p peers; None where the node takes no part in relay."""
        self._deliver = deliver
        self._seen = SeenSet(now_ns)

    def publish(self, envelope: Envelope) -> int:
        """Deliver a message of our own and pass it on; return how many peers follow its topic.

        A repeat is delivered at this node again, as in nwaku, and goes to no other node.
        """
        self._deliver(envelope)
        return self._pass_on(envelope, source=None) if self._seen.add(envelope.hash) else 0

    def receive(self, envelope: Envelope, source: str) -> bool:
        """Take a message from a peer: deliver it and pass it on, the first time; return whether it
        is that."""
        if not self._seen.add(envelope.hash):
            return False
        self._deliver(envelope)
        self._pass_on(envelope, source)
        return True

    def followers(self, pubsub_topic: str) -> int:
        """Return how many connected peers follow a topic."""
        return sum(link.follows(pubsub_topic) for link in self.links.values() if link.connected)

    def peers(self) -> dict[str, PeerInfo]:
        """Return the connected peers, by peer id."""
        infos = (link.info for link in self.links.values() if link.connected)
        return {info.peer_id: info for info in infos if info is not None}

    def _pass_on(self, envelope: Envelope, source: str | None) -> int:
        followers = self.followers(envelope.pubsub_topic)
        for link in list(self.links.values()):
            if link.key != source:
                link.send(envelope)
        if self.gossip is not None and source != GOSSIP:
            self.gossip.send(envelope)
        return followers
