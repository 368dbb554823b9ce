"""Waku's protocols over libp2p: what peers answer a client, and what they ask a service node."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

from waku.libp2p import InvalidInput
from waku.models import StoreQuery, WakuMessage
from waku.node import EmbeddedNode, NodeOptions
from waku.node.envelope import Envelope
from waku.node.libp2p.answers import Answers
from waku.node.libp2p.options import ListenLimits
from waku.p2p import codec, serving_codec
from waku.p2p.codec import FilterRequest, Metadata

from ..target import Target

DECODERS: Final[tuple[Callable[[bytes], object], ...]] = (
    codec.decode_answer,
    codec.decode_light_push_2_answer,
    codec.decode_metadata,
    codec.decode_peer_exchange_answer,
    codec.decode_push,
    codec.decode_store_answer,
    serving_codec.decode_filter_request,
    serving_codec.decode_light_push,
    serving_codec.decode_light_push_2,
    serving_codec.decode_peer_exchange_query,
    serving_codec.decode_store_query,
)
MESSAGE: Final = WakuMessage(b"hello", "/app/1/chat/proto", timestamp=1)
SHARD: Final = "/waku/2/rs/1/0"
OPTIONS: Final = NodeOptions(num_shards=2, store_capacity=10, now_ns=lambda: 1)


def encoded() -> Iterator[bytes]:
    """What we write ourselves: requests and answers of each protocol."""
    yield codec.encode_light_push("1", MESSAGE, SHARD)
    yield codec.encode_light_push_2("1", MESSAGE, SHARD)
    yield codec.encode_filter_request("1", FilterRequest.SUBSCRIBE, SHARD, ["/a/1/b/c"])
    yield codec.encode_store_query("1", StoreQuery(hashes=(bytes(32),), cursor=bytes(32)))
    yield codec.encode_metadata(Metadata(1, frozenset({0, 1})))
    yield codec.encode_peer_exchange_query(3)
    yield serving_codec.encode_push(SHARD, MESSAGE)


def _decoders(data: bytes) -> None:
    """Every decoder takes bytes for what they are, or refuses them by one exception."""
    for decode in DECODERS:
        try:
            decode(data)
        except InvalidInput:
            continue


class _Peer:
    """A peer that may ask as much as it likes."""

    peer_id = "peer"

    def admit(self) -> None: ...

    def spent(self, cpu_s: float) -> None: ...

    def filter_subscriber(self) -> "_Peer":
        return self

    def push(self, envelope: Envelope) -> None:
        assert serving_codec.encode_push(envelope.pubsub_topic, envelope.message)


def requests() -> Iterator[bytes]:
    """Each of them to each protocol."""
    for protocol in range(6):
        for data in encoded():
            yield bytes([protocol]) + data


def _requests(data: bytes) -> None:
    """The first byte is the protocol. Every request has an answer, and its client can read it."""
    node = EmbeddedNode(OPTIONS)
    offered = list(Answers(node, ListenLimits(), lambda: ()).offered().items())
    protocol, (respond, _) = offered[data[0] % len(offered) if data else 0]
    answer = _at_once(respond(_Peer(), data[1:]))
    node.filter.drop(_Peer())
    assert node.archive is not None
    node.archive.close()
    readers = {
        "metadata": codec.decode_metadata,
        "peer-exchange": codec.decode_peer_exchange_answer,
        "lightpush/2": codec.decode_light_push_2_answer,
        "store-query": codec.decode_store_answer,
    }
    reader = next((r for name, r in readers.items() if name in protocol), codec.decode_answer)
    reader(answer)


def _at_once(answer: Awaitable[bytes]) -> bytes:
    """What a service returns that waits for nothing."""
    steps: Any = answer
    try:
        steps.send(None)
    except StopIteration as done:
        assert isinstance(done.value, bytes)
        return done.value
    raise AssertionError("an answer waits for something")


TARGETS: Final = (
    Target("waku_p2p_messages", _decoders, encoded),
    Target("waku_p2p_requests", _requests, requests),
)
