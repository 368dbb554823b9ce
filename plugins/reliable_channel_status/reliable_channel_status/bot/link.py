"""The bot's way to Waku: one subscription a shard for all chats.

A node's REST API is looked into as fast as traffic asks: static shards of cluster 16, so
`/relay/v1/messages/{pubsub_topic}` and never the `auto` routes. Service peers push (`light_node`).
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
"""What keeps the address of a Store query short."""
REMEMBERED_HASHES: Final = 50_000
CACHE_CAPACITY: Final = 50
"""Messages of a shard that nwaku's cache holds: a look that brings so many may come too late."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A message with the hash by which the network knows it."""

    message: WakuMessage
    message_hash: bytes
    shard: str


class Node(Protocol):
    """What a link asks of a node."""

    fill: float
    """How full the shard's cache was at the last look; from 1 on Store may know more."""
    unserved: dict[str, str]
    """Shards of the last `subscribe` that cannot be heard, and why."""

    async def subscribe(self, shards: Sequence[str], content_topics: Sequence[str]) -> None:
        """Hear these topics of the shards, of the first shard at least.

        Raises:
            WakuError: the node is away, or does not serve this.
        """

    async def take(self, shard: str) -> list[WakuMessage]:
        """Return what arrived since the last time.

        Raises:
            WakuError: the node is away; `NotSubscribed`: subscribe again.
        """

    async def publish(self, shard: str, message: WakuMessage) -> None:
        """Publish.

        Raises:
            WakuError: the node did not take it.
        """

    def store_all(self, query: StoreQuery) -> AsyncGenerator[StoreEntry, None]:
        """Yield what Store has, of all pages."""

    async def store_by_hash(self, hashes: Sequence[bytes]) -> list[StoreEntry]:
        """Return what Store has of these messages."""


class RestNode:
    """A Waku node through its REST API."""

    def __init__(self, client: WakuClient) -> None:
        self._client = client
        self.fill = 0.0
        self.unserved: dict[str, str] = {}
        self.store_all = client.store_all
        self.store_by_hash = client.store_by_hash

    async def subscribe(self, shards: Sequence[str], content_topics: Sequence[str]) -> None:
        """Subscribe to the whole shards, as relay has it."""
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
    """One node, some shards, some content topics.

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
        """Be interested in other content topics from now on."""
        topics = frozenset(content_topics)
        self.is_subscribed &= topics == self._content_topics
        self._content_topics = topics

    async def subscribe(self) -> None:
        """Subscribe to all shards; `unserved` names those that cannot be heard.

        Raises:
            WakuError: the node is away, has no relay, or does not serve the first shard.
        """
        await self._node.subscribe(self._shards, sorted(self._content_topics))
        self.is_subscribed = True

    @property
    def unserved(self) -> dict[str, str]:
        """Shards that the node does not serve, and why."""
        return self._node.unserved

    async def look(self) -> list[Fetched]:
        """What arrived since the last look and was not here before.

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
        """What Store holds of a time and was not here before, in pages, the oldest first.

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
        """What Store holds of some topics and a time, in pages, the oldest first.

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
        """Those of some messages that Store holds.

        Raises:
            WakuError: no Store answers.
        """
        wanted = set(hashes)
        entries = await self._node.store_by_hash(hashes)
        fetched = (self._fetched(shard, entry.message) for entry in entries if entry.message)
        return [one for one in fetched if one.message_hash in wanted]

    def new(self, fetched: Sequence[Fetched]) -> list[Fetched]:
        """Those of some messages that are of interest and were not here before."""
        return [one for one in fetched if self._is_new(one)]

    def is_on(self, shard: str) -> bool:
        """Return True if the link subscribes to a shard."""
        return shard in self._shards

    async def publish(self, shard: str, message: WakuMessage) -> None:
        """Publish; the message does not come back to us as new.

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
