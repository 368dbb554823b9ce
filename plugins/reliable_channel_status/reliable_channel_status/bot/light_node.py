"""Service peers over libp2p, which push messages to the bot in place of a Waku node.

`LightNode` has all methods of a node that `Link` needs. The module needs
`reliable-channel-status[libp2p]`.
"""

import ssl
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Final, Self

import anyio
from anyio.abc import TaskGroup, TaskStatus

from waku import LightClient, PubsubTopic, StoreQuery, WakuMessage
from waku.errors import NodeUnreachable, WakuError
from waku.models import StoreEntry
from waku.p2p import (
    ClientEvent,
    MessageDropped,
    PushRefused,
    SubscriptionInterrupted,
    SubscriptionRenewed,
    SurroundingsChanged,
)

TOPICS_PER_SUBSCRIPTION: Final = 100
"""Maximum number of content topics in a subscription, a limit of nwaku and go-waku."""
WAITING: Final = 10_000
"""Maximum number of a shard's messages that wait for the bot. Older waiting messages are dropped,
and fetched from Store."""


class LightNode:
    """Service peers of one network, as an asynchronous context manager.

    Args:
        addresses: as `LightClient` takes them; None for those of `network`.
        shards: where the bot writes and listens; it writes on the first one.
        network: name of a preset or path of a TOML file (docs/light-client.md).
        ssl_context: trusted certificates for `wss`; None for the system's.

    Raises:
        ValueError: an address that is none, or no network of the shards' cluster.
        OSError: the network's file cannot be read.
    """

    def __init__(
        self,
        addresses: str | Sequence[str] | None,
        shards: Sequence[PubsubTopic],
        *,
        network: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._client = LightClient(
            addresses,
            network=network,
            cluster_id=shards[0].cluster_id,
            shards=[shard.shard for shard in shards],
            buffer_messages=WAITING,
            ssl_context=ssl_context,
            on_event=self._take_event,
        )
        self.fill = 0.0
        """1 where Store may know more than was pushed."""
        self.unserved: dict[str, str] = {}
        """Shards that no peer pushes, and why; the bot listens to the others."""
        self._arrived: dict[str, deque[WakuMessage]] = defaultdict(lambda: deque(maxlen=WAITING))
        self._subscribed: set[tuple[str, tuple[str, ...]]] = set()
        self._interrupted: dict[str, str] = {}
        """Shards of which nothing comes at the moment, and why."""
        self._gap = False
        self._news = anyio.Event()
        self._stack = AsyncExitStack()
        self._tasks: TaskGroup | None = None

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._client)
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._stack.callback(self._tasks.cancel_scope.cancel)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()  # the block's exception goes on as it is

    async def subscribe(self, shards: Sequence[str], content_topics: Sequence[str]) -> None:
        """Subscribe to messages on content topics, at least of the first shard. Subscriptions of
        earlier calls stay.

        Raises:
            WakuError: no peer pushes those of the first shard.
        """
        assert self._tasks is not None, "a light node is used in `async with`"
        topics = sorted(content_topics)
        for shard in shards:
            self.unserved.pop(shard, None)
            for at in range(0, len(topics), TOPICS_PER_SUBSCRIPTION):
                part = tuple(topics[at : at + TOPICS_PER_SUBSCRIPTION])
                if (shard, part) in self._subscribed:
                    continue
                try:
                    await self._tasks.start(self._read, shard, part)
                except WakuError as error:
                    if shard == shards[0]:
                        raise
                    self.unserved[shard] = str(error)
                else:
                    self._subscribed.add((shard, part))

    async def take(self, shard: str) -> list[WakuMessage]:
        """Return the messages that peers pushed since the last call.

        Raises:
            NodeUnreachable: no peer pushes at the moment; the client looks for others by itself.
        """
        arrived = self._arrived.pop(shard, ())
        if not arrived and (reason := self._interrupted.get(shard)) is not None:
            raise NodeUnreachable("filter", detail=f"no peer pushes {shard}: {reason}", sent=False)
        self.fill = 1.0 if self._gap or len(arrived) == WAITING else 0.0
        self._gap = False
        return list(arrived)

    async def wait(self, seconds: float) -> None:
        """Wait for the given time, or until a message is pushed."""
        with anyio.move_on_after(seconds):
            if not self._arrived:
                self._news = anyio.Event()
                await self._news.wait()

    async def publish(self, shard: str, message: WakuMessage) -> None:
        """Publish a message by light push.

        Raises:
            WakuError: no peer took it.
        """
        await self._client.light_push(message, shard)

    def store_all(self, query: StoreQuery) -> AsyncGenerator[StoreEntry, None]:
        """Yield the messages that a Store query finds, as `LightClient.store_all` does."""
        return self._client.store_all(query)

    async def store_by_hash(self, hashes: Sequence[bytes]) -> list[StoreEntry]:
        """Return the messages with the given hashes that the Stores have, as
        `LightClient.store_by_hash` does."""
        return await self._client.store_by_hash(hashes)

    async def _read(
        self, shard: str, topics: tuple[str, ...], *, task_status: TaskStatus[None]
    ) -> None:
        async with self._client.subscribe(shard, topics) as messages:
            task_status.started()
            async for pushed in messages:
                self._arrived[shard].append(pushed.message)
                self._news.set()

    def _take_event(self, event: ClientEvent) -> None:
        match event:
            case SubscriptionInterrupted():
                self._interrupted[event.pubsub_topic] = event.reason
            case SubscriptionRenewed():
                self._interrupted.pop(event.pubsub_topic, None)
                self._gap = True
            case SurroundingsChanged() | MessageDropped() | PushRefused():
                self._gap = True
            case _:
                return
        self._news.set()
