"""A store that cannot be written: the node goes on, publishes nothing, and says why."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import inside
from tests.waku.node.wires import TOPIC, Inbox, message, publish
from waku import StoreQuery, WakuClient, WakuMessage
from waku.errors import NodeFailure
from waku.node import EmbeddedNode, NodeOptions, StoreUnavailable
from waku.node.store import Archive

pytestmark = pytest.mark.anyio

LARGE = 100_000
"""Bytes that are sure to need a page more."""


@contextmanager
def full(node: EmbeddedNode) -> Iterator[None]:
    """Lets the store of a node grow no further; SQLite then says what it says of a full disk."""
    assert node.archive is not None
    db: sqlite3.Connection = inside.database(node.archive)
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count = {pages}")
    try:
        yield
    finally:
        db.execute("PRAGMA max_page_count = 1073741823")


def large(number: int) -> WakuMessage:
    return WakuMessage(b"message %d" % number + bytes(LARGE), TOPIC, timestamp=number + 1)


def stored(node: EmbeddedNode) -> int:
    assert node.archive is not None
    return len(node.archive.query(StoreQuery()).entries)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[EmbeddedNode]:
    async with EmbeddedNode(NodeOptions(store_path=tmp_path / "messages.db")) as one:
        yield one


def client(node: EmbeddedNode) -> WakuClient:
    return WakuClient("http://node", app=node.app, retries=None)


async def test_what_cannot_be_stored_is_neither_relayed_nor_answered_with_ok(
    node: EmbeddedNode,
) -> None:
    async with EmbeddedNode() as other, client(node) as http:
        node.join(other)
        inboxes = Inbox(node), Inbox(other)
        with full(node):
            shard = node.shard_for(TOPIC)
            for call in (
                lambda: http.relay_publish(shard, large(0)),
                lambda: http.relay_auto_publish(large(0)),
                lambda: http.lightpush(large(0)),
            ):
                with pytest.raises(NodeFailure, match="disk is full; free some space") as caught:
                    await call()
                assert caught.value.status == 503
            with pytest.raises(StoreUnavailable):
                publish(node, large(0))
        assert [inbox.payloads for inbox in inboxes] == [[], []]
        assert (stored(node), stored(other)) == (0, 0)

        publish(node, large(0))  # it was not noted as seen
        assert [len(inbox.payloads) for inbox in inboxes] == [1, 1]
        assert (stored(node), stored(other)) == (1, 1)


async def test_what_is_not_for_the_store_is_published_all_the_same(node: EmbeddedNode) -> None:
    inbox = Inbox(node)
    with full(node):
        publish(node, WakuMessage(bytes(LARGE), TOPIC, ephemeral=True))
    assert len(inbox.payloads) == 1


async def test_a_node_joined_in_the_process_is_no_reason_to_refuse(node: EmbeddedNode) -> None:
    async with EmbeddedNode() as other:
        other.join(node)
        with full(node):
            publish(other, large(0))
        assert (stored(other), stored(node)) == (1, 0)


async def test_health_reports_it_until_it_is_over(
    node: EmbeddedNode, caplog: pytest.LogCaptureFixture
) -> None:
    async with client(node) as http:
        with full(node):
            for _ in range(3):
                with pytest.raises(StoreUnavailable):
                    publish(node, large(0))
            assert [record.levelname for record in caplog.records] == ["ERROR"]
            for _ in range(2):
                health = await http.health()
                assert (health.node_health, health.status_of("Store")) == (
                    "NOT_READY",
                    "NOT_READY",
                )
                assert "cannot be written: database or disk is full" in str(health)
        health = await http.health()
        assert (health.node_health, health.status_of("Store")) == ("READY", "READY")
        assert "can be written again" in caplog.text
        assert stored(node) == 0
        publish(node, large(0))
        assert stored(node) == 1


async def test_a_store_that_cannot_be_read_says_so(node: EmbeddedNode) -> None:
    publish(node, message(0))
    assert node.archive is not None
    inside.database(node.archive).execute("DROP TABLE message")
    async with client(node) as http:
        with pytest.raises(NodeFailure, match="cannot be read: no such table"):
            await http.store(StoreQuery())


def test_the_oldest_give_way_to_what_the_bytes_allow() -> None:
    """1,000,000 messages of 150 kB were 150 GB of memory."""
    limit = 4 * 1024 * 1024
    archive = Archive(capacity_bytes=limit)
    for number in range(400):
        size = 10 if number < 100 else 50_000
        one = WakuMessage(bytes(size), TOPIC, timestamp=number + 1)
        archive.insert(number.to_bytes(32, "big"), "/waku/2/rs/1/0", one)
        archive.trim(before_ns=None)
        assert archive.size_bytes < limit + 1024 * 1024 + 100_000
    found = archive.query(StoreQuery(ascending=False, page_size=100)).entries
    newest = [int.from_bytes(entry.message_hash, "big") for entry in found]
    assert newest == list(range(400 - len(newest), 400)) and 50 < len(newest) < 100
    archive.close()


def test_in_memory_there_is_a_limit_without_being_asked_for(tmp_path: Path) -> None:
    assert NodeOptions().store_limit_bytes == 256 * 1024 * 1024
    assert NodeOptions(store_path=tmp_path / "x").store_limit_bytes is None
    assert NodeOptions(store_capacity_bytes=2**20).store_limit_bytes == 2**20
    with pytest.raises(ValueError, match="`store_capacity_bytes` must be at least 1048576"):
        NodeOptions(store_capacity_bytes=1)
