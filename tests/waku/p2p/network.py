"""Service nodes of one small network: what is pushed to one reaches the subscribers of all."""

import ssl
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio

from waku import message_hash
from waku.libp2p import Libp2pError, Multiaddr, PrivateKey
from waku.libp2p.driver import Handler, Host, Stream
from waku.models import WakuMessage
from waku.p2p import codec
from waku.p2p import waku_libp2p_pb2 as pb
from waku.p2p.protocols import FILTER_PUSH, FILTER_SUBSCRIBE, LIGHT_PUSH_3, METADATA, STORE_3

from .service import answering, identity

MAX_BYTES = 150 * 1024


class ServiceNode:
    """Light push, filter and Store of one node; pushes on one stream a peer, as nwaku does."""

    def __init__(self, network: "ServiceNetwork", key: PrivateKey) -> None:
        self.network = network
        self.filters: dict[Any, set[tuple[str, str]]] = {}
        self.streams: dict[Any, Stream] = {}
        self.requests = 0
        """Filter requests so far."""
        self.host = Host(key, handlers=self.handlers())

    def handlers(self) -> dict[str, Handler]:
        return {
            METADATA: self._metadata,
            LIGHT_PUSH_3: answering(pb.LightpushRequest, self._push),
            FILTER_SUBSCRIBE: self._filter,
            STORE_3: answering(pb.StoreQueryRequest, self._store),
        }

    @property
    def stored(self) -> dict[bytes, tuple[str, Any]]:
        return self.network.stored

    async def deliver(self, topic: str, message: Any) -> None:
        """Push to the subscribers that want it; one that is gone is forgotten."""
        data = pb.MessagePush(waku_message=message, pubsub_topic=topic).SerializeToString()
        for link, wanted in list(self.filters.items()):
            if (topic, message.content_topic) in wanted:
                try:
                    if link not in self.streams:
                        self.streams[link] = link.open([FILTER_PUSH])
                    await self.streams[link].send_message(data)
                except Libp2pError:
                    self.filters.pop(link, None)
                    self.streams.pop(link, None)

    async def _metadata(self, stream: Stream) -> None:
        await stream.receive_message(MAX_BYTES)
        await stream.send_message(codec.encode_metadata(self.network.metadata))

    def _push(self, request: Any) -> Any:
        status = 200
        if len(request.message.payload) > MAX_BYTES:
            status = 413
        else:
            self.network.publish(request.pubsub_topic, request.message)
        return pb.LightpushResponse(
            request_id=request.request_id, status_code=status, relay_peer_count=1
        )

    async def _filter(self, stream: Stream) -> None:
        data = await stream.receive_message(MAX_BYTES)
        request = pb.FilterSubscribeRequest.FromString(data or b"")
        wanted = {(request.pubsub_topic, topic) for topic in request.content_topics}
        kind, status = request.filter_subscribe_type, 200
        self.requests += 1
        if kind == 1 and request.pubsub_topic in self.network.unserved:
            status = 400
        elif kind == 1:
            self.filters.setdefault(stream.link, set()).update(wanted)
        elif kind == 2:
            self.filters.get(stream.link, set()).difference_update(wanted)
        elif stream.link not in self.filters:
            status = 404
        response = pb.FilterSubscribeResponse(request_id=request.request_id, status_code=status)
        await stream.send_message(response.SerializeToString())

    def _store(self, request: Any) -> Any:
        found = [
            (digest, topic, message)
            for digest, (topic, message) in self.stored.items()
            if (not request.message_hashes or digest in request.message_hashes)
            and (not request.content_topics or message.content_topic in request.content_topics)
            and (not request.time_start or message.timestamp >= request.time_start)
            and (not request.time_end or message.timestamp <= request.time_end)
        ]
        found.sort(key=lambda item: item[2].timestamp)
        at = 0
        if request.pagination_cursor:
            at = [digest for digest, _, _ in found].index(request.pagination_cursor) + 1
        page = found[at : at + (request.pagination_limit or 20)]
        response = pb.StoreQueryResponse(request_id=request.request_id, status_code=200)
        for digest, topic, message in page:
            response.messages.add(message_hash=digest, message=message, pubsub_topic=topic)
        if at + len(page) < len(found):
            response.pagination_cursor = page[-1][0]
        return response


class ServiceNetwork:
    """Nodes that share what is published."""

    def __init__(self, count: int, *, cluster_id: int = 1, shards: Collection[int] = range(8)):
        self.metadata = codec.Metadata(cluster_id, frozenset(shards))
        self.unserved: set[str] = set()
        """Shards that no node has a filter for."""
        self.nodes = [ServiceNode(self, identity(77 + number)) for number in range(count)]
        self.stored: dict[bytes, tuple[str, Any]] = {}
        self._queue: Any = None

    @asynccontextmanager
    async def listening(
        self, kind: str = "", *, ssl_context: ssl.SSLContext | None = None
    ) -> AsyncIterator[Sequence[str]]:
        """Listen on loopback; give the addresses."""
        async with AsyncExitStack() as stack:
            addresses = []
            for node in self.nodes:
                await stack.enter_async_context(node.host)
                at = Multiaddr.parse(f"/ip4/127.0.0.1/tcp/0{kind}")
                addresses.append(str(await node.host.listen(at, ssl_context=ssl_context)))
            self._queue, queue = anyio.create_memory_object_stream[tuple[str, Any]](10_000)
            tasks = await stack.enter_async_context(anyio.create_task_group())

            async def carry() -> None:
                async with queue:
                    async for topic, message in queue:
                        for node in self.nodes:
                            await node.deliver(topic, message)

            tasks.start_soon(carry)
            with self._queue:
                yield addresses
            tasks.cancel_scope.cancel()

    def publish(self, topic: str, message: Any) -> None:
        """Store a message, and give it to every node's subscribers."""
        model = WakuMessage(
            message.payload, message.content_topic, timestamp=message.timestamp, meta=message.meta
        )
        digest = message_hash(topic, model)
        if not message.ephemeral:
            self.stored[digest] = topic, message
        self._queue.send_nowait((topic, message))
