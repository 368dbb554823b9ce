"""Link of a bot to Waku, with a subscription for each shard.

The link polls a node's REST API as fast as the traffic needs. Status uses static shards of cluster
16, so the link calls `/relay/v1/messages/{pubsub_topic}` and never the `auto` routes. Service peers
push messages (`light_node`).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from waku import StoreQuery, WakuClient, WakuMessage, message_hash
from waku.errors import NodeUnreachable, NotSubscribed, WakuError
from waku.models import StoreEntry

from ..wire.recent import Recent

NS_PER_MS: Final = 1_000_000
PAGE_SIZE: Final = 100
TOPICS_PER_QUERY: Final = 20
"""Maximum number of content topics in a Store query, which keeps its URL short."""
REMEMBERED_HASHES: Final = 50_000
CACHE_CAPACITY: Final = 50
"""Number of messages that nwaku's cache for a shard can hold. If a read returns as many messages as
the cache can hold, nwaku may have dropped others."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Waku message with its hash on the network."""

    message: WakuMessage
    message_hash: bytes
    shard: str


class Node(Protocol):
    """Interface of a node that a link needs."""

    fill: float
    """Share of the shard's cache that was filled at the last read. If `fill` is 1 or more, Store
    may have further messages."""
    unserved: dict[str, str]
    """Shards of the last `subscribe` that the node cannot receive, with reasons."""

    async def subscribe(self, shards: Sequence[str], content_topics: Sequence[str]) -> None:
        """Subscribe to content topics of the shards, at least of the first shard.

        Raises:
            WakuError: the node is away, or does not serve this.
        """

    async def take(self, shard: str) -> list[WakuMessage]:
        """Return the messages of a shard since the last call.

        Raises:
            WakuError: the node is away; `NotSubscribed`: subscribe again.
        """

    async def publish(self, shard: str, message: WakuMessage) -> None:
        """Publish a message on a shard.

        Raises:
            WakuError: the node did not take it.
        """

    def store_all(self, query: StoreQuery) -> AsyncGenerator[StoreEntry, None]:
        """Yield all messages that a Store query finds, from all pages."""

    async def store_by_hash(self, hashes: Sequence[bytes]) -> list[StoreEntry]:
        """Return the messages with the given hashes that Store has."""


class RestNode:
    """Waku node that is used through its REST API."""

    def __init__(self, client: WakuClient) -> None:
        self._client = client
        self.fill = 0.0
        self.unserved: dict[str, str] = {}
        self.store_all = client.store_all
        self.store_by_hash = client.store_by_hash

    async def subscribe(self, shards: Sequence[str], content_topics: Sequence[str]) -> None:
        """Subscribe to whole shards, as relay does."""
        self.unserved = {}
        for shard in shards:
            try:
                await self._client.relay_subscribe([shard])
            except WakuError as error:
                if shard == shards[0] or isinstance(error, NodeUnreachable):
                    raise
                self.unserved[shard] = str(error)

    async def take(self, shard: str) -> list[WakuMessage]:
        messages = await self._client.relay_messages(shard)
        self.fill = len(messages) / CACHE_CAPACITY
        return messages

    async def publish(self, shard: str, message: WakuMessage) -> None:
        await self._client.relay_publish(shard, message)


class Link:
    """Link to one node for some shards and content topics.

    Args:
        node: what is asked; the caller closes it.
        shards: pubsub topics.
        content_topics: what is of interest of all that travels there.
    """

    def __init__(
        self, node: Node | WakuClient, shards: Sequence[str], content_topics: Sequence[str]
    ) -> None:
        self._node = RestNode(node) if isinstance(node, WakuClient) else node
        self._shards = tuple(dict.fromkeys(shards))
        self._content_topics = frozenset(content_topics)
        self._seen: Recent[bytes, None] = Recent(REMEMBERED_HASHES)
        self.is_subscribed = False
        self.fill = 0.0
        """How full the fullest cache was at the last look; from 1 on Store may know more."""

    def listen(self, content_topics: Sequence[str]) -> None:
        """Change the content topics that the link receives."""
        topics = frozenset(content_topics)
        self.is_subscribed &= topics == self._content_topics
        self._content_topics = topics

    async def subscribe(self) -> None:
        """Subscribe to all shards of the link. `unserved` names the shards that cannot be received.

        Raises:
            WakuError: the node is away, has no relay, or does not serve the first shard.
        """
        await self._node.subscribe(self._shards, sorted(self._content_topics))
        self.is_subscribed = True

    @property
    def unserved(self) -> dict[str, str]:
        """Shards of the link that the node does not serve, with reasons."""
        return self._node.unserved

    async def look(self) -> list[Fetched]:
        """Return new messages since the last call of `look`.

        Raises:
            WakuError: the node is away; `is_subscribed` says whether to subscribe anew. What one
                shard gave before another one failed is returned: reading took it from the node.
        """
        found: list[Fetched] = []
        self.fill = 0.0
        for shard in self._shards:
            if shard in self.unserved:
                continue
            try:
                messages = await self._node.take(shard)
            except WakuError as error:
                self.is_subscribed &= not isinstance(error, NotSubscribed)
                if not found:
                    raise
                self.fill = 1.0
                break
            self.fill = max(self.fill, self._node.fill)
            found += self.new([self._fetched(shard, message) for message in messages])
        return found

    async def history(self, start_ms: int, end_ms: int) -> AsyncIterator[list[Fetched]]:
        """Yield pages of new messages that Store has from a time range, oldest first.

        Raises:
            WakuError: no Store answers; the pages so far are good.
        """
        topics = sorted(self._content_topics)
        for shard in self._shards:
            for first in range(0, len(topics), TOPICS_PER_QUERY):
                asked = topics[first : first + TOPICS_PER_QUERY]
                pages = self.stored(shard, asked, start_ms * NS_PER_MS, end_ms * NS_PER_MS)
                async for page in pages:
                    yield self.new(page)

    async def stored(
        self, shard: str, content_topics: Sequence[str], start_ns: int, end_ns: int
    ) -> AsyncGenerator[list[Fetched], None]:
        """Yield pages of messages that Store has for content topics and a time range, oldest first.

        Raises:
            WakuError: no Store answers; the pages so far are good.
        """
        query = StoreQuery(
            content_topics=tuple(content_topics),
            pubsub_topic=shard,
            start_time_ns=start_ns,
            end_time_ns=end_ns,
            page_size=PAGE_SIZE,
        )
        page: list[Fetched] = []
        try:
            async for entry in self._node.store_all(query):
                if entry.message is not None:
                    page.append(self._fetched(shard, entry.message))
                if len(page) == PAGE_SIZE:
                    yield page
                    page = []
        except WakuError:
            yield page
            raise
        yield page

    async def by_hash(self, shard: str, hashes: Sequence[bytes]) -> list[Fetched]:
        """Return the messages of a shard with the given hashes that Store has.

        Raises:
            WakuError: no Store answers.
        """
        wanted = set(hashes)
        entries = await self._node.store_by_hash(hashes)
        fetched = (self._fetched(shard, entry.message) for entry in entries if entry.message)
        return [one for one in fetched if one.message_hash in wanted]

    def new(self, fetched: Sequence[Fetched]) -> list[Fetched]:
        """Return the messages on the link's content topics that are new."""
        return [one for one in fetched if self._is_new(one)]

    def is_on(self, shard: str) -> bool:
        """Return True if the link subscribes to a shard."""
        return shard in self._shards

    async def publish(self, shard: str, message: WakuMessage) -> None:
        """Publish a message on a shard. The link does not return its own message as new.

        Raises:
            WakuError: the node did not take it.
        """
        await self._node.publish(shard, message)

    def _fetched(self, shard: str, message: WakuMessage) -> Fetched:
        return Fetched(message, message_hash(shard, message), shard)

    def _is_new(self, fetched: Fetched) -> bool:
        if fetched.message.content_topic not in self._content_topics:
            return False
        digest = fetched.message_hash
        is_new = digest not in self._seen
        self._seen.renew(digest, None)
        return is_new
