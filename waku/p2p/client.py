"""A light client: Waku's request protocols with one service peer, without a node of one's own.

    async with LightClient("/dns4/node.example/tcp/8000/wss/p2p/16Uiu2…", cluster_id=16) as client:
        await client.light_push(message, pubsub_topic)
        async with client.subscribe(pubsub_topic, [content_topic]) as messages:
            async for topic, message in messages: …

It dials the first address that answers, keeps the connection alive, and dials again when it is
lost; subscriptions are renewed then.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from waku import errors
from waku._paging import MAX_PAGES, all_entries
from waku.libp2p import DialFailed, InvalidInput, KeyType, Multiaddr, PeerId, PrivateKey
from waku.libp2p.driver import Host, Stream
from waku.models import LightPushAnswer, StoreEntry, StorePage, StoreQuery, WakuMessage

from .codec import FilterRequest, Metadata, decode_metadata, decode_push, encode_metadata
from .protocols import (
    FILTER_PUSH,
    MAX_ANSWER_BYTES,
    MAX_CONTENT_TOPICS,
    MAX_PAGE_ENTRIES,
    MAX_PUSH_BYTES,
    METADATA,
)
from .service_peer import ServicePeer, check_network

__all__ = ["ClientEvent", "LightClient", "MessageDropped", "PeerConnected", "PeerLost"]

FIRST_RETRY_MS: Final = 1_000
LONGEST_RETRY_MS: Final = 60_000

Pushed = tuple[str, WakuMessage]
"""A pubsub topic and a message."""


@dataclass(frozen=True, slots=True)
class PeerConnected:
    """A service peer answers, and every subscription is registered with it."""

    peer_id: PeerId
    agent: str


@dataclass(frozen=True, slots=True)
class PeerLost:
    """The service peer is gone, or could not be reached; subscriptions are interrupted."""

    reason: str


@dataclass(frozen=True, slots=True)
class MessageDropped:
    """A subscription's reader is slow: a message was dropped, which Store may still have."""

    pubsub_topic: str
    content_topic: str


ClientEvent = PeerConnected | PeerLost | MessageDropped


@dataclass(eq=False, slots=True)
class _Subscription:
    pubsub_topic: str
    content_topics: frozenset[str]
    inbox: MemoryObjectSendStream[Pushed]


class LightClient:
    """Light push, filter, Store and ping with one service peer at a time.

    An asynchronous context manager. Requests dial when there is no connection.
    """

    def __init__(
        self,
        addresses: str | Sequence[str],
        *,
        cluster_id: int,
        shards: Iterable[int] = (),
        identity: PrivateKey | None = None,
        request_timeout_ms: int = 10_000,
        keep_alive_ms: int = 60_000,
        buffer_messages: int = 1_024,
        ssl_context: ssl.SSLContext | None = None,
        random_bytes: Callable[[int], bytes] = os.urandom,
        on_event: Callable[[ClientEvent], None] = lambda _: None,
    ) -> None:
        """Args:
            addresses: multiaddresses of service peers, tried in order.
            cluster_id: the network's number; a peer of another one is refused.
            shards: own shards; a peer that shares none is refused. None: any peer will do.
            identity: own key; None for a new one. One key may not be used by two clients at
                once: nwaku keeps one connection for each peer id.
            request_timeout_ms: longest time for an answer.
            keep_alive_ms: interval of pings; NATs and nwaku forget silent connections.
            buffer_messages: messages that a subscription keeps for its reader.
            ssl_context: trusted certificates for `wss`; None for the system's.
            random_bytes: source of keys and request ids.
            on_event: called with each `ClientEvent`.

        Raises:
            InvalidInput: an address that cannot be dialled.
            ValueError: no address, or a number out of range.
        """
        texts = [addresses] if isinstance(addresses, str) else list(addresses)
        if not texts:
            raise ValueError("`addresses` must name at least one peer")
        numbers = {
            "request_timeout_ms": request_timeout_ms,
            "keep_alive_ms": keep_alive_ms,
            "buffer_messages": buffer_messages,
        }
        for name, value in numbers.items():
            if value < 1:
                raise ValueError(f"`{name}` must be at least 1 (got {value})")
        self._addresses = [Multiaddr.parse(text) for text in texts]
        for address in self._addresses:
            _ = address.dial_target  # raises for one that cannot be dialled
        self._own = Metadata(cluster_id, frozenset(shards))
        self._timeout_ms = request_timeout_ms
        self._keep_alive_ms = keep_alive_ms
        self._buffer_messages = buffer_messages
        self._ssl_context = ssl_context
        self._random_bytes = random_bytes
        self._on_event = on_event
        self._host = Host(
            identity or PrivateKey(KeyType.SECP256K1, random_bytes(32)),
            handlers={FILTER_PUSH: self._take_pushes, METADATA: self._answer_metadata},
            random_bytes=random_bytes,
        )
        self._peer: ServicePeer | None = None
        self._heard: Metadata | None = None
        """The network that the peer named when it asked for ours."""
        self._dialling = anyio.Lock()
        self._needed = anyio.Event()
        """Set when there is a peer to keep alive, or a subscription to renew."""
        self._subscriptions: set[_Subscription] = set()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> LightClient:
        await self._stack.enter_async_context(self._host)
        tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._stack.callback(tasks.cancel_scope.cancel)
        tasks.start_soon(self._keep_alive)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()  # the block's exception goes on as it is

    async def connect(self) -> ServicePeer:
        """Return the service peer, dialling if there is none.

        Raises:
            NodeUnreachable: no address answers; the message names the last reason.
            WrongNetwork: the last peer belongs to another cluster, or shares no shard.
        """
        async with self._dialling:
            if self._peer is not None and self._peer.link.failure is None:
                return self._peer
            self._peer = None
            failure: errors.WakuError | None = None
            for address in self._addresses:
                try:
                    self._peer = await self._meet(address)
                except errors.WakuError as error:
                    failure = error
                else:
                    self._needed.set()
                    info = self._peer.info
                    self._on_event(PeerConnected(self._peer.link.peer_id, info.agent))
                    return self._peer
            assert failure is not None
            self._on_event(PeerLost(str(failure)))
            raise failure

    async def light_push(self, message: WakuMessage, pubsub_topic: str) -> LightPushAnswer:
        """Publish a message through the peer.

        Raises:
            RlnProofRequired: the network takes messages with a proof only (420).
            OutOfRlnProofs: the peer has no proofs left for this epoch (504).
            RateLimited: too many messages (429).
            NoPeers: the peer knows nobody on this shard (505), or reached nobody.
            MessageTooLarge, BadRequest: the peer refuses the message.
            EndpointMissing: the peer offers no light push.
            NodeUnreachable, BadAnswer, NodeFailure: no answer, or none that can be used.
        """
        return await (await self.connect()).light_push(message, pubsub_topic)

    @asynccontextmanager
    async def subscribe(
        self, pubsub_topic: str, content_topics: Sequence[str]
    ) -> AsyncIterator[AsyncIterator[Pushed]]:
        """Have the peer push messages; iterate over `(pubsub_topic, message)`.

        A message may come more than once. What passes while the peer is lost must be asked of
        Store (`PeerLost`, `PeerConnected`).

        Raises:
            ValueError: no content topic, or more than 100.
            RateLimited, BadRequest: the peer refuses the subscription.
            EndpointMissing: the peer offers no filter.
            NodeUnreachable, BadAnswer, NodeFailure: no answer, or none that can be used.
        """
        topics = frozenset(content_topics)
        if not 1 <= len(topics) <= MAX_CONTENT_TOPICS:
            raise ValueError(
                f"`content_topics` must be 1 to {MAX_CONTENT_TOPICS} topics (got {len(topics)})"
            )
        inbox: MemoryObjectSendStream[Pushed]
        outbox: MemoryObjectReceiveStream[Pushed]
        inbox, outbox = anyio.create_memory_object_stream[Pushed](self._buffer_messages)
        subscription = _Subscription(pubsub_topic, topics, inbox)
        peer = await self.connect()
        with inbox, outbox:
            self._subscriptions.add(subscription)
            try:
                await self._register(peer, subscription)
                yield outbox
            finally:
                self._subscriptions.discard(subscription)
                await self._unregister(subscription)

    async def store(self, query: StoreQuery) -> StorePage:
        """Return one page of the peer's Store.

        Raises:
            CursorExpired: start again without a cursor.
            RateLimited, BadRequest: the peer refuses the query.
            EndpointMissing: the peer offers no Store.
            NodeUnreachable, BadAnswer, NodeFailure: no answer, or none that can be used.
        """
        return await (await self.connect()).store(query)

    def store_all(
        self, query: StoreQuery, *, max_pages: int = MAX_PAGES
    ) -> AsyncGenerator[StoreEntry, None]:
        """Yield the entries of all pages, each message once; a lost cursor starts again.

        Raises:
            PageLimitReached: `max_pages` pages and no end.
            WakuError: as `store`; the entries so far are good.
        """
        return all_entries(self.store, query, max_pages=max_pages, call="store_all")

    async def store_by_hash(self, hashes: Sequence[bytes]) -> list[StoreEntry]:
        """Return what the peer's Store has of these messages.

        Raises:
            WakuError: as `store`.
        """
        entries: list[StoreEntry] = []
        for start in range(0, len(hashes), MAX_PAGE_ENTRIES):
            wanted = tuple(hashes[start : start + MAX_PAGE_ENTRIES])
            query = StoreQuery(hashes=wanted, page_size=MAX_PAGE_ENTRIES)
            entries += (await self.store(query)).entries
        return entries

    async def ping(self) -> float:
        """Measure a round trip to the peer, in seconds.

        Raises:
            NodeUnreachable: no answer in time.
        """
        return await (await self.connect()).ping()

    # Peers

    async def _meet(self, address: Multiaddr) -> ServicePeer:
        """Dial a peer, check its network, and register the subscriptions."""
        self._heard = None
        try:
            link = await self._host.dial(address, ssl_context=self._ssl_context)
        except DialFailed as error:
            raise errors.NodeUnreachable("connect", detail=str(error), sent=False) from error
        try:
            peer = await ServicePeer.greet(
                link, self._own, timeout_ms=self._timeout_ms, random_bytes=self._random_bytes
            )
            for subscription in self._subscriptions:
                await self._register(peer, subscription)
        except BaseException as error:
            link.close()
            if isinstance(error, errors.NodeUnreachable):
                self._check_heard(link.peer_id)
            raise
        return peer

    def _check_heard(self, peer_id: PeerId) -> None:
        """A peer of another network hangs up, maybe before it has answered (T12)."""
        if self._heard is not None:
            check_network(peer_id, self._own, self._heard)

    async def _register(self, peer: ServicePeer, subscription: _Subscription) -> None:
        topics = sorted(subscription.content_topics)
        await peer.filter(FilterRequest.SUBSCRIBE, subscription.pubsub_topic, topics)

    async def _unregister(self, subscription: _Subscription) -> None:
        """Unsubscribe from what no other subscription needs; a peer that is gone need not hear."""
        topics = set(subscription.content_topics)
        for other in self._subscriptions:
            if other.pubsub_topic == subscription.pubsub_topic:
                topics -= other.content_topics
        peer = self._peer
        if peer is not None and topics and peer.link.failure is None:
            with suppress(errors.WakuError):
                await peer.filter(
                    FilterRequest.UNSUBSCRIBE, subscription.pubsub_topic, sorted(topics)
                )

    async def _keep_alive(self) -> None:
        retry_ms = FIRST_RETRY_MS
        while True:
            await self._needed.wait()
            if self._peer is None or self._peer.link.failure is not None:
                if not self._subscriptions:
                    self._needed = anyio.Event()
                    continue
                try:
                    await self.connect()
                except errors.WakuError:
                    await anyio.sleep(retry_ms / 1000)
                    retry_ms = min(2 * retry_ms, LONGEST_RETRY_MS)
                continue
            retry_ms = FIRST_RETRY_MS
            peer = self._peer
            with anyio.move_on_after(self._keep_alive_ms / 1000):
                await peer.link.closed.wait()
            if peer.link.failure is None:
                await self._check(peer)
            if peer.link.failure is not None:
                self._on_event(PeerLost(str(peer.link.failure)))

    async def _check(self, peer: ServicePeer) -> None:
        """Ping the peer; renew what it forgot; give it up if it does not answer."""
        try:
            if not self._subscriptions:
                await peer.ping()
                return
            try:
                await peer.filter(FilterRequest.SUBSCRIBER_PING)
            except errors.NotSubscribed:
                for subscription in self._subscriptions:
                    await self._register(peer, subscription)
        except errors.RateLimited:
            pass  # it lives
        except errors.WakuError:
            peer.link.close()

    # What the peer opens

    async def _take_pushes(self, stream: Stream) -> None:
        """Read pushes, one or many on a stream (T9)."""
        while (data := await stream.receive_message(MAX_PUSH_BYTES)) is not None:
            topic, message = decode_push(data)
            for subscription in self._subscriptions:
                if message.content_topic not in subscription.content_topics:
                    continue
                if topic not in (None, subscription.pubsub_topic):
                    continue
                try:
                    subscription.inbox.send_nowait((subscription.pubsub_topic, message))
                except anyio.WouldBlock:
                    self._on_event(MessageDropped(subscription.pubsub_topic, message.content_topic))

    async def _answer_metadata(self, stream: Stream) -> None:
        """Say which network this client belongs to: nwaku asks, and hangs up otherwise (T12)."""
        with suppress(InvalidInput):
            if (data := await stream.receive_message(MAX_ANSWER_BYTES)) is not None:
                self._heard = decode_metadata(data)
        await stream.send_message(encode_metadata(self._own))
