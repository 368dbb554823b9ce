"""Our relay leaf and our nodes beside go-waku, a separate process, and beside nwaku."""

import os
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from bench.native import address_of, node, rest_of
from interop.go_build import GoUnavailable, built
from waku import RelayLeaf, StoreQuery, WakuClient, WakuMessage
from waku.node import EmbeddedNode, NodeOptions
from waku.p2p import ClientEvent, PeerConnected, Pushed

from ..needed import PATIENCE_S
from .images import GO_OPTIONS, NODE_SOURCES

pytestmark = pytest.mark.anyio

SHARD = "/waku/2/rs/42/0"
TOPIC = "/app/1/native/proto"
NODES = ("127.0.0.94", "127.0.0.95")
COUNT = 200


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[str, str]]:
    """Two go-waku nodes that do not know each other."""
    try:
        program: Path = built(NODE_SOURCES, *GO_OPTIONS, cgo=True, install=True)
    except GoUnavailable as error:
        pytest.skip(f"go-waku cannot be built: {error}")
    with node(program, NODES[0], "-shards", "42:0"), node(program, NODES[1], "-shards", "42:0"):
        yield NODES


def message(payload: bytes) -> WakuMessage:
    return WakuMessage(payload, TOPIC, timestamp=time.time_ns())


async def got_by(rest: WakuClient, wanted: set[bytes]) -> set[bytes]:
    """The payloads that a node's relay gave to its REST API, until all that is wanted has come."""
    got = set[bytes]()
    with anyio.move_on_after(PATIENCE_S):
        while not wanted <= got:
            got |= {one.payload for one in await rest.relay_messages(SHARD)}
            await anyio.sleep(0.1)
    return got


async def read(messages: AsyncIterator[Pushed], wanted: set[bytes]) -> list[bytes]:
    """What a leaf was given, until all that is wanted has come."""
    payloads: list[bytes] = []
    with anyio.move_on_after(PATIENCE_S):
        async for pushed in messages:
            payloads.append(pushed.message.payload)
            if wanted <= set(payloads):
                break
    return payloads


async def test_a_leaf_publishes_receives_and_joins_two_nodes(nodes: tuple[str, str]) -> None:
    """What one node publishes reaches the other through our leaf alone."""
    events: list[ClientEvent] = []
    peers = [address_of(name) for name in nodes]
    async with (
        WakuClient(rest_of(nodes[0])) as first,
        WakuClient(rest_of(nodes[1])) as second,
        RelayLeaf(peers, cluster_id=42, shards=[0], on_event=events.append) as leaf,
        leaf.subscribe(SHARD) as messages,
    ):
        await first.relay_subscribe([SHARD])
        await second.relay_subscribe([SHARD])
        router = leaf._meshes._router
        assert router is not None
        with anyio.fail_after(PATIENCE_S):
            while len(router.mesh(SHARD)) < 2:  # noqa: ASYNC110
                await anyio.sleep(0.1)
        out = {b"out %d" % number for number in range(COUNT)}
        for payload in out:
            await leaf.publish(message(payload), SHARD)
        assert await got_by(first, out) == await got_by(second, out) == out
        across = {b"across %d" % number for number in range(COUNT)}
        for payload in across:
            await first.relay_publish(SHARD, message(payload))
        payloads = await read(messages, out | across)
        assert sorted(payloads) == sorted(out | across), "each once"
        assert across <= await got_by(second, across)
    assert len([event for event in events if isinstance(event, PeerConnected)]) == 2


@pytest.mark.parametrize("peer", ["go-waku", "nwaku"])
async def test_two_embedded_nodes_share_a_mesh(peer: str, request: pytest.FixtureRequest) -> None:
    """A chain of the peer and two of ours: the last one knows our other node alone.

    `INTEROP_NWAKU` names a running nwaku, since no registry has one: the address of its REST API,
    a space, and its multiaddress; cluster 42, shard 0, without RLN.
    """
    if peer == "nwaku":
        named = os.environ.get("INTEROP_NWAKU", "").split()
        if len(named) != 2:
            pytest.skip(
                "nwaku is not here: INTEROP_NWAKU must be its REST URL and its multiaddress"
            )
        rest, address = named
    else:
        first, _ = request.getfixturevalue("nodes")
        rest, address = rest_of(first), address_of(first)
    options = NodeOptions(cluster_id=42, num_shards=1)
    async with (
        WakuClient(rest) as foreign,
        EmbeddedNode(options, listen=["/ip4/127.0.0.1/tcp/0"], relay_peers=[address]) as near,
        EmbeddedNode(options, relay_peers=near.libp2p_addresses) as far,
    ):
        await foreign.relay_subscribe([SHARD])
        with anyio.fail_after(PATIENCE_S):
            while (len(near.mesh_peers(SHARD)), len(far.mesh_peers(SHARD))) != (2, 1):  # noqa: ASYNC110
                await anyio.sleep(0.1)
        out = {b"from us %d" % number for number in range(COUNT)}
        for payload in out:
            far.publish(SHARD, message(payload))
        assert out <= await got_by(foreign, out)
        back = {b"from %s %d" % (peer.encode(), number) for number in range(COUNT)}
        for payload in back:
            await foreign.relay_publish(SHARD, message(payload))
        for node in (near, far):
            assert await stored_at(node, out | back) >= out | back


async def stored_at(node: EmbeddedNode, wanted: set[bytes]) -> set[bytes]:
    """The payloads in the Store of a node, until all that is wanted has come."""
    assert node.archive is not None
    found = set[bytes]()
    with anyio.move_on_after(PATIENCE_S):
        while not wanted <= found:
            query: StoreQuery | None = StoreQuery(content_topics=(TOPIC,), page_size=100)
            while query is not None:
                page = node.archive.query(query)
                found |= {one.message.payload for one in page.entries if one.message is not None}
                query = replace(query, cursor=page.cursor) if page.cursor else None
            await anyio.sleep(0.1)
    return found
