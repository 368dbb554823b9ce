"""Distribution of messages between a node and its peers, each message once to each peer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from waku.node.envelope import Envelope
from waku.node.services import Services

__all__ = ["GOSSIP", "Gossip", "Mesh", "MeshLink", "PeerInfo", "SeenSet"]

GOSSIP: Final = "gossip"
"""Source of messages that came by libp2p's relay."""
SEEN_TTL_NS: Final = 120 * 1_000_000_000
"""Time (ns) after which a repeated message is passed on again, two minutes as in nwaku."""
SEEN_CAPACITY: Final = 200_000


@dataclass(frozen=True, slots=True)
class PeerInfo:
    """Properties of a peer, as the peer reported them."""

    peer_id: str
    multiaddr: str
    """Multiaddress without the peer id, or an empty text if the peer names no address."""
    protocols: tuple[str, ...]
    shards: tuple[int, ...]
    agent: str


class MeshLink(Protocol):
    """Link to one other node, which is a libp2p peer or a node of this process."""

    @property
    def key(self) -> str:
        """Peer id of the other node."""

    @property
    def info(self) -> PeerInfo | None:
        """Properties of the other node, or None until it has answered once."""

    @property
    def connected(self) -> bool:
        """True if there is a connection to the other node."""

    @property
    def services(self) -> Services:
        """Services of the other node for light clients."""

    def follows(self, pubsub_topic: str) -> bool:
        """Return True if the other node accepts messages of a pubsub topic."""

    def send(self, envelope: Envelope) -> None:
        """Send a message to the other node. If gossipsub already sends the message, the call does
        nothing."""


class Gossip(Protocol):
    """Relay by gossipsub, which sends messages to all peers at once."""

    def send(self, envelope: Envelope) -> None:
        """Publish a message now, or when a peer is connected. The call never waits."""


class SeenSet:
    """Set of the messages of the last two minutes, limited in size."""

    def __init__(self, now_ns: Callable[[], int], *, capacity: int = SEEN_CAPACITY) -> None:
        self._now_ns = now_ns
        self._capacity = capacity
        self._seen_at: dict[bytes, int] = {}

    def add(self, message_hash: bytes) -> bool:
        """Add the hash of a message. Return True if the message is new."""
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
    """Links of one node to its peers, and the messages that the node has passed on."""

    def __init__(self, deliver: Callable[[Envelope], None], now_ns: Callable[[], int]) -> None:
        self.links: dict[str, MeshLink] = {}
        self.gossip: Gossip | None = None
        """What passes messages to libp2p peers; None where the node takes no part in relay."""
        self._deliver = deliver
        self._seen = SeenSet(now_ns)

    def publish(self, envelope: Envelope) -> int:
        """Deliver an own message at this node, and send it to the peers. Return the number of peers
        that follow the topic of the message.

        A repeated message is delivered again at this node, as in nwaku. A repeated message is not
        sent to other nodes.
        """
        self._deliver(envelope)
        return self._pass_on(envelope, source=None) if self._seen.add(envelope.hash) else 0

    def receive(self, envelope: Envelope, source: str) -> bool:
        """Receive a message that a peer sent. If the message is new, deliver it, send it to other
        peers and return True."""
        if not self._seen.add(envelope.hash):
            return False
        self._deliver(envelope)
        self._pass_on(envelope, source)
        return True

    def followers(self, pubsub_topic: str) -> int:
        """Return the number of connected peers that follow a pubsub topic."""
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
