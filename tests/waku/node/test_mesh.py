"""Joined nodes: each message once to each, along chains and cycles, with nodes that come and go."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import pairwise

import anyio
import httpx
import pytest

from tests.waku.node.wires import OPTIONS, Inbox, Wires, message, publish, until
from waku import StoreQuery
from waku.node import BadAddress, DialFailed, EmbeddedNode, NodeOptions
from waku.node.mesh import SEEN_TTL_NS, SeenSet
from waku.node.remote import AcceptedPeer, DialledPeer

pytestmark = pytest.mark.anyio

EXPECTED = [b"message 0", b"message 1", b"message 2"]


def joined(node: EmbeddedNode, *, to: int) -> bool:
    return len(node.mesh.peers()) == to


async def test_in_process_chain_and_cycle() -> None:
    async with AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(EmbeddedNode()) for _ in range(4)]
        for one, other in pairwise(nodes):
            one.join(other)
        inboxes = [Inbox(node) for node in nodes]
        publish(nodes[0], message(0))
        publish(nodes[3], message(1))
        nodes[3].join(nodes[0])
        publish(nodes[1], message(2))
        assert [inbox.payloads for inbox in inboxes] == [EXPECTED] * 4
        nodes[0].leave(nodes[1])
        nodes[0].leave(nodes[3])
        publish(nodes[0], message(3))
        assert [len(inbox.payloads) for inbox in inboxes] == [4, 3, 3, 3]


async def test_joining_oneself_or_another_cluster_is_refused() -> None:
    async with EmbeddedNode() as node, EmbeddedNode(NodeOptions(cluster_id=2)) as other:
        for wrong in (node, other):
            with pytest.raises(ValueError, match="same cluster"):
                node.join(wrong)


async def test_a_node_that_ends_leaves_its_peers() -> None:
    async with EmbeddedNode() as node:
        async with EmbeddedNode() as other:
            node.join(other)
            assert joined(node, to=1)
        assert joined(node, to=0)
        publish(node, message(0))


@pytest.mark.parametrize("links", [("", "a", "b"), ("c", "a", "b"), ("bc", "ca", "ab")])
async def test_over_http(links: tuple[str, str, str]) -> None:
    """A chain, a cycle, and all to all; each node may be at either end of a link."""
    wires = Wires()
    async with AsyncExitStack() as stack:
        nodes = [
            await stack.enter_async_context(wires.node(name, *join))
            for name, join in zip("abc", links, strict=True)
        ]
        inboxes = [Inbox(node) for node in nodes]
        expected_peers = [1, 2, 1] if links[0] == "" else [2, 2, 2]
        for node, peers in zip(nodes, expected_peers, strict=True):
            await until(lambda node=node, peers=peers: joined(node, to=peers))  # type: ignore[misc]
        for number, node in enumerate(nodes):
            publish(node, message(number))
        await until(lambda: all(len(inbox.payloads) == 3 for inbox in inboxes))
        assert [sorted(inbox.payloads) for inbox in inboxes] == [EXPECTED] * 3


async def test_away_and_back() -> None:
    """Neither what the dialling node says nor what it should hear meanwhile is lost."""
    wires = Wires()
    async with wires.node("a") as a, wires.node("b", "a") as b:
        inboxes = Inbox(a), Inbox(b)
        await until(lambda: joined(b, to=1))
        publish(a, message(0))
        await until(lambda: len(inboxes[1].payloads) == 1)

        wires.cut_off("a")
        await until(lambda: joined(b, to=0))
        publish(a, message(1))
        publish(b, message(2))
        wires.mend("a")

        await until(lambda: all(len(inbox.payloads) == 3 for inbox in inboxes))
        assert [sorted(inbox.payloads) for inbox in inboxes] == [EXPECTED] * 2


async def test_a_node_that_starts_anew_is_joined_again() -> None:
    wires = Wires()
    async with wires.node("b", "a") as b:
        for number in range(2):
            async with wires.node("a") as a:
                inbox = Inbox(b, f"inbox {number}")
                await until(lambda: joined(b, to=1))
                publish(a, message(number))
                await until(lambda inbox=inbox: len(inbox.payloads) == 1)  # type: ignore[misc]
                wires.cut_off("a")
            await until(lambda: joined(b, to=0))
            wires.mend("a")


async def test_history_goes_to_the_store_alone() -> None:
    wires = Wires()
    async with wires.node("a") as a:
        publish(a, message(0), message(1, ephemeral=True))
        async with wires.node("b", "a") as b:
            inbox = Inbox(b)
            archive = b.archive
            assert archive is not None
            await until(lambda: len(archive) == 1)
            publish(a, message(2))
            await until(lambda: inbox.payloads == [b"message 2"])
            assert len(archive.query(StoreQuery()).entries) == 2


async def test_a_queue_for_an_absent_node_is_bounded() -> None:
    wires = Wires()
    options = NodeOptions(peer_queue_capacity=2, redial_min_s=0.001, redial_max_s=0.002)
    async with wires.node("b", "a", options=options) as b:
        publish(b, *(message(number) for number in range(5)))
        (link,) = b.mesh.links.values()
        assert isinstance(link, DialledPeer)
        assert (len(link.outbox), link.outbox.dropped) == (2, 3)
        async with wires.node("a", options=NodeOptions(store=False)) as a:
            inbox = Inbox(a)
            await until(lambda: len(inbox.payloads) == 2)
            assert inbox.payloads == [b"message 3", b"message 4"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # httpx's ASGITransport leaks under trio
async def test_what_the_other_node_will_not_take_does_not_stop_the_rest() -> None:
    wires = Wires()
    large = replace(message(0), payload=bytes(1_500_000))
    options = replace(OPTIONS, max_message_bytes=2_000_000)
    async with wires.node("a") as a, wires.node("b", "a", options=options) as b:
        inbox = Inbox(a)
        await until(lambda: joined(b, to=1))
        publish(b, large, message(1))
        await until(lambda: inbox.payloads == [b"message 1"])
        publish(b, replace(message(2), payload=bytes(200_000)), message(3))
        await until(lambda: inbox.payloads == [b"message 1", b"message 3"])


async def test_a_node_is_ended_by_cancellation() -> None:
    wires = Wires()
    with anyio.move_on_after(0.01) as scope:
        async with wires.node("a"), wires.node("b", "a"):
            await anyio.sleep_forever()
    assert scope.cancelled_caught


async def test_dialling() -> None:
    wires = Wires()
    async with wires.node("a") as a, wires.node("b") as b:
        with pytest.raises(DialFailed, match="nowhere"):
            await b.dial("http://nowhere")
        with pytest.raises(DialFailed, match="itself"):
            await b.dial("http://b")
        with pytest.raises(DialFailed, match=f"is {a.peer_id}, not {b.peer_id}"):
            await b.dial(f"/dns/a/tcp/80/http/p2p/{b.peer_id}")
        await b.dial(f"/dns/a/tcp/80/http/p2p/{a.peer_id}")
        await b.dial("http://a:80")
        assert len(b.mesh.links) == 1
        async with wires.node("c", options=NodeOptions(cluster_id=2)) as c:
            with pytest.raises(DialFailed, match="409: this is a node of cluster 1"):
                await c.dial("http://a")
    with pytest.raises(RuntimeError, match="async with"):
        await b.dial("http://a")


async def test_a_node_that_goes_silent_is_forgotten() -> None:
    now = [1]
    wires = Wires()
    options = NodeOptions(now_ns=lambda: now[0])
    async with wires.node("a", options=options) as a:
        async with wires.node("b", "a") as b:
            await until(lambda: joined(b, to=1) and joined(a, to=1))
        now[0] += 61 * 10**9
        assert joined(a, to=0)
        publish(a, message(0))
        (link,) = a.mesh.links.values()
        assert isinstance(link, AcceptedPeer) and len(link.outbox) == 0
        async with wires.node("c", "a") as c:
            await until(lambda: joined(c, to=1))
            assert [link.info.peer_id for link in a.mesh.links.values() if link.info] == [c.peer_id]


async def test_relaying_is_by_hash_for_two_minutes() -> None:
    now = [0]
    seen = SeenSet(lambda: now[0], capacity=2)
    assert seen.add(b"a") and not seen.add(b"a")
    now[0] = SEEN_TTL_NS
    assert seen.add(b"a")
    assert seen.add(b"b") and seen.add(b"c") and seen.add(b"a")


async def test_what_comes_over_a_line_is_checked() -> None:
    async with EmbeddedNode(OPTIONS) as node:
        wires = Wires()
        wires.nodes["a"] = node
        async with httpx.AsyncClient(transport=wires, base_url="http://a") as client:
            hello = {**node.hello_json(), "peerId": "other"}
            for body, status in ((hello, 200), ({**hello, "shards": 1}, 400), ([], 400)):
                assert (await client.post("/mesh/v1/hello", json=body)).status_code == status
            gift = {"peerId": "other", "messages": [{"pubsubTopic": 1}]}
            assert (await client.post("/mesh/v1/messages", json=gift)).status_code == 400
            assert (await client.post("/mesh/v1/messages", json={})).status_code == 400
            stranger = {"peerId": "stranger", "messages": []}
            assert (await client.post("/mesh/v1/messages", json=stranger)).status_code == 404
            assert (await client.get("/mesh/v1/messages")).status_code == 404
            waiting = {"peerId": "other", "after": "x", "waitMs": "0"}
            answer = await client.get("/mesh/v1/messages", params=waiting)
            assert answer.json() == {"messages": [], "last": 0}


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/mesh/v1/hello", b"[" * 3_000),
        ("/mesh/v1/messages", b"[" * 3_000),
        ("/mesh/v1/messages", b'{"messages": [], "last": 1e999}'),
        ("/mesh/v1/messages", b'{"messages": {}, "last": 1}'),
        ("/mesh/v1/messages", b'{"messages": [1], "last": 1}'),
    ],
)
async def test_a_joined_node_that_answers_nonsense_does_no_harm(path: str, answer: bytes) -> None:
    """Some of it ended the node that had joined it; found by fuzzing."""

    class Nonsense(httpx.AsyncBaseTransport):
        asked = 0

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path == path:
                self.asked += 1
                return httpx.Response(200, content=answer)
            return await wires.handle_async_request(request)

    wires, transport = Wires(), Nonsense()
    async with (
        wires.node("a"),
        EmbeddedNode(OPTIONS, join=["http://a"], transport=transport) as b,
    ):
        inbox = Inbox(b)
        await until(lambda: transport.asked > 2)
        publish(b, message(0))
        assert inbox.payloads == EXPECTED[:1]


async def test_a_node_that_runs_can_be_told_what_to_stay_joined_with() -> None:
    """An application opens its channels first: what others have held back comes at once."""
    wires = Wires()
    async with wires.node("b") as b:
        inbox = Inbox(b)
        b.keep_joined("http://a")  # nothing answers there yet
        async with wires.node("a") as a:
            await until(lambda: joined(b, to=1))
            publish(a, message(0))
            await until(lambda: inbox.payloads == [b"message 0"])
        with pytest.raises(BadAddress):
            b.keep_joined("nowhere")
    with pytest.raises(RuntimeError, match="async with"):
        b.keep_joined("http://a")
