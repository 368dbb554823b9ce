"""The bot's Waku node: one subscription a shard for all chats, looked into as fast as traffic asks.

Static shards of cluster 16, so `/relay/v1/messages/{pubsub_topic}` and never the `auto` routes.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from waku import StoreQuery, WakuClient, WakuMessage, message_hash
from waku.errors import NotSubscribed, WakuError

from ..recent import Recent

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


class Link:
    """One node, some shards, some content topics.

    Args:
        client: the node's REST client; the caller closes it.
        shards: pubsub topics.
        content_topics: what is of interest of all that travels there.
    """

    def __init__(
        self, client: WakuClient, shards: Sequence[str], content_topics: Sequence[str]
    ) -> None:
        self._client = client
        self._shards = tuple(dict.fromkeys(shards))
        self._content_topics = frozenset(content_topics)
        self._seen: Recent[bytes, None] = Recent(REMEMBERED_HASHES)
        self.is_subscribed = False
        self.fill = 0.0
        """How full the fullest cache was at the last look; from 1 on Store may know more."""

    async def subscribe(self) -> None:
        """Subscribe to all shards.

        Raises:
            WakuError: the node is away, or has no relay.
        """
        await self._client.relay_subscribe(self._shards)
        self.is_subscribed = True

    async def look(self) -> list[Fetched]:
        """What arrived since the last look and was not here before.

        Raises:
            WakuError: the node is away; `is_subscribed` says whether to subscribe anew. What one
                shard gave before another one failed is returned: reading took it from the node.
        """
        found: list[Fetched] = []
        self.fill = 0.0
        for shard in self._shards:
            try:
                messages = await self._client.relay_messages(shard)
            except WakuError as error:
                self.is_subscribed &= not isinstance(error, NotSubscribed)
                if not found:
                    raise
                self.fill = 1.0
                break
            self.fill = max(self.fill, len(messages) / CACHE_CAPACITY)
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
            async for entry in self._client.store_all(query):
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
        entries = await self._client.store_by_hash(hashes)
        fetched = (self._fetched(shard, entry.message) for entry in entries if entry.message)
        return [one for one in fetched if one.message_hash in wanted]

    def new(self, fetched: Sequence[Fetched]) -> list[Fetched]:
        """Those of some messages that are of interest and were not here before."""
        return [one for one in fetched if self._is_new(one)]

    def is_on(self, shard: str) -> bool:
        """Whether the link subscribes to a shard."""
        return shard in self._shards

    async def publish(self, shard: str, message: WakuMessage) -> None:
        """Publish; the message does not come back to us as new.

        Raises:
            WakuError: the node did not take it.
        """
        await self._client.relay_publish(shard, message)

    def _fetched(self, shard: str, message: WakuMessage) -> Fetched:
        return Fetched(message, message_hash(shard, message))

    def _is_new(self, fetched: Fetched) -> bool:
        if fetched.message.content_topic not in self._content_topics:
            return False
        digest = fetched.message_hash
        is_new = digest not in self._seen
        self._seen.renew(digest, None)
        return is_new
