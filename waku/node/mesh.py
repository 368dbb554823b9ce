"""Passing messages between joined nodes: each message once to each, along any graph of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from waku.node.envelope import Envelope
from waku.node.protocols import RELAY
from waku.node.services import Services

__all__ = ["Link", "Mesh", "PeerInfo", "SeenSet"]

SEEN_TTL_NS: Final = 120 * 1_000_000_000
"""As in nwaku: two minutes after, a message that is published again travels again."""
SEEN_CAPACITY: Final = 200_000
MAX_TEXT: Final = 256
"""Characters of each text by which a node introduces itself."""
MAX_PROTOCOLS: Final = 64
MAX_SHARDS: Final = 1024
"""Of a node's shards, which serve for display alone, no more are noted."""
MAX_TOPICS: Final = 1024
"""A node that follows more pubsub topics is taken to follow all."""


@dataclass(frozen=True, slots=True)
class PeerInfo:
    """What a node reports of itself to nodes it is joined to."""

    peer_id: str
    multiaddr: str
    protocols: tuple[str, ...]
    shards: tuple[int, ...]
    agent: str
    topics: frozenset[str] | None = None
    """The pubsub topics that it follows; None where it names none, or too many."""

    def follows(self, pubsub_topic: str) -> bool:
        """Whether it takes messages of a pubsub topic, as far as it has said."""
        return RELAY in self.protocols and (self.topics is None or pubsub_topic in self.topics)

    def with_topic(self, pubsub_topic: str, *, follows: bool) -> PeerInfo:
        """Return the account with one pubsub topic more or less."""
        if self.topics is None:
            return self
        topics = self.topics | {pubsub_topic} if follows else self.topics - {pubsub_topic}
        return replace(self, topics=topics if len(topics) <= MAX_TOPICS else None)

    def to_json(self) -> dict[str, object]:
        """Return the form that `from_json` reads."""
        return {
            "peerId": self.peer_id,
            "multiaddr": self.multiaddr,
            "protocols": list(self.protocols),
            "shards": list(self.shards),
            "agent": self.agent,
            **({} if self.topics is None else {"topics": sorted(self.topics)}),
        }

    @classmethod
    def from_json(cls, value: object) -> PeerInfo:
        """Read another node's account of itself.

        Raises:
            ValueError: a field is missing or of the wrong type.
        """
        match value:
            case {
                "peerId": str(peer_id),
                "multiaddr": str(multiaddr),
                "protocols": [*protocols],
                "shards": [*shards],
                "agent": str(agent),
                **fields,
            } if peer_id and len(protocols) <= MAX_PROTOCOLS:
                names = tuple(str(protocol) for protocol in protocols)
                if max(map(len, (peer_id, multiaddr, agent, *names))) <= MAX_TEXT:
                    known = tuple(s for s in shards[:MAX_SHARDS] if isinstance(s, int))
                    topics = _topics_of(fields.get("topics"))
                    return cls(peer_id, multiaddr, names, known, agent, topics)
        raise ValueError("not the account of a node")


def _topics_of(value: object) -> frozenset[str] | None:
    """Read the topics that a node follows; nodes that name none are taken to follow all."""
    if not isinstance(value, list) or len(value) > MAX_TOPICS:
        return None
    return frozenset(topic for topic in value if isinstance(topic, str) and len(topic) <= MAX_TEXT)


class Link(Protocol):
    """A way to one other node."""

    @property
    def key(self) -> str:
        """Name of the link, unique at this node."""

    @property
    def info(self) -> PeerInfo | None:
        """The node at the other end; None until it has named itself."""

    @property
    def connected(self) -> bool:
        """Whether the other node answered lately."""

    @property
    def services(self) -> Services:
        """What the other node does for light clients."""

    def follows(self, pubsub_topic: str) -> bool:
        """Whether the other node takes messages of a pubsub topic, as far as known."""

    def send(self, envelope: Envelope) -> None:
        """Hand over a message, now or when the other node is there; never waits."""


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
    """The links of one node, and what it has passed on already.

    Messages go to every link, whether the node there follows their topic or not: it may stand
    between two that do.
    """

    def __init__(self, deliver: Callable[[Envelope], None], now_ns: Callable[[], int]) -> None:
        self.links: dict[str, Link] = {}
        self._deliver = deliver
        self._seen = SeenSet(now_ns)

    def publish(self, envelope: Envelope) -> int:
        """Deliver a message of our own and pass it on; return how many peers follow its topic.

        A repeat is delivered at this node again, as in nwaku, and goes to no other node.
        """
        self._deliver(envelope)
        return self._pass_on(envelope, source=None) if self._seen.add(envelope.hash) else 0

    def receive(self, envelope: Envelope, source: str) -> bool:
        """Take a message from a link: deliver it and pass it on, the first time; return whether it
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
        """Return the connected nodes, by peer id."""
        infos = (link.info for link in self.links.values() if link.connected)
        return {info.peer_id: info for info in infos if info is not None}

    def _pass_on(self, envelope: Envelope, source: str | None) -> int:
        followers = 0
        for link in list(self.links.values()):
            if link.key != source:
                followers += link.connected and link.follows(envelope.pubsub_topic)
                link.send(envelope)
        return followers
