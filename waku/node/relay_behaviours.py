"""Relay subscriptions as nwaku and go-waku treat them, stricter than this node's own rules.

The behaviour was observed on nwaku 0.37.1 and go-waku 0.10.1. `NodeOptions.behave_as` selects a
behaviour, for tests of clients.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from waku.node.clients import Client
from waku.node.envelope import Envelope
from waku.node.options import Behaviour
from waku.node.relay import Relay

__all__ = ["RELAYS"]

KNOWN_TOPICS: Final = 10_000
"""Number of content topics that the node remembers (the newest topics). nwaku has no such limit."""
UNREAD_LIMIT: Final = 1_000
"""Number of unread messages of one subscription at which go-waku stops."""


class NwakuRelay(Relay):
    """Behaviour of nwaku, which follows a shard for all clients together, without counting clients.

    If one content topic is unsubscribed, nwaku leaves its shard, and all clients lose their
    messages. A new subscription to a known content topic does nothing. To follow the shard again,
    unsubscribe from the topic first, or subscribe to a new topic.
    """

    def __init__(
        self,
        unnamed: Client,
        pubsub_topics: Iterable[str],
        shard_of: Callable[[str], str | None],
    ) -> None:
        self._followed: dict[str, None] = {}
        self._known: dict[str, None] = {}
        super().__init__(unnamed, pubsub_topics, shard_of)

    @property
    def pubsub_topics(self) -> Collection[str]:
        """Pubsub topics that the node follows."""
        return self._followed.keys()

    def follows(self, pubsub_topic: str) -> bool:
        """Return True if the node accepts messages of a pubsub topic."""
        return pubsub_topic in self._followed

    def subscribe(self, client: Client, pubsub_topic: str) -> None:
        """Follow a pubsub topic, and start to keep its messages for a client."""
        super().subscribe(client, pubsub_topic)
        self._followed[pubsub_topic] = None

    def unsubscribe(self, client: Client, pubsub_topic: str) -> None:
        """Leave a pubsub topic for all clients."""
        super().unsubscribe(client, pubsub_topic)
        self._followed.pop(pubsub_topic, None)

    def subscribe_content(self, client: Client, content_topic: str) -> None:
        """Start to keep the messages of a content topic for a client. If the topic is new to the
        node, the node follows its shard."""
        super().subscribe_content(client, content_topic)
        shard = self._shard_of(content_topic)
        if shard is None or content_topic in self._known:
            return
        if len(self._known) >= KNOWN_TOPICS:
            del self._known[next(iter(self._known))]
        self._known[content_topic] = None
        self._followed[shard] = None

    def unsubscribe_content(self, client: Client, content_topic: str) -> None:
        """Remove a content topic, and leave its shard for all clients."""
        super().unsubscribe_content(client, content_topic)
        if content_topic in self._known:
            del self._known[content_topic]
            self._followed.pop(self._shard_of(content_topic) or "", None)

    def drop(self, client: Client) -> None:
        """Remove a client of the node. The node leaves no shard, because nwaku does not know
        clients."""
        for topic in self._pubsub.topics_of(client):
            super().unsubscribe(client, topic)
        for topic in self._content.topics_of(client):
            super().unsubscribe_content(client, topic)


class GoWakuRelay(Relay):
    """Behaviour of go-waku, whose own shards have no cache, and where one full cache stops the
    node.

    While a client has 1,000 unread messages, nothing is stored, pushed or cached.
    """

    min_capacity = UNREAD_LIMIT

    def __init__(
        self,
        unnamed: Client,
        pubsub_topics: Iterable[str],
        shard_of: Callable[[str], str | None],
    ) -> None:
        super().__init__(unnamed, (), shard_of)
        self._own = dict.fromkeys(pubsub_topics)
        self._full: dict[Client, None] = {}

    @property
    def pubsub_topics(self) -> Collection[str]:
        """Pubsub topics that the node follows."""
        return dict.fromkeys((*self._own, *super().pubsub_topics))

    def follows(self, pubsub_topic: str) -> bool:
        """Return True if the node accepts messages of a pubsub topic."""
        return pubsub_topic in self._own or super().follows(pubsub_topic)

    def takes(self, pubsub_topic: str) -> bool:
        """Return True if the node now delivers and stores messages of a pubsub topic."""
        for client in list(self._full):
            if len(client.relay_cache) < UNREAD_LIMIT:
                del self._full[client]
        return not self._full and self.follows(pubsub_topic)

    def deliver(self, envelope: Envelope) -> None:
        """Put a message into the cache of each client that wants it."""
        super().deliver(envelope)
        for client in self._readers(envelope):
            if len(client.relay_cache) >= UNREAD_LIMIT:
                self._full[client] = None

    def drop(self, client: Client) -> None:
        super().drop(client)
        self._full.pop(client, None)


RELAYS: Final[Mapping[Behaviour | None, type[Relay]]] = {
    None: Relay,
    "nwaku": NwakuRelay,
    "go-waku": GoWakuRelay,
}
