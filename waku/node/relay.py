"""Topics that the node follows, and the clients that subscribed to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import ClassVar

from waku.node.clients import Client, TopicMap
from waku.node.envelope import Envelope

__all__ = ["Relay"]


class Relay:
    """Subscriptions of clients in the relay API (11/WAKU2-RELAY).

    The node follows a pubsub topic while at least one client wants it. A client wants a pubsub
    topic by name, or through a content topic of its shard. The client without a name wants the
    node's own shards from the start, as in nwaku.

    Args:
        unnamed: the client of calls without a name.
        pubsub_topics: what it follows from the start.
        shard_of: the pubsub topic of a content topic, or None (static sharding).
    """

    min_capacity: ClassVar[int] = 0
    """Minimum capacity of a client's cache (messages), whatever the options say."""

    def __init__(
        self,
        unnamed: Client,
        pubsub_topics: Iterable[str],
        shard_of: Callable[[str], str | None],
    ) -> None:
        self._pubsub: TopicMap[str, Client] = TopicMap()
        self._content: TopicMap[str, Client] = TopicMap()
        self._content_shards: Counter[str] = Counter()
        self._shard_of = shard_of
        for topic in pubsub_topics:
            self.subscribe(unnamed, topic)

    @property
    def pubsub_topics(self) -> Collection[str]:
        """Pubsub topics that the node follows."""
        return dict.fromkeys((*self._pubsub.topics, *self._content_shards))

    def follows(self, pubsub_topic: str) -> bool:
        """Return True if the node accepts messages of a pubsub topic."""
        return bool(self._pubsub.clients_of(pubsub_topic)) or pubsub_topic in self._content_shards

    def takes(self, pubsub_topic: str) -> bool:
        """Return True if the node now delivers and stores messages of a pubsub topic."""
        return self.follows(pubsub_topic)

    def subscribe(self, client: Client, pubsub_topic: str) -> None:
        """Start to keep the messages of a pubsub topic for a client."""
        self._pubsub.add(pubsub_topic, client)
        client.relay_cache.subscribe_pubsub(pubsub_topic)

    def unsubscribe(self, client: Client, pubsub_topic: str) -> None:
        """Stop keeping the messages of a pubsub topic for a client. The client's unread messages of
        the topic are deleted."""
        self._pubsub.remove(pubsub_topic, client)
        client.relay_cache.unsubscribe_pubsub(pubsub_topic)

    def subscribe_content(self, client: Client, content_topic: str) -> None:
        """Start to keep the messages of a content topic for a client, and follow its shard."""
        client.relay_cache.subscribe_content(content_topic)
        if self._content.add(content_topic, client):
            shard = self._shard_of(content_topic)
            if shard is not None:
                self._content_shards[shard] += 1

    def unsubscribe_content(self, client: Client, content_topic: str) -> None:
        """Stop keeping the messages of a content topic for a client."""
        client.relay_cache.unsubscribe_content(content_topic)
        if self._content.remove(content_topic, client):
            shard = self._shard_of(content_topic)
            if shard is not None:
                self._content_shards[shard] -= 1
                self._content_shards += Counter()  # forgets what fell to zero

    def drop(self, client: Client) -> None:
        for topic in self._pubsub.topics_of(client):
            self.unsubscribe(client, topic)
        for topic in self._content.topics_of(client):
            self.unsubscribe_content(client, topic)

    def deliver(self, envelope: Envelope) -> None:
        """Put a message into the cache of each client that wants it. The time grows with the number
        of these clients."""
        for client in self._readers(envelope):
            client.relay_cache.add(envelope.hash, envelope.pubsub_topic, envelope.message)

    def _readers(self, envelope: Envelope) -> Iterator[Client]:
        """The clients that want a message, each once."""
        by_pubsub = self._pubsub.clients_of(envelope.pubsub_topic)
        yield from by_pubsub
        for client in self._content.clients_of(envelope.message.content_topic):
            if client not in by_pubsub:
                yield client
