"""Waku without an own node, by light push, filter and Store through service peers over libp2p.

The address is `libp2p:///dns4/node.example/tcp/8000/wss/p2p/16Uiu2…`, with commas between
addresses. The option `node` of a channel also accepts addresses without the scheme, and
`enrtree://…`.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from waku.models import StoreEntry, StorePage, StoreQuery
from waku.p2p import (
    MAX_REDUNDANCY,
    ClientEvent,
    MessageDropped,
    PeerLost,
    Pushed,
    PushRefused,
    SubscriptionInterrupted,
    SubscriptionRenewed,
    SurroundingsChanged,
)
from waku.topics import PubsubTopic

from .addresses import LIBP2P
from .base import Batch, Envelope, Source, StoreUnavailable, TransportError
from .settings import WakuSettings
from .shared_client import ClientKey, SharedClient, shared_client
from .waku_topic import OnTopic, translated

__all__ = ["LightTransport"]

SIGN_OF_LIFE_S: Final = 60.0
"""Time after which `receive` returns an empty batch (s)."""
MAX_BATCH: Final = 200


class LightTransport(OnTopic):
    """Transport of one content topic through service peers."""

    def __init__(self, url: str, settings: WakuSettings) -> None:
        """Raises:
        ValueError: an address that is none, or cannot be dialled.
        """
        self.url = url
        self._addresses = url.removeprefix(LIBP2P).split(",")
        self._settings = settings
        super().__init__(settings)
        self._key = self._client_key()
        self._key.check()  # a malformed address fails here, not at the first message
        self._shared: SharedClient | None = None
        self._stack: AsyncExitStack | None = None
        self._messages: MemoryObjectReceiveStream[Pushed] | None = None
        self._gap = ""
        self._interrupted = ""
        """Why nothing arrives at the moment."""
        self._waiting: anyio.CancelScope | None = None
        """Ends the wait for messages when there is something else to say."""

    async def open(self) -> None:
        """Connect, unless another channel of this event loop is connected, and subscribe.

        Raises:
            TransportError: no service peer can be reached, or none of this network.
        """
        async with AsyncExitStack() as stack:
            self._gap = self._interrupted = ""
            shared = await stack.enter_async_context(shared_client(self._key, self._take_event))
            with translated():
                topics = [self._settings.content_topic]
                messages = shared.client.subscribe(self._topic.shard, topics)
                self._messages = await stack.enter_async_context(messages)
            self._shared = shared
            self._stack = stack.pop_all()

    async def aclose(self) -> None:
        """Unsubscribe from the content topic. The last channel closes the connections to the
        service peers."""
        stack, self._stack, self._messages, self._shared = self._stack, None, None, None
        if stack is not None:
            await stack.aclose()

    async def publish(self, envelope: Envelope) -> None:
        """Publish an envelope by light push.

        Raises:
            TransportError: no service peer took it.
        """
        client = self._opened().client
        with translated():
            message, shard = self._topic.message(envelope), self._topic.shard
            await client.light_push(message, shard, urgent=envelope.urgent)

    async def receive(self) -> Batch:
        """Wait for messages of the topic that a service peer pushes.

        Raises:
            TransportError: no peer pushes at the moment; the client looks for others by itself.
        """
        self._opened()
        messages = self._messages
        assert messages is not None
        await anyio.lowlevel.checkpoint()
        pushed = _taken(messages, MAX_BATCH)
        if not pushed and not self._gap and not self._interrupted:
            self._waiting = anyio.CancelScope(deadline=anyio.current_time() + SIGN_OF_LIFE_S)
            with self._waiting:
                pushed.append(await messages.receive())
            pushed += _taken(messages, MAX_BATCH - 1)
        if not pushed and self._interrupted:
            raise TransportError(f"no service peer pushes messages: {self._interrupted}")
        gap, self._gap = self._gap, ""
        received = [
            self._topic.received(one.message, one.message_hash, Source.LIVE) for one in pushed
        ]
        return Batch(received, gap)

    def renew(self) -> None:
        """Renew the subscription, because it seems to have ended."""
        if self._shared is not None:
            self._shared.client.renew()

    async def _store(self, query: StoreQuery) -> StorePage:
        return await self._opened(StoreUnavailable).store(query)

    async def _store_by_hash(self, hashes: Sequence[bytes]) -> Sequence[StoreEntry]:
        return await self._opened(StoreUnavailable).client.store_by_hash(hashes)

    def _opened(self, kind: type[TransportError] = TransportError) -> SharedClient:
        if self._shared is None:
            raise kind(f"{self.url} is closed; open it first")
        return self._shared

    def _client_key(self) -> ClientKey:
        settings, topic = self._settings, PubsubTopic.parse(self._topic.shard)
        return ClientKey(
            tuple(self._addresses),
            settings.network,
            topic.cluster_id,
            topic.shard,
            min(settings.redundancy, MAX_REDUNDANCY),
            None if settings.ca_file is None else str(settings.ca_file),
        )

    def _take_event(self, event: ClientEvent) -> None:
        topic, before = self._settings.content_topic, (self._gap, self._interrupted)
        match event:
            case SubscriptionInterrupted(reason=reason) if topic in event.content_topics:
                self._interrupted = reason
            case PeerLost(reason) if self._interrupted:
                self._interrupted = reason
            case SubscriptionRenewed(reason=reason) if topic in event.content_topics:
                self._gap, self._interrupted = reason, ""
            case SurroundingsChanged(reason):
                self._gap = reason
            case MessageDropped(content_topic=dropped) if dropped == topic:
                self._gap = "messages came faster than they were read"
            case PushRefused(reason=reason):
                self._gap = f"a peer pushed what cannot be read: {reason}"
            case _:
                pass
        if self._waiting is not None and before != (self._gap, self._interrupted):
            self._waiting.cancel()


def _taken(messages: MemoryObjectReceiveStream[Pushed], most: int) -> list[Pushed]:
    """Take messages that are there."""
    pushed: list[Pushed] = []
    with suppress(anyio.WouldBlock):
        while len(pushed) < most:
            pushed.append(messages.receive_nowait())
    return pushed
