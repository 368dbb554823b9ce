"""Nodes joined in one process: each message once to each, along chains and cycles."""

from __future__ import annotations

from contextlib import AsyncExitStack
from itertools import pairwise

import pytest

from tests.waku.node.wires import Inbox, message, publish
from waku.node import EmbeddedNode, NodeOptions
from waku.node.mesh import SEEN_TTL_NS, SeenSet

pytestmark = pytest.mark.anyio

EXPECTED = [b"message 0", b"message 1", b"message 2"]


async def test_a_chain_and_a_cycle() -> None:
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
            assert len(node.mesh.peers()) == 1
        assert not node.mesh.peers()
        publish(node, message(0))


def test_relaying_is_by_hash_for_two_minutes() -> None:
    now = [0]
    seen = SeenSet(lambda: now[0], capacity=2)
    assert seen.add(b"a") and not seen.add(b"a")
    now[0] = SEEN_TTL_NS
    assert seen.add(b"a")
    assert seen.add(b"b") and seen.add(b"c") and seen.add(b"a")
