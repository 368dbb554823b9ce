"""Messaging layer of an embedded node, as in logos-delivery. The messaging API has only content
topics.

The behaviour follows the source of logos-delivery 69fbffa3. As in logos-delivery, messages that a
reader does not fetch in time are dropped silently.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol
from uuid import uuid4

from waku.messaging import MessagingMessage, SendEvent, SendEvents
from waku.models import WakuMessage
from waku.node.clients import Client, Clients
from waku.node.envelope import Envelope
from waku.node.errors import PublishRefused
from waku.node.mesh import Mesh
from waku.node.options import NodeOptions
from waku.node.relay import Relay
from waku.node.store import Archive

__all__ = ["Messaging"]

RECEIVED_CAPACITY: Final = 50
REQUESTS_CAPACITY: Final = 10_000


class MessagingNode(Protocol):
    """Interface of a node for its messaging layer."""

    @property
    def options(self) -> NodeOptions:
        """Options that the node was made with."""

    @property
    def mesh(self) -> Mesh:
        """Links of the node to other nodes."""

    @property
    def archive(self) -> Archive | None:
        """Archive that stores the messages."""

    @property
    def relay(self) -> Relay:
        """Subscriptions of the node's clients."""

    def shard_for(self, content_topic: str) -> str:
        """Return the pubsub topic for a content topic, or raise `NoShard`."""

    def check_size(self, message: WakuMessage) -> None:
        """Raise `PublishRefused` if a message is too large."""

    def publish(self, pubsub_topic: str, message: WakuMessage, *, unfollowed: bool = False) -> int:
        """Publish a message, or raise `PublishRefused`."""

    def announce_topics(self) -> None:
        """Tell other nodes which pubsub topics this node now follows."""


@dataclass(slots=True)
class Outbox:
    """Events about the requests of one reader."""

    requests: OrderedDict[str, list[SendEvent]] = field(default_factory=OrderedDict)

    def add(self, request_id: str, event: SendEvent) -> None:
        """Keep an event until the reader fetches it. If there are too many requests, the events of
        the oldest request are dropped."""
        self.requests.setdefault(request_id, []).append(event)
        while len(self.requests) > REQUESTS_CAPACITY:
            self.requests.popitem(last=False)


class Messaging:
    """Readers of the messaging layer, each with its own subscriptions, messages and events.

    Calls without the header `Waku-Client-Id` share one reader, as in logos-delivery.
    """

    def __init__(
        self,
        node: MessagingNode,
        *,
        peer_id: str,
        max_clients: int,
        idle_s: float,
        now_ns: Callable[[], int],
    ) -> None:
        self._node = node
        self._now_ns = now_ns
        self._readers = Clients(
            peer_id=peer_id,
            cache_capacity=RECEIVED_CAPACITY,
            max_clients=max_clients,
            idle_s=idle_s,
            now_ns=now_ns,
            on_drop=self._forget,
        )
        self._outboxes: dict[Client, Outbox] = {}
        self._own: OrderedDict[bytes, None] = OrderedDict()
        """Hashes of messages that were sent here: they are not received."""

    def subscribe(self, client_id: str | None, content_topic: str) -> None:
        """Subscribe a reader to a content topic.

        Raises:
            NoShard: it has none.
        """
        self._node.shard_for(content_topic)
        self._node.relay.subscribe_content(self._readers.get(client_id), content_topic)
        self._node.announce_topics()

    def unsubscribe(self, client_id: str | None, content_topic: str) -> None:
        """End a reader's subscription to a content topic.

        Raises:
            NoShard: the content topic has none.
        """
        self._node.shard_for(content_topic)
        self._node.relay.unsubscribe_content(self._readers.get(client_id), content_topic)
        self._node.announce_topics()

    def send(self, client_id: str | None, message: WakuMessage) -> str:
        """Publish a message of a reader, and record the events about it. Return the request id of
        the message.

        Raises:
            NoShard: the content topic has none.
            PublishRefused: it is too large.
        """
        shard = self._node.shard_for(message.content_topic)
        self._node.check_size(message)
        envelope = Envelope.of(shard, message)
        request_id = uuid4().hex
        outbox = self._outboxes.setdefault(self._readers.get(client_id), Outbox())
        self._own[envelope.hash] = None
        while len(self._own) > REQUESTS_CAPACITY:
            self._own.popitem(last=False)
        try:
            if not self._node.options.self_service and not self._node.mesh.followers(shard):
                raise PublishRefused("publish failed in relay: NoPeersToPublish")
            self._node.publish(shard, message, unfollowed=True)
        except PublishRefused as error:
            outbox.add(request_id, SendEvent("error", envelope.hash, self._now_ns(), str(error)))
            return request_id
        outbox.add(request_id, SendEvent("propagated", envelope.hash, self._now_ns()))
        if self._node.archive is not None and not message.ephemeral:
            outbox.add(request_id, SendEvent("sent", envelope.hash, self._now_ns()))
        return request_id

    def events(self, client_id: str | None) -> list[SendEvents]:
        """Remove and return the events about all requests of a reader."""
        outbox = self._outboxes.pop(self._readers.get(client_id), Outbox())
        return [SendEvents(request, tuple(events)) for request, events in outbox.requests.items()]

    def events_of(self, client_id: str | None, request_id: str) -> SendEvents | None:
        """Remove and return the events about one request, or None if there are no events."""
        outbox = self._outboxes.get(self._readers.get(client_id), Outbox())
        events = outbox.requests.pop(request_id, None)
        return None if events is None else SendEvents(request_id, tuple(events))

    def received(self, client_id: str | None) -> list[MessagingMessage]:
        """Remove and return the received messages of a reader, oldest first."""
        taken = self._readers.get(client_id).relay_cache.take_all()
        return [MessagingMessage(found, each) for found, each in taken if found not in self._own]

    def _forget(self, client: Client) -> None:
        self._outboxes.pop(client, None)
        self._node.relay.drop(client)
        self._node.announce_topics()
