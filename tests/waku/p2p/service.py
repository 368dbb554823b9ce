"""A scripted service peer, joined with a light client in memory, as unkind as a test wants."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from tests.waku.libp2p.driver.memory import pipes
from tests.waku.libp2p.pair import LISTENER
from waku import WakuMessage
from waku.libp2p import DialFailed
from waku.libp2p.driver import Handler, Host, Link, Stream
from waku.p2p import ClientEvent, LightClient, codec
from waku.p2p import waku_libp2p_pb2 as pb
from waku.p2p.protocols import (
    FILTER_PUSH,
    FILTER_SUBSCRIBE,
    LIGHT_PUSH_2,
    LIGHT_PUSH_3,
    METADATA,
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

    def __init__(self) -> None:
        self.reachable = True
        self.metadata = codec.Metadata(1, frozenset({0, 1}))
        self.asked: list[Any] = []
        self.subscribed: list[Subscribed] = []
        self.dials: list[float] = []
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
        self.handlers: dict[str, Handler] = {
            METADATA: self._answer_metadata,
            LIGHT_PUSH_3: self._take_push,
            LIGHT_PUSH_2: answering(pb.PushRPC, self._push_2),
            FILTER_SUBSCRIBE: answering(pb.FilterSubscribeRequest, self._filter),
            STORE_3: answering(pb.StoreQueryRequest, self._store),
        }

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

    def _filter(self, request: Any) -> Any:
        self.subscribed.append(
            (request.filter_subscribe_type, request.pubsub_topic, tuple(request.content_topics))
        )
        status, self.filter_status = self.filter_status, 200
        return pb.FilterSubscribeResponse(request_id=request.request_id, status_code=status)

    def _store(self, request: Any) -> Any:
        self.asked.append(request)
        return self.store_answer(request)

    async def push(self, *messages: bytes, topic: str = TOPIC, streams: int = 1) -> None:
        """Push messages to the client, on so many streams at once."""
        for _ in range(streams):
            async with self.links[-1].open([FILTER_PUSH]) as stream:
                for payload in messages:
                    message = codec._to_proto(WakuMessage(payload, topic))
                    push = pb.MessagePush(waku_message=message, pubsub_topic=SHARD)
                    await stream.send_message(push.SerializeToString())
                stream.end()
                assert await stream.receive() == b""


@asynccontextmanager
async def served(
    service: Service, events: list[ClientEvent] | None = None, **options: Any
) -> AsyncIterator[LightClient]:
    """A client whose dials all reach the service."""
    options = {"cluster_id": 1, "shards": [0], **options}
    if events is not None:
        options["on_event"] = events.append
    client = LightClient(f"/ip4/127.0.0.1/tcp/1/p2p/{LISTENER.peer_id}", **options)
    async with (
        Host(LISTENER, handlers=service.handlers) as host,
        anyio.create_task_group() as tasks,
    ):

        async def accept(pipe: Any) -> None:
            service.links.append(await host.connect(pipe, dialler=False))

        async def dial(address: Any, *, ssl_context: Any = None) -> Link:
            service.dials.append(anyio.current_time())
            if not service.reachable:
                raise DialFailed(f"{address}: nobody is there")
            ours, theirs = pipes()
            tasks.start_soon(accept, theirs)
            return await client._host.connect(ours, dialler=True, expected=address.peer_id)

        client._host.dial = dial  # type: ignore[method-assign]
        async with client:
            yield client
        tasks.cancel_scope.cancel()
