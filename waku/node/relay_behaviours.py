"""How nwaku and go-waku treat subscriptions, where they are less kind than our own node.

Seen on nwaku 0.37.1 and go-waku 0.10.1; `NodeOptions.behave_as` selects one, for tests of clients.
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
"""Content topics that the node remembers, the newest; nwaku has no limit."""
UNREAD_LIMIT: Final = 1_000
"""Unread messages of one subscription at which go-waku stops."""


class NwakuRelay(Relay):
    """nwaku: a shard is followed or not, for all clients; they are not counted.

    Unsubscribing from one content topic leaves the whole shard: relay, filter and Store stop for
    all. Subscribing again to a content topic that the node knows does nothing. Unsubscribing from
    it first, or a topic new to the node, follows the shard again.
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
        """Every pubsub topic that is followed."""
        return self._followed.keys()

    def follows(self, pubsub_topic: str) -> bool:
        """Return True if messages of a pubsub topic are taken."""
        return pubsub_topic in self._followed

    def subscribe(self, client: Client, pubsub_topic: str) -> None:
        """Keep what comes on a pubsub topic for a client, and follow it."""
        super().subscribe(client, pubsub_topic)
        self._followed[pubsub_topic] = None

    def unsubscribe(self, client: Client, pubsub_topic: str) -> None:
        """Leave a pubsub topic, for all clients."""
        super().unsubscribe(client, pubsub_topic)
        self._followed.pop(pubsub_topic, None)

    def subscribe_content(self, client: Client, content_topic: str) -> None:
        """Keep what comes on a content topic; follow its shard if the topic is new to the node."""
        super().subscribe_content(client, content_topic)
        shard = self._shard_of(content_topic)
        if shard is None or content_topic in self._known:
            return
        if len(self._known) >= KNOWN_TOPICS:
            del self._known[next(iter(self._known))]
        self._known[content_topic] = None
        self._followed[shard] = None

    def unsubscribe_content(self, client: Client, content_topic: str) -> None:
        """Forget a content topic, and leave its shard, for all clients."""
        super().unsubscribe_content(client, content_topic)
        if content_topic in self._known:
            del self._known[content_topic]
            self._followed.pop(self._shard_of(content_topic) or "", None)

    def drop(self, client: Client) -> None:
        """Forget a client, of which nwaku knows nothing: no shard is left."""
        for topic in self._pubsub.topics_of(client):
            super().unsubscribe(client, topic)
        for topic in self._content.topics_of(client):
            super().unsubscribe_content(client, topic)


class GoWakuRelay(Relay):
    """go-waku: the node's own shards have no cache, and a subscription without a reader stops it.

    While any client has 1,000 unread messages, nothing is stored, pushed or cached.
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
        """Every pubsub topic that is followed."""
        return dict.fromkeys((*self._own, *super().pubsub_topics))

    def follows(self, pubsub_topic: str) -> bool:
        """Return True if messages of a pubsub topic are taken."""
        return pubsub_topic in self._own or super().follows(pubsub_topic)

    def takes(self, pubsub_topic: str) -> bool:
        """Return True if a message of a pubsub topic is delivered and stored now."""
        for client in list(self._full):
            if len(client.relay_cache) < UNREAD_LIMIT:
                del self._full[client]
        return not self._full and self.follows(pubsub_topic)

    def deliver(self, envelope: Envelope) -> None:
        """Put a message into the caches of clients that want it."""
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
