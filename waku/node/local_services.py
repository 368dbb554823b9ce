"""Services of this node, which use its relay, its filter subscribers and its archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from waku.models import HASH_BYTES, StorePage, StoreQuery, WakuMessage
from waku.node.errors import PublishRefused, RelayFull, StoreUnavailable
from waku.node.host import ServiceHost
from waku.node.services import Criterion, ServiceRefused, Subscriber, refuse_unreadable
from waku.node.sharding import GENERATION, NoShard
from waku.node.store import ArchiveUnavailable, CursorNotFound, QueryTooLong

__all__ = ["LocalServices"]

_ALL_ZERO: Final = bytes(HASH_BYTES)


class LocalServices:
    """Services of an embedded node for its own clients and for joined nodes.

    A service that the node's options switch off refuses requests with 503.
    """

    def __init__(self, node: ServiceHost) -> None:
        self._node = node

    async def push(self, pubsub_topic: str, message: WakuMessage) -> int:
        """Publish a message for a light client. Return the number of nodes that accepted the
        message. A node that serves its own clients counts as one of these nodes.

        Raises:
            ServiceRefused: no topic, too large, or no peer to take it. To nwaku, and to us without
                `self_service`, a repeat has no peer to take it.
        """
        node = self._node
        _offered(node.options.lightpush)
        pubsub_topic = pubsub_topic or self._shard_for(message.content_topic)
        refuse_unreadable(message)
        itself = int(node.options.self_service and node.relay.follows(pubsub_topic))
        try:
            node.check_size(message)
            if not itself and not node.mesh.followers(pubsub_topic):
                raise _nobody()
            taken = node.publish(pubsub_topic, message, unfollowed=True) + itself
        except (StoreUnavailable, RelayFull) as error:
            raise ServiceRefused(503, str(error)) from error
        except PublishRefused as error:
            raise ServiceRefused(500, str(error)) from error
        if not taken:
            raise _nobody()
        return taken

    async def ping(self, subscriber: Subscriber) -> None:
        """Raise an error unless a subscriber has a filter subscription.

        Raises:
            ServiceRefused: it has none.
        """
        _offered(self._node.options.filter)
        self._node.filter.ping(subscriber)

    async def subscribe(self, subscriber: Subscriber, criteria: Sequence[Criterion]) -> None:
        """Push messages that match the criteria to a subscriber from now on.

        Raises:
            ServiceRefused: too many criteria.
        """
        _offered(self._node.options.filter)
        self._node.filter.subscribe(subscriber, criteria)

    async def unsubscribe(self, subscriber: Subscriber, criteria: Sequence[Criterion]) -> None:
        """Stop pushing messages that match the criteria to a subscriber.

        Raises:
            ServiceRefused: too many criteria, or none was subscribed to.
        """
        _offered(self._node.options.filter)
        self._node.filter.unsubscribe(subscriber, criteria)

    async def unsubscribe_all(self, subscriber: Subscriber) -> None:
        """End every filter subscription of a subscriber.

        Raises:
            ServiceRefused: it has none.
        """
        _offered(self._node.options.filter)
        self._node.filter.unsubscribe_all(subscriber)

    async def query(self, query: StoreQuery) -> StorePage:
        """Return one page of messages from the archive.

        Raises:
            ServiceRefused: the cursor is not known, the query passes over too many messages, the
                archive cannot be read, or the options refuse queries by hash.
        """
        archive = self._node.archive
        if archive is None:
            raise _not_offered()
        if query.hashes:
            query = self._by_hash(query)
        problem = "BAD_RESPONSE: archive error: "
        if query.cursor == _ALL_ZERO:
            raise ServiceRefused(300, f"{problem}INVALID_QUERY: all zeroes cursor hash")
        try:
            return archive.query(query)
        except CursorNotFound as error:
            raise ServiceRefused(300, f"{problem}DRIVER_ERROR: cursor not found") from error
        except QueryTooLong as error:
            what = "name content topics of this pubsub topic, or a shorter time"
            raise ServiceRefused(400, f"BAD_REQUEST: {error}: {what}") from error
        except ArchiveUnavailable as error:
            raise ServiceRefused(300, f"{problem}DRIVER_ERROR: {error}") from error

    def _by_hash(self, query: StoreQuery) -> StoreQuery:
        match self._node.options.hash_queries:
            case "answer":
                return query
            case "ignore":
                return replace(query, hashes=())
            case "refuse":
                text = "BAD_REQUEST: queries by message hash are not supported"
                raise ServiceRefused(400, text)

    def _shard_for(self, content_topic: str) -> str:
        if self._node.options.static_sharding:
            text = "Pubsub topic must be specified when static sharding is enabled"
            raise ServiceRefused(500, text)
        try:
            return self._node.shard_for(content_topic)
        except NoShard as error:
            unreadable = str(error) != GENERATION
            problem = "Invalid content-topic:" if unreadable else "Autosharding error: "
            raise ServiceRefused(500, f"{problem}{error}") from error


def _offered(option: bool) -> None:
    if not option:
        raise _not_offered()


def _not_offered() -> ServiceRefused:
    return ServiceRefused(503, "SERVICE_UNAVAILABLE: this node does not offer the service")


def _nobody() -> ServiceRefused:
    text = "No peers for topic, skipping publish"
    return ServiceRefused(505, text, legacy="not_published_to_any_peer")
