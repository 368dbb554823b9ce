"""Light client for Waku's request protocols with service peers, without an own node.

    async with LightClient("/dns4/node.example/tcp/8000/wss/p2p/16Uiu2…", cluster_id=16) as client:
        await client.light_push(message, pubsub_topic)
        async with client.subscribe(pubsub_topic, [content_topic]) as messages:
            async for pushed in messages: …

The client keeps several peers, chosen by their services and shards, and replaces failing peers.
After a replacement, the client renews its subscriptions.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from types import TracebackType
from typing import Final
from weakref import WeakKeyDictionary

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from waku._paging import MAX_PAGES, all_entries
from waku._recent_pushes import RecentPushes
from waku.discovery import Network, NodeRecord, Resolver, SystemResolver, check_entry, find_network
from waku.errors import (
    BadRequest,
    EndpointMissing,
    MessageTooLarge,
    NodeFailure,
    WakuError,
)
from waku.hashing import message_hash
from waku.libp2p import (
    InvalidInput,
    KeyType,
    Libp2pError,
    Multiaddr,
    PeerViolation,
    PrivateKey,
)
from waku.libp2p.driver import Carrier, Host, MessageSink, Stream
from waku.models import LightPushAnswer, StoreEntry, StorePage, StoreQuery, WakuMessage

from .asking import Asker
from .codec import Metadata, decode_metadata, decode_push, encode_message, encode_metadata
from .events import ClientEvent, PushRefused
from .keeper import Keeper
from .peer_book import Entry, PeerBook
from .protocols import (
    FILTER_PUSH,
    MAX_ANSWER_BYTES,
    MAX_CONTENT_TOPICS,
    MAX_MESSAGE_BYTES,
    MAX_PAGE_ENTRIES,
    METADATA,
    OVERHEAD_BYTES,
    Role,
)
from .search import Search
from .service_peer import ServicePeer
from .subscriptions import Pushed, Subscription, Subscriptions

__all__ = ["MAX_REDUNDANCY", "LightClient"]

MAX_REDUNDANCY: Final = 8
STORES: Final = 3
"""Number of Stores that are queried for a message before the message counts as missing."""
UNREGISTER_S: Final = 1.0
"""Time (s) for which the end of a subscription waits for peers. If no request reaches a peer, the
peer removes the subscription later."""
MAX_REFUSED: Final = 20
"""Maximum number of unreadable pushes on one connection before it is closed."""
PATIENCE_S: Final = 180.0
"""Maximum wait (s) of a new subscription while a peer answers 429. nwaku serves at most 30 filter
requests a minute."""
MAX_CURSORS: Final = 64
"""Maximum number of cursors whose Store is remembered."""


class LightClient:
    """Client of light push, filter and Store at service peers, used in `async with`.

    The client dials no peer before the first request.
    """

    def __init__(
        self,
        addresses: str | Sequence[str] | None = None,
        *,
        network: str | Network | None = None,
        cluster_id: int | None = None,
        shards: Iterable[int] = (),
        redundancy: int = 1,
        identity: PrivateKey | None = None,
        resolver: Resolver | None = None,
        request_timeout_ms: int = 10_000,
        keep_alive_ms: int = 60_000,
        buffer_messages: int = 1_024,
        ssl_context: ssl.SSLContext | None = None,
        random_bytes: Callable[[int], bytes] = os.urandom,
        on_event: Callable[[ClientEvent], None] = lambda _: None,
    ) -> None:
        """Args:
            addresses: where to find service peers: multiaddresses, `enr:…` and `enrtree://…`.
                None for the network's own.
            network: name of a preset or path of a TOML file (docs/light-client.md).
            cluster_id: the network's number. A peer of another one is refused. None for the
                network's.
            shards: own shards. A peer that shares none is refused. None: any peer will do.
            redundancy: peers that each message is pushed to. Filters have at least two.
            identity: own key. None for a new one. One key may not be used by two clients at
                once: nwaku keeps one connection for each peer id.
            resolver: asks the DNS for `enrtree://`. None for the system's.
            request_timeout_ms: longest time for an answer. Waiting for a turn does not count.
            keep_alive_ms: interval of pings. NATs and nwaku forget silent connections.
            buffer_messages: messages that a subscription keeps for its reader.
            ssl_context: trusted certificates for `wss`. None for the system's.
            random_bytes: source of keys and request ids.
            on_event: called with each `ClientEvent`.

        Raises:
            InvalidInput: an address that is none, or cannot be dialled.
            ValueError: no address, no cluster, or a number out of range.
            OSError: the network's file cannot be read.
        """
        if isinstance(network, str):
            network = find_network(network)
        if cluster_id is None:
            if network is None:
                raise ValueError("`cluster_id` or `network` must say which network this is")
            cluster_id = network.cluster_id
        if addresses is None and network is not None:
            addresses = network.entry
        texts = [addresses] if isinstance(addresses, str) else list(addresses or ())
        if not texts:
            raise ValueError("`addresses` must name at least one peer")
        for name, value in (
            ("request_timeout_ms", request_timeout_ms),
            ("keep_alive_ms", keep_alive_ms),
            ("buffer_messages", buffer_messages),
        ):
            if value < 1:
                raise ValueError(f"`{name}` must be at least 1 (got {value})")
        if not 1 <= redundancy <= MAX_REDUNDANCY:
            raise ValueError(
                f"`redundancy` must be between 1 and {MAX_REDUNDANCY} (got {redundancy})"
            )
        self._own = Metadata(cluster_id, frozenset(shards))
        self._redundancy = redundancy
        self._buffer_messages = buffer_messages
        most = MAX_MESSAGE_BYTES if network is None else network.max_message_bytes
        self._max_message_bytes = most
        self._pushes = RecentPushes()
        self._cursors: dict[bytes, Entry] = {}
        """The Store that gave each of the last cursors."""
        self._refused: WeakKeyDictionary[Carrier, int] = WeakKeyDictionary()
        """Pushes of each connection that could not be read."""
        self._on_event = on_event
        self._subscriptions = Subscriptions(on_event)
        self._host = Host(
            identity or PrivateKey(KeyType.SECP256K1, random_bytes(32)),
            handlers={
                FILTER_PUSH: MessageSink(most + OVERHEAD_BYTES, self._take_push, self._refuse_push),
                METADATA: self._answer_metadata,
            },
            random_bytes=random_bytes,
        )
        book = self._book = PeerBook(
            self._own, random=lambda: int.from_bytes(random_bytes(4), "big")
        )
        trees = _sorted_in(book, texts)
        self._keeper = Keeper(
            self._host,
            book,
            Search(book, trees, resolver or SystemResolver(), on_event),
            self._subscriptions,
            own=self._own,
            redundancy=redundancy,
            timeout_ms=request_timeout_ms,
            keep_alive_ms=keep_alive_ms,
            max_message_bytes=most,
            ssl_context=ssl_context,
            random_bytes=random_bytes,
            on_event=on_event,
        )
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> LightClient:
        await self._stack.enter_async_context(self._host)
        tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._stack.callback(tasks.cancel_scope.cancel)
        self._asker = Asker(self._keeper, tasks)
        tasks.start_soon(self._keeper.run)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()  # the block's exception goes on as it is

    async def connect(self) -> ServicePeer:
        """Return a connected service peer, and dial a peer if necessary.

        Raises:
            NodeUnreachable: no peer answers. The message names the last reason.
            WrongNetwork: the peers belong to another cluster, or share no shard.
        """
        ((_, peer),) = await self._keeper.serving(None, 1)
        return peer

    async def light_push(
        self, message: WakuMessage, pubsub_topic: str, *, urgent: bool = True
    ) -> LightPushAnswer:
        """Publish a message through `redundancy` peers. Return when the first of these peers has
        accepted the message.

        If a peer fails, another connected peer replaces it. At most 100 kB and 8 messages are being
        sent to a peer at a time. A message that is not `urgent` waits for urgent messages.

        Raises:
            RlnProofRequired: the network takes messages with a proof only.
            OutOfRlnProofs: the peers have no proofs left for this epoch (504).
            RateLimited: too many messages (429). No peer is asked until the pause is over.
            NoPeers: the peers know no node on this shard (505), or reached none.
            MessageTooLarge: the encoded message is over the network's limit. No peer is asked.
            BadRequest: a peer refuses the message.
            EndpointMissing: no peer offers light push.
            WrongNetwork: the peers belong to another cluster, or share no shard.
            NodeUnreachable, BadAnswer, NodeFailure: no answer, or none that can be used.
        """
        size_bytes = len(encode_message(message))
        if size_bytes > self._max_message_bytes:
            detail = f"{size_bytes} bytes encoded; at most {self._max_message_bytes}"
            raise MessageTooLarge("light_push", detail=detail)

        digest = message_hash(pubsub_topic, message)

        async def push(_: Entry, peer: ServicePeer) -> LightPushAnswer:
            answer = LightPushAnswer(0)  # where the peer has the message already
            with self._pushes.pushing(digest, peer.link.peer_id.multihash):
                answer = await peer.light_push(message, pubsub_topic, urgent=urgent)
            return answer

        with self._subscriptions.publishing(pubsub_topic, message):
            answered = await self._asker.ask(Role.LIGHT_PUSH, push, count=self._redundancy)
        assert answered is not None
        return answered[1]

    @asynccontextmanager
    async def subscribe(
        self, pubsub_topic: str, content_topics: Sequence[str]
    ) -> AsyncIterator[MemoryObjectReceiveStream[Pushed]]:
        """Ask at least two peers to push messages of the topics. The returned stream yields
        `Pushed`, each message once.

        Query Store for messages that passed while no peer was connected (see
        `SubscriptionRenewed`). If no peer accepts the subscription and a peer answers 429, retry
        for three minutes.

        Raises:
            ValueError: no content topic, or more than 100.
            RateLimited, BadRequest: the peers refuse the subscription.
            EndpointMissing: no peer offers filter.
            WrongNetwork: the peers belong to another cluster, or share no shard.
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
        subscription = Subscription(pubsub_topic, topics, inbox)
        with inbox, outbox:
            self._subscriptions.add(subscription)
            try:
                await self._register(subscription)
                yield outbox
            finally:
                self._subscriptions.discard(subscription)
                peers = self._keeper.peers
                known = [(e, peers[e]) for e in subscription.peers if e in peers]
                with anyio.move_on_after(UNREGISTER_S):
                    await self._subscriptions.unregister(subscription, known)

    async def store(self, query: StoreQuery) -> StorePage:
        """Return one page of messages from a Store. The Stores take turns, but further pages come
        from the same Store.

        Raises:
            CursorExpired: start again without a cursor.
            RateLimited, BadRequest: the peers refuse the query.
            EndpointMissing: no peer offers a Store.
            WrongNetwork: the peers belong to another cluster, or share no shard.
            NodeUnreachable, BadAnswer, NodeFailure: no answer, or none that can be used.
        """

        async def ask(_: Entry, peer: ServicePeer) -> StorePage:
            return await peer.store(query)

        first = self._cursors.pop(query.cursor, None) if query.cursor else None
        answered = await self._asker.ask(Role.STORE, ask, first=first)
        assert answered is not None
        entry, page = answered
        if page.cursor is not None:
            self._cursors[page.cursor] = entry
            if len(self._cursors) > MAX_CURSORS:
                del self._cursors[next(iter(self._cursors))]
        return page

    def store_all(
        self, query: StoreQuery, *, max_pages: int = MAX_PAGES
    ) -> AsyncGenerator[StoreEntry, None]:
        """Yield the entries of all pages, each message once. If the Store has lost the cursor, the
        query starts again.

        Raises:
            PageLimitReached: `max_pages` pages and no end.
            WakuError: as `store`. The entries so far are good.
        """
        return all_entries(self.store, query, max_pages=max_pages, call="store_all")

    async def store_by_hash(self, hashes: Sequence[bytes]) -> list[StoreEntry]:
        """Return the requested messages that the Stores have. A Store is asked only for messages
        that earlier Stores lacked.

        Messages with another hash than requested are left out.

        Raises:
            WakuError: as `store`, where no Store answers.
        """
        found: dict[bytes, StoreEntry] = {}
        for start in range(0, len(hashes), MAX_PAGE_ENTRIES):
            asked: list[Entry] = []
            missing = set(hashes[start : start + MAX_PAGE_ENTRIES]) - found.keys()
            while missing and len(asked) < STORES:
                try:
                    answered = await self._ask_by_hash(missing, asked)
                except WakuError as error:
                    if asked:
                        break  # what the first had is good
                    refused = error.__cause__
                    raise (refused if isinstance(refused, WakuError) else error) from None
                if answered is None:
                    break
                asked.append(answered[0])
                found.update(answered[1])
                missing -= answered[1].keys()
        return list(found.values())

    async def _ask_by_hash(
        self, hashes: Collection[bytes], asked: Collection[Entry]
    ) -> tuple[Entry, dict[bytes, StoreEntry]] | None:
        """What the next Store has of these. None where all were asked."""
        query = StoreQuery(hashes=tuple(hashes), page_size=MAX_PAGE_ENTRIES)

        async def ask(_: Entry, peer: ServicePeer) -> StorePage:
            try:
                return await peer.store(query)
            except (BadRequest, EndpointMissing) as error:
                if error.status is None:
                    raise
                # It may refuse hashes alone: it stays a Store, and another one is asked for these.
                raise NodeFailure(error.call, status=error.status, detail=error.detail) from error

        answered = await self._asker.ask(Role.STORE, ask, besides=asked)
        if answered is None:
            return None
        entry, page = answered
        true = {item.message_hash: item for item in page.entries if _is_true(item)}
        return entry, {digest: true[digest] for digest in hashes if digest in true}

    def renew(self) -> None:
        """Renew every subscription, because expected messages did not arrive."""
        self._keeper.renew()

    async def ping(self) -> float:
        """Measure the round trip time to a peer (s).

        Raises:
            NodeUnreachable: no answer in time.
        """
        return await (await self.connect()).ping()

    async def _register(self, subscription: Subscription) -> None:
        """Register with as many peers as wanted. One is enough, the keeper adds the rest."""

        async def register(entry: Entry, peer: ServicePeer) -> None:
            await self._subscriptions.register(entry, peer, [subscription])

        asked: list[Entry] = []
        gives_up_s = anyio.current_time() + PATIENCE_S
        while len(asked) < max(2, self._redundancy):
            try:
                answered = await self._asker.ask(Role.FILTER, register, besides=asked)
            except WakuError as error:
                if subscription.peers:
                    return
                is_limited = error.retryable and self._book.is_limited(Role.FILTER)
                if not is_limited or anyio.current_time() >= gives_up_s:
                    raise
                with anyio.CancelScope(deadline=gives_up_s):
                    await self._keeper.rested(Role.FILTER)
                continue
            if answered is None:
                return
            asked.append(answered[0])

    # What the peers open

    def _take_push(self, link: Carrier, data: bytes) -> None:
        """Take a push, which has a stream to itself or not (T9)."""
        try:
            pushed = decode_push(data)
        except InvalidInput as error:
            self._refuse_push(link, error)
            raise
        self._subscriptions.take(*pushed, self._book.find(link.peer_id))

    def _refuse_push(self, link: Carrier, error: Libp2pError) -> None:
        """Name the peer. Give up one that goes on like this."""
        self._on_event(PushRefused(link.peer_id, str(error)))
        count = self._refused[link] = self._refused.get(link, 0) + 1
        if count == MAX_REFUSED:
            link.close(PeerViolation(f"{count} pushes cannot be read, the last: {error}"))

    async def _answer_metadata(self, stream: Stream) -> None:
        """Say which network this client belongs to: nwaku asks, and hangs up otherwise (T12)."""
        with suppress(InvalidInput):
            if (data := await stream.receive_message(MAX_ANSWER_BYTES)) is not None:
                self._keeper.heard(stream.link.peer_id, decode_metadata(data))
        await stream.send_message(encode_metadata(self._own))


def _is_true(entry: StoreEntry) -> bool:
    """Return True if a message has the hash that it is filed under, as far as that can be seen."""
    if entry.message is None or entry.pubsub_topic is None:
        return True
    return message_hash(entry.pubsub_topic, entry.message) == entry.message_hash


def _sorted_in(book: PeerBook, texts: Sequence[str]) -> list[str]:
    """Put peers into the book, and return the lists of peers.

    Raises:
        InvalidInput: a text is neither.
    """
    trees = []
    for text in texts:
        check_entry(text)
        if text.startswith("/"):
            book.add_address(Multiaddr.parse(text))
        elif text.startswith("enr:"):
            book.add_record(NodeRecord.parse(text), is_configured=True)
        else:
            trees.append(text)
    return trees
