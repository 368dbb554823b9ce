"""Nodes that join by libp2p: meshes, restarts, what was missed, and peers that may not join."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests import inside
from tests.slow import long
from tests.waku.node.wires import HERE, OPTIONS, SHARD, Inbox, live, message, publish
from tests.waku.p2p.service import identity
from waku import StoreQuery, WakuClient
from waku.models import StorePage
from waku.node import DialFailed, EmbeddedNode, Listen, NodeOptions
from waku.node.local_services import LocalServices

from .around import until

pytestmark = pytest.mark.anyio

SMALL = NodeOptions(cluster_id=42, num_shards=1)
SMALL_SHARD = "/waku/2/rs/42/0"


def listening(number: int, *peers: str, port: str = "0", **values: Any) -> EmbeddedNode:
    """A node with a key of its own, that stays connected to peers."""
    listen = Listen((f"/ip4/127.0.0.1/tcp/{port}",), identity=identity(number))
    options = values.pop("options", OPTIONS)
    return EmbeddedNode(options, listen=listen, relay_peers=peers, **values)


def address(node: EmbeddedNode) -> str:
    return node.libp2p_addresses[0]


def stored(node: EmbeddedNode) -> list[bytes]:
    assert node.archive is not None
    page = node.archive.query(StoreQuery(page_size=100))
    return sorted(entry.message.payload for entry in page.entries if entry.message is not None)


def in_meshes(node: EmbeddedNode, peers: int) -> bool:
    return len(node.mesh_peers(SHARD)) == peers


@asynccontextmanager
async def chain() -> AsyncIterator[tuple[EmbeddedNode, EmbeddedNode, EmbeddedNode]]:
    """A, B and C; A and C know B alone."""
    async with listening(1) as a, listening(2, address(a)) as b, listening(3, address(b)) as c:
        await until(lambda: all(map(in_meshes, (a, b, c), (1, 2, 1))))
        yield a, b, c


async def past_gossip() -> None:
    """Wait until relay gives no more of what was published: only Stores have it."""
    await anyio.sleep(10)


async def test_messages_pass_along_a_chain_once_to_each() -> None:
    async with chain() as nodes:
        inboxes = [Inbox(node) for node in nodes]
        for number, node in enumerate(nodes * 5):
            assert node.publish(SHARD, message(number, timestamp=number + 1)) >= 1
        await until(lambda: all(len(inbox.payloads) == 15 for inbox in inboxes))
        await anyio.sleep(10)
        expected = sorted(b"message %d" % number for number in range(15))
        assert [sorted(inbox.payloads) for inbox in inboxes] == [expected] * 3
        assert [stored(node) for node in nodes] == [expected] * 3


async def test_the_store_of_the_third_serves_what_the_first_published() -> None:
    async with chain() as (a, _, c):
        publish(a, message(1, timestamp=5))
        await until(lambda: stored(c) == [b"message 1"])
        async with WakuClient("http://c", app=c.app) as client:
            (entry,) = [entry async for entry in client.store_all(StoreQuery())]
            assert entry.message == message(1, timestamp=5)


async def test_a_node_that_was_away_asks_a_peers_store_for_what_it_missed() -> None:
    """B is killed; its peers publish meanwhile; B comes back empty, C never was away."""
    async with listening(1) as a, anyio.create_task_group() as tasks:
        b = listening(2, address(a))
        life = await tasks.start(live, b)
        port = address(b).split("/")[4]
        async with listening(3, address(b)) as c:
            inbox = Inbox(c)
            await until(lambda: in_meshes(b, 2))
            publish(a, message(0))
            await until(lambda: stored(c) == [b"message 0"])
            life.cancel()
            await until(lambda: not a.mesh.peers() and not c.mesh.peers())
            publish(a, message(1), message(2, ephemeral=True))
            await past_gossip()
            again = listening(2, address(a), port=port)
            life = await tasks.start(live, again)
            await until(lambda: stored(again) == stored(c) == [b"message 0", b"message 1"])
            assert inbox.payloads == [b"message 0", b"message 1"], "news to the client of C"
            assert not Inbox(again).payloads, "history to clients of B"
            publish(c, message(3))
            await until(lambda: b"message 3" in stored(a))
        life.cancel()


async def test_a_restart_goes_on_from_the_newest_message_of_its_store(tmp_path: Path) -> None:
    """However long the node was away, up to six hours; older messages are not asked for."""
    hour_ns = 3600 * 10**9
    now = [100 * hour_ns]
    options = replace(OPTIONS, now_ns=lambda: now[0])
    kept = replace(options, store_path=tmp_path / "store.sqlite3")
    async with listening(1, options=options) as a:
        publish(a, message(1), message(2, timestamp=now[0] - 2 * hour_ns))
        await past_gossip()
        async with listening(2, address(a), options=kept) as b:
            await until(lambda: stored(b) == [b"message 1"])
        now[0] += 3 * hour_ns
        publish(a, message(3, timestamp=now[0] - 2 * hour_ns))
        await past_gossip()
        async with listening(2, address(a), options=kept) as b:
            await until(lambda: stored(b) == [b"message 1", b"message 3"])


async def test_what_a_store_gives_is_checked() -> None:
    """Messages that no node may publish, and topics that are not followed, are not kept."""
    generous = replace(OPTIONS, max_message_bytes=2_000_000)
    async with listening(1, options=generous) as a:
        publish(a, replace(message(1), payload=bytes(200_000)), message(2))
        a.publish("/waku/2/rs/1/0", replace(message(3), content_topic="/app/1/other/proto"))
        await past_gossip()
        narrow = replace(OPTIONS, shards=(4,))
        async with listening(2, address(a), options=narrow) as b:
            await until(lambda: stored(b) == [b"message 2"])
            await anyio.sleep(120)
            assert stored(b) == [b"message 2"]


async def test_a_full_disk_ends_neither_relay_nor_history(tmp_path: Path) -> None:
    """It ended the process: the failure went up through the task of the link."""
    options = replace(OPTIONS, store_path=tmp_path / "b.sqlite3")
    large = replace(message(0), payload=bytes(100_000))
    async with listening(1) as a:
        publish(a, large)
        await past_gossip()
        b = listening(2, address(a), options=options)
        assert b.archive is not None
        db = inside.database(b.archive)
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages}")
        async with b:
            inbox = Inbox(b)
            await until(lambda: b.archive is not None and b.archive.problem is not None)
            await until(lambda: in_meshes(b, 1))
            publish(a, replace(large, payload=bytes(100_001)))
            await until(lambda: len(inbox.payloads) == 1)
            assert stored(b) == []
            db.execute("PRAGMA max_page_count = 1073741823")
            publish(a, message(1))
            await until(lambda: stored(b) == [b"message 1"])


async def test_peers_that_name_each_other_have_one_connection() -> None:
    key = identity(2).peer_id
    async with anyio.create_task_group() as tasks:
        first = listening(1)
        life = await tasks.start(live, first)
        port = address(first).split("/")[4]
        life.cancel()
        async with listening(2, address(first)) as b:
            a = listening(1, address(b), port=port)
            life = await tasks.start(live, a)
            await until(lambda: in_meshes(a, 1) and in_meshes(b, 1))
            await anyio.sleep(120)
            assert a.network is not None and a.network.connections == 1
            assert list(a.mesh.peers()) == [str(key)]
            inbox = Inbox(a)
            publish(b, message(1))
            await until(lambda: inbox.payloads == [b"message 1"])
            life.cancel()


async def test_dialling_a_peer_while_the_node_runs() -> None:
    async with listening(1) as a, EmbeddedNode(OPTIONS) as b:
        with pytest.raises(DialFailed, match=r"cannot join .*: connect: "):
            await b.dial(f"/ip4/127.0.0.1/tcp/1/p2p/{a.peer_id}")
        with pytest.raises(DialFailed, match="cannot join nowhere: "):
            await b.dial("nowhere")
        wrong = address(a).replace(a.peer_id, str(identity(9).peer_id))
        with pytest.raises(DialFailed, match="not"):
            await b.dial(wrong)
        async with WakuClient("http://b", app=b.app) as client:
            await client.add_peers([address(a)])
            (peer,) = await client.connected_peers()
            assert peer.multiaddrs == (address(a),)
            await until(lambda: in_meshes(a, 1) and in_meshes(b, 1))
            (meshes,) = await client.mesh_peers(4)
            assert meshes.peers[0].multiaddrs == (address(a),)
        publish(b, message(1))
        await until(lambda: stored(a) == [b"message 1"])
        async with EmbeddedNode(NodeOptions(cluster_id=2)) as c:
            with pytest.raises(DialFailed, match="is in cluster 1, not 2"):
                await c.dial(address(a))
    with pytest.raises(RuntimeError, match="async with"):
        await b.dial(address(a))


async def test_relay_is_for_peers_that_are_allowed() -> None:
    friend, stranger = str(identity(2).peer_id), str(identity(3).peer_id)
    async with listening(1, options=replace(OPTIONS, relay_allow=(friend,))) as a:
        async with listening(2, address(a)) as b, listening(3, address(a)) as c:
            await until(lambda: in_meshes(b, 1))
            publish(a, message(1))
            await until(lambda: stored(b) == [b"message 1"])
            publish(c, message(2))
            assert a.network is not None
            reports = a.network.reports
            await until(lambda: reports.counts["relay"] > 0)
            await anyio.sleep(60)
            assert stored(a) == [b"message 1"] and b"message 2" in stored(c)
            assert stranger not in {peer.peer_id for peer in a.mesh_peers(SHARD)}
    with pytest.raises(ValueError, match=r"`relay_allow` must be peer ids \(got 'friend'\)"):
        NodeOptions(relay_allow=("friend",))


def test_a_cluster_with_rln_is_refused() -> None:
    with pytest.raises(ValueError, match=r"cluster 1 has RLN: relay needs a proof.*--no-rln"):
        EmbeddedNode(relay_peers=["/ip4/127.0.0.1/tcp/1"])
    with pytest.raises(ValueError, match="cluster 7 has RLN"):
        options = NodeOptions(cluster_id=7, rln=True)
        EmbeddedNode(options, relay_peers=["/ip4/127.0.0.1/tcp/1"])


async def test_a_node_of_a_cluster_with_rln_listens_and_does_not_relay() -> None:
    async with listening(1, options=NodeOptions()) as twn, listening(2) as b:
        await b.dial(address(twn))
        assert "/vac/waku/relay/2.0.0" not in b.mesh.peers()[twn.peer_id].protocols
        assert not b.relay_peers()


WITHOUT_EXTRA = """
import sys
sys.modules["cryptography"] = None
from waku.node import EmbeddedNode, NodeOptions
for peers in ({"listen": ["/ip4/127.0.0.1/tcp/0"]}, {"relay_peers": ["/ip4/127.0.0.1/tcp/1"]}):
    try:
        EmbeddedNode(NodeOptions(rln=False), **peers)
    except ImportError as error:
        print(error)
"""


def test_what_is_missing_without_the_extra() -> None:
    told = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRA], capture_output=True, text=True, check=True
    )
    assert told.stdout.count("pip install 'reliable-channel[libp2p]'") == 2


@pytest.mark.parametrize("count", [20, *long(100)])
async def test_a_crowd_of_nodes_has_every_message(count: int) -> None:
    """Each knows two that came before it; all on this machine, in virtual time."""
    async with AsyncExitStack() as stack:
        nodes: list[EmbeddedNode] = []
        for number in range(count):
            peers = [address(nodes[number // part]) for part in (2, 3) if number]
            listen = Listen(HERE, identity=identity(number + 1))
            node = EmbeddedNode(SMALL, listen=listen, relay_peers=[*dict.fromkeys(peers)])
            nodes.append(await stack.enter_async_context(node))
        await until(lambda: all(node.mesh_peers(SMALL_SHARD) for node in nodes))
        await anyio.sleep(5)
        for number, node in enumerate(nodes[:: count // 10]):
            node.publish(SMALL_SHARD, message(number, timestamp=number + 1))
        await until(lambda: all(len(stored(node)) == 10 for node in nodes))


async def test_a_message_stamped_in_the_future_hides_nothing_that_was_missed(
    tmp_path: Path,
) -> None:
    """Any peer may publish one; the newest message until now says how long the node was away."""
    hour_ns = 3600 * 10**9
    now = [100 * hour_ns]
    options = replace(OPTIONS, now_ns=lambda: now[0])
    kept = replace(options, store_path=tmp_path / "store.sqlite3")
    async with listening(1, options=options) as a:
        async with listening(2, address(a), options=kept) as b:
            publish(b, message(1), message(2, timestamp=now[0] + 1000 * hour_ns))
        now[0] += 3 * hour_ns
        publish(a, message(3, timestamp=now[0] - 2 * hour_ns))
        await past_gossip()
        async with listening(2, address(a), options=kept) as b:
            await until(lambda: in_meshes(b, 1))
            await anyio.sleep(5)
            assert b"message 3" in stored(b)


async def test_a_peer_that_leaves_after_its_answer_leaves_a_gap() -> None:
    """The connection breaks while the node takes the page; the next peer is asked as well."""

    class Leaving(LocalServices):
        has_left = False

        async def query(self, query: StoreQuery) -> StorePage:
            if not self.has_left:
                self.has_left = True
                resume.begin_gap()
            return await super().query(query)

    async with EmbeddedNode(OPTIONS) as a, EmbeddedNode(OPTIONS) as b:
        assert b.store_resume is not None
        resume = b.store_resume
        await resume.fetch("a", Leaving(a))
        publish(a, message(1))
        await resume.fetch("a", a.services)
        assert stored(b) == [b"message 1"]


async def test_a_peer_dialled_without_its_id_has_one_connection() -> None:
    async with listening(1) as a, listening(2) as b:
        await b.dial(address(a).partition("/p2p/")[0])
        await anyio.sleep(120)
        assert b.network is not None and b.network.connections == 1
