"""A node that listens on loopback, and peers that ask it as their test wants."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from waku import WakuMessage
from waku.libp2p import KeyType, Multiaddr, PrivateKey
from waku.libp2p.driver import Host, Link
from waku.node import EmbeddedNode, Listen, ListenLimits, NodeOptions
from waku.p2p import codec
from waku.p2p import waku_libp2p_pb2 as pb
from waku.p2p.codec import FilterRequest
from waku.p2p.protocols import FILTER_PUSH, FILTER_SUBSCRIBE, MAX_PAGE_BYTES

TOPIC = "/app/1/chat/proto"
SHARD = "/waku/2/rs/1/4"
"""That of `TOPIC`."""
NODE_KEY = PrivateKey(KeyType.SECP256K1, bytes(31) + b"\x07")
KINDS = {"tcp": "/ip4/127.0.0.1/tcp/0", "ws": "/ip4/127.0.0.1/tcp/0/ws"}


@asynccontextmanager
async def listening(
    *addresses: str,
    options: NodeOptions | None = None,
    limits: ListenLimits | None = None,
    **listen: Any,
) -> AsyncIterator[EmbeddedNode]:
    """A node at these addresses; by TCP where there are none."""
    where = Listen(
        addresses or (KINDS["tcp"],),
        **{"identity": NODE_KEY, "limits": limits or ListenLimits(), **listen},
    )
    async with EmbeddedNode(options, listen=where) as node:
        yield node


@asynccontextmanager
async def dialled(node: EmbeddedNode, number: int = 1, **handlers: Any) -> AsyncIterator[Link]:
    """A peer of one's own, connected."""
    key = PrivateKey(KeyType.SECP256K1, bytes(30) + b"\x09" + bytes([number]))
    served = {FILTER_PUSH: handlers["pushes"]} if handlers else {}
    async with Host(key, handlers=served) as host:
        yield await host.dial(Multiaddr.parse(node.libp2p_addresses[0]))


async def asked(link: Link, protocol: str, request: bytes) -> bytes:
    """The answer to a request, as it was sent."""
    async with link.open([protocol]) as stream:
        answer = await stream.request(request, MAX_PAGE_BYTES)
    assert answer is not None
    return answer


async def subscribe(link: Link, topics: Sequence[str] = (TOPIC,)) -> codec.ResponseStatus:
    request = codec.encode_filter_request("1", FilterRequest.SUBSCRIBE, SHARD, topics)
    return codec.decode_answer(await asked(link, FILTER_SUBSCRIBE, request))


def message(number: int, size: int = 0, topic: str = TOPIC) -> WakuMessage:
    """A message that differs from those of other numbers."""
    return WakuMessage(b"message %d" % number + bytes(size), topic, timestamp=1_000 + number)


def push_2(sent: WakuMessage, topic: str = SHARD) -> bytes:
    """A request of light push v2."""
    request = pb.PushRequest(pubsub_topic=topic, message=codec.to_proto(sent))
    return pb.PushRPC(request_id="one", request=request).SerializeToString()


async def until(condition: Callable[[], bool]) -> None:
    """Return as soon as other tasks have made something true."""
    with anyio.fail_after(3_600):
        while not condition():  # noqa: ASYNC110, virtual time
            await anyio.sleep(0.05)
