"""A scripted service peer, joined with a light client in memory, as unkind as a test wants."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio

from tests import inside
from tests.waku.libp2p.driver.memory import pipes
from tests.waku.libp2p.pair import LISTENER
from waku import WakuMessage
from waku.libp2p import DialFailed, KeyType, PrivateKey
from waku.libp2p.driver import Handler, Host, Link, Stream
from waku.p2p import ClientEvent, LightClient, codec
from waku.p2p import waku_libp2p_pb2 as pb
from waku.p2p.protocols import (
    FILTER_PUSH,
    FILTER_SUBSCRIBE,
    LIGHT_PUSH_2,
    LIGHT_PUSH_3,
    METADATA,
    PEER_EXCHANGE,
    STORE_3,
)

SHARD = "/waku/2/rs/1/0"
TOPIC = "/app/1/chat/proto"
LIMIT = 1_000_000
HASH = bytes(range(32))

Subscribed = tuple[int, str, tuple[str, ...]]


def answering(kind: Any, answer: Callable[[Any], Any]) -> Handler:
    """A handler that answers each request with a message, with raw bytes, or not at all (None)."""

    async def handle(stream: Stream) -> None:
        data = await stream.receive_message(LIMIT)
        assert data is not None
        answered = answer(kind.FromString(data))
        if answered is None:
            await anyio.sleep_forever()
        if isinstance(answered, bytes):
            await stream.send(answered)
        else:
            await stream.send_message(answered.SerializeToString())

    return handle


class Service:
    """What the peer does; a test replaces what it wants otherwise."""

    def __init__(self, identity: PrivateKey = LISTENER) -> None:
        self.identity = identity
        self.reachable = True
        self.metadata = codec.Metadata(1, frozenset({0, 1}))
        self.asked: list[Any] = []
        self.subscribed: list[Subscribed] = []
        self.dials: list[float] = []
        self.dial_s = 0.0
        """How long a dial takes to fail."""
        self.dialled_after: anyio.Event | None = None
        """What a dial waits for, if anything."""
        self.links: list[Link] = []
        self.filter_status = 200
        self.push_back = False
        """Push to its sender what is published, as a subscribed client gets it."""
        self.push_answer: Callable[[Any], Any] = lambda request: pb.LightpushResponse(
            request_id=request.request_id, status_code=200, relay_peer_count=3
        )
        self.store_answer: Callable[[Any], Any] = lambda request: pb.StoreQueryResponse(
            request_id=request.request_id, status_code=200
        )
        self.records: list[bytes] = []
        """Node records for who asks for peers."""
        self.exchanges: list[float] = []
        self.handlers: dict[str, Handler] = {
            METADATA: self._answer_metadata,
            LIGHT_PUSH_3: self._take_push,
            LIGHT_PUSH_2: answering(pb.PushRPC, self._push_2),
            FILTER_SUBSCRIBE: answering(pb.FilterSubscribeRequest, self.filter),
            STORE_3: answering(pb.StoreQueryRequest, self._store),
            PEER_EXCHANGE: answering(pb.PeerExchangeRpc, self._exchange),
        }

    @property
    def address(self) -> str:
        """Where the client dials it; each has an address of its own."""
        return f"/ip4/10.0.0.{self.identity.sign(b'')[-1]}/tcp/1/p2p/{self.identity.peer_id}"

    def silence(self) -> None:
        """Answer nothing any more, as a machine behind a dead connection: no end, no reset."""
        for name in self.handlers:
            self.handlers[name] = lambda _: anyio.sleep_forever()
        for link in self.links:
            handlers = inside.handlers(link)
            handlers.update((name, lambda _: anyio.sleep_forever()) for name in list(handlers))

    async def _answer_metadata(self, stream: Stream) -> None:
        await stream.receive_message(LIMIT)
        await stream.send_message(codec.encode_metadata(self.metadata))

    async def _take_push(self, stream: Stream) -> None:
        await answering(pb.LightpushRequest, self._push)(stream)
        if self.push_back:
            request = self.asked[-1]
            push = pb.MessagePush(waku_message=request.message, pubsub_topic=request.pubsub_topic)
            async with stream.link.open([FILTER_PUSH]) as pushing:
                await pushing.send_message(push.SerializeToString())

    def _push(self, request: Any) -> Any:
        self.asked.append(request)
        return self.push_answer(request)

    def _push_2(self, request: Any) -> Any:
        self.asked.append(request)
        return pb.PushRPC(
            request_id=request.request_id, response=pb.PushResponse(is_success=True, info="OK")
        )

    def filter(self, request: Any) -> Any:
        self.subscribed.append(
            (request.filter_subscribe_type, request.pubsub_topic, tuple(request.content_topics))
        )
        status, self.filter_status = self.filter_status, 200
        return pb.FilterSubscribeResponse(request_id=request.request_id, status_code=status)

    def _exchange(self, _: Any) -> Any:
        self.exchanges.append(anyio.current_time())
        infos = [pb.PeerInfo(enr=record) for record in self.records]
        return pb.PeerExchangeRpc(
            response=pb.PeerExchangeResponse(peer_infos=infos, status_code=200)
        )

    def _store(self, request: Any) -> Any:
        self.asked.append(request)
        return self.store_answer(request)

    async def push(self, *messages: bytes, topic: str = TOPIC, streams: int = 1) -> None:
        """Push messages to the client, on so many streams at once."""
        for _ in range(streams):
            async with self.links[-1].open([FILTER_PUSH]) as stream:
                for payload in messages:
                    message = codec.to_proto(WakuMessage(payload, topic))
                    push = pb.MessagePush(waku_message=message, pubsub_topic=SHARD)
                    await stream.send_message(push.SerializeToString())
                stream.end()
                assert await stream.receive() == b""


@asynccontextmanager
async def served(
    *services: Service,
    events: list[ClientEvent] | None = None,
    addresses: Sequence[str] | None = None,
    **options: Any,
) -> AsyncIterator[LightClient]:
    """A client whose dials reach the services by their peer ids, or the first without one."""
    options = {"cluster_id": 1, "shards": [0], **options}
    if events is not None:
        options["on_event"] = events.append
    client = LightClient(addresses or [service.address for service in services], **options)
    by_id = {service.identity.peer_id: service for service in services}
    async with AsyncExitStack() as stack:
        hosts = {
            service: await stack.enter_async_context(
                Host(service.identity, handlers=service.handlers)
            )
            for service in services
        }
        tasks = await stack.enter_async_context(anyio.create_task_group())

        async def accept(service: Service, pipe: Any) -> None:
            service.links.append(await hosts[service].connect(pipe, dialler=False))

        async def dial(address: Any, *, ssl_context: Any = None) -> Link:
            service = services[0] if address.peer_id is None else by_id.get(address.peer_id)
            if service is not None:
                service.dials.append(anyio.current_time())
            if service is None or not service.reachable:
                await anyio.sleep(service.dial_s if service else 0)
                raise DialFailed(f"{address}: nobody is there")
            if service.dialled_after is not None:
                await service.dialled_after.wait()
            ours, theirs = pipes()
            tasks.start_soon(accept, service, theirs)
            return await inside.host(client).connect(ours, dialler=True, expected=address.peer_id)

        inside.host(client).dial = dial  # type: ignore[method-assign]
        async with client:
            yield client
        tasks.cancel_scope.cancel()


def identity(number: int) -> PrivateKey:
    """A key for one more service."""
    return PrivateKey(KeyType.SECP256K1, number.to_bytes(32, "big"))
