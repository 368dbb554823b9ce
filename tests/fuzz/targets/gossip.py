"""A gossip router that hears anything, and what comes instead of a WebSocket."""

from collections.abc import Iterator
from random import Random
from typing import Final

from tests import inside
from waku.libp2p import InvalidInput, PeerViolation
from waku.libp2p.driver.framing import WebSocketClient, WebSocketServer
from waku.libp2p.gossipsub import GossipOptions, Router
from waku.libp2p.gossipsub_pb2 import GossipRpc

from .. import vectors
from ..target import Target, joined, records

TOPIC: Final = "/waku/2/rs/1/6"
SMALL: Final = GossipOptions(
    queue_bytes=2_000, rpc_bytes=2_000, cache_bytes=2_000, seen_ids=8, promises=8, topics_by_peer=4
)


def rpcs() -> Iterator[bytes]:
    """What Go, nwaku and the prototype wrote, in one session."""
    cases = vectors.document("libp2p/gossipsub_rpcs.json")
    yield joined(bytes.fromhex(case["input"]) for case in cases)
    for case in cases[:8]:
        yield joined([bytes.fromhex(case["input"])])


def _gossip(data: bytes) -> None:
    """Two peers say anything: nothing but `InvalidInput`, and every bound holds."""
    router = Router(random=Random(1), now_ms=0, options=SMALL)
    router.subscribe(TOPIC)
    router.connected(0)
    router.connected(1)
    for number, record in enumerate(records(data)):
        try:
            router.receive(number % 2, record, 100 * number)
        except InvalidInput:
            pass
        if number % 4 == 0:
            router.on_heartbeat(100 * number)
        for name in (0, 1):
            peer = router.peers[name]
            assert peer.outgoing_bytes <= SMALL.queue_bytes + SMALL.rpc_bytes
            assert len(peer.topics) <= SMALL.topics_by_peer + 1
        assert (
            inside.sizes(router)["_promises"] <= SMALL.promises
            and len(router.seen) <= SMALL.seen_ids
        )
        assert router.cache.size_bytes <= SMALL.cache_bytes
        assert len(router.mesh(TOPIC)) <= SMALL.mesh_high
        while router.next_event() is not None:
            pass
    for name in (0, 1):
        for rpc in router.take_outgoing(name, 1 << 30):
            GossipRpc.FromString(rpc)


def frames() -> Iterator[bytes]:
    """An upgrade, and frames behind it."""
    yield (
        b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        b"\x82\x85\x00\x00\x00\x00hello"
    )
    yield b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno"


def _frames(data: bytes) -> None:
    """Whatever comes instead of a WebSocket is a violation by the peer."""
    for framing in (WebSocketClient("a.example", 1, secure=False), WebSocketServer()):
        framing.send(b"")
        half = len(data) // 2
        try:
            for part in (data[:half], data[half:]):
                if framing.opened:
                    framing.receive(part)
                else:
                    framing.upgrade(part)
        except PeerViolation:
            pass
        framing.send(b"")


TARGETS: Final = (
    Target("libp2p_gossip", _gossip, rpcs),
    Target(
        "libp2p_websocket", _frames, frames, (b"Sec-WebSocket-Accept: ", b"\r\n\r\n", b"\x82\x7e")
    ),
)
