"""Clients of the node, each with its own subscriptions and caches.

nwaku has one set of caches for all callers. This node takes the client's name from the header
`Waku-Client-Id`, so that clients can share a node. Calls without the header share one set of
caches, as in nwaku.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable
from typing import Final, Generic, TypeVar

from waku.node.cache import UnreadMessages
from waku.node.envelope import Envelope

__all__ = ["Client", "Clients", "TopicMap"]

Topic = TypeVar("Topic", bound=Hashable)
Listener = TypeVar("Listener", bound=Hashable)

NS_PER_S: Final = 1_000_000_000


class Client:
    """Client with its node, its unread messages, and the time of its last call."""

    __slots__ = ("client_id", "filter_cache", "last_used_ns", "peer_id", "relay_cache")

    def __init__(self, client_id: str | None, peer_id: str, cache_capacity: int) -> None:
        self.client_id = client_id
        self.peer_id = peer_id
        self.relay_cache = UnreadMessages(cache_capacity)
        self.filter_cache = UnreadMessages(cache_capacity)
        self.last_used_ns = 0

    def push(self, envelope: Envelope) -> None:
        """Keep a message that a filter service pushed, until the client reads it."""
        self.filter_cache.add(envelope.hash, envelope.pubsub_topic, envelope.message)


class TopicMap(Generic[Topic, Listener]):
    """Index of clients by topic, and of topics by client. The time to find a topic's clients
    depends only on their number."""

    def __init__(self) -> None:
        self._clients: dict[Topic, dict[Listener, None]] = {}
        self._topics: dict[Listener, dict[Topic, None]] = {}

    def add(self, topic: Topic, client: Listener) -> bool:
        """Add a topic to a client. Return True if the client did not have the topic."""
        clients = self._clients.setdefault(topic, {})
        if client in clients:
            return False
        clients[client] = None
        self._topics.setdefault(client, {})[topic] = None
        return True

    def remove(self, topic: Topic, client: Listener) -> bool:
        """Remove a topic from a client. Return True if the client had the topic."""
        clients = self._clients.get(topic)
        if clients is None or client not in clients:
            return False
        del clients[client]
        if not clients:
            del self._clients[topic]
        topics = self._topics[client]
        del topics[topic]
        if not topics:
            del self._topics[client]
        return True

    def clients_of(self, topic: Topic) -> Collection[Listener]:
        """Return the clients that listen to a topic."""
        return self._clients.get(topic, {}).keys()

    def topics_of(self, client: Listener) -> Collection[Topic]:
        """Return the topics that a client listens to."""
        return tuple(self._topics.get(client, ()))

    @property
    def topics(self) -> Collection[Topic]:
        """Topics to which at least one client listens."""
        return self._clients.keys()

    @property
    def clients(self) -> Collection[Listener]:
        """Clients that listen to at least one topic."""
        return self._topics.keys()


class Clients:
    """Clients of a node, with the client without a name, and named clients in order of their last
    use.

    A named client that makes no calls for too long is dropped. If there are too many clients, the
    client that was unused for longest is dropped. The node calls `on_drop` for each dropped client.
    """

    def __init__(
        self,
        *,
        peer_id: str,
        cache_capacity: int,
        max_clients: int,
        idle_s: float,
        now_ns: Callable[[], int],
        on_drop: Callable[[Client], None],
    ) -> None:
        self.unnamed: Final = Client(None, peer_id, cache_capacity)
        self._peer_id = peer_id
        self._cache_capacity = cache_capacity
        self._max_clients = max_clients
        self._idle_ns = int(idle_s * NS_PER_S)
        self._now_ns = now_ns
        self._on_drop = on_drop
        self._named: OrderedDict[str, Client] = OrderedDict()

    def __len__(self) -> int:
        return len(self._named)

    def get(self, client_id: str | None) -> Client:
        """Return the client with the given name. If the name is unknown, a new client is made."""
        if client_id is None:
            return self.unnamed
        now_ns = self._now_ns()
        self._drop_idle(now_ns)
        client = self._named.get(client_id)
        if client is None:
            if len(self._named) >= self._max_clients:
                self._drop_oldest()
            client = self._named[client_id] = Client(client_id, self._peer_id, self._cache_capacity)
        else:
            self._named.move_to_end(client_id)
        client.last_used_ns = now_ns
        return client

    def _drop_idle(self, now_ns: int) -> None:
        while self._named:
            oldest = next(iter(self._named.values()))
            if now_ns - oldest.last_used_ns < self._idle_ns:
                return
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, client = self._named.popitem(last=False)
        self._on_drop(client)
