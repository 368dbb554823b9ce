"""The archive: pages, conditions, limits, and a file that outlives the node."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import inside
from waku import StoreQuery, WakuMessage, message_hash
from waku.node import ArchiveError, EmbeddedNode, NodeOptions
from waku.node.store import SCHEMA_VERSION, TRIM_INTERVAL, Archive, CursorNotFound

PUBSUB_TOPICS = ("/waku/2/rs/1/0", "/waku/2/rs/1/1")
CONTENT_TOPICS = ("/a/1/a/proto", "/a/1/b/proto", "/a/1/c/proto")

Stored = dict[bytes, tuple[str, WakuMessage]]


@st.composite
def stored_messages(draw: st.DrawFn) -> Stored:
    """Few timestamps, so that the hash has to decide."""
    found: Stored = {}
    for number in range(draw(st.integers(0, 40))):
        pubsub_topic = draw(st.sampled_from(PUBSUB_TOPICS))
        message = WakuMessage(
            b"%d" % number,
            draw(st.sampled_from(CONTENT_TOPICS)),
            timestamp=draw(st.integers(-2, 5)),
        )
        found[message_hash(pubsub_topic, message)] = pubsub_topic, message
    return found


def filled(messages: Stored) -> Archive:
    archive = Archive()
    for digest, (pubsub_topic, message) in messages.items():
        archive.insert(digest, pubsub_topic, message)
    return archive


def pages(archive: Archive, query: StoreQuery) -> Iterator[list[bytes]]:
    while True:
        page = archive.query(query)
        yield [entry.message_hash for entry in page.entries]
        if page.cursor is None:
            return
        query = replace(query, cursor=page.cursor)


@given(
    messages=stored_messages(),
    page_size=st.integers(1, 12),
    ascending=st.booleans(),
    content_topics=st.lists(st.sampled_from(CONTENT_TOPICS)),
    pubsub_topic=st.sampled_from((None, *PUBSUB_TOPICS)),
    times=st.tuples(*[st.one_of(st.none(), st.integers(-1, 6))] * 2),
    by_hash=st.booleans(),
)
def test_pages_visit_each_match_once_in_order(
    messages: Stored,
    page_size: int,
    ascending: bool,
    content_topics: list[str],
    pubsub_topic: str | None,
    times: tuple[int | None, int | None],
    by_hash: bool,
) -> None:
    start, end = times
    hashes = tuple(sorted(messages)[::2]) if by_hash else ()
    expected = [
        digest
        for digest, (topic, message) in messages.items()
        if (pubsub_topic in (None, topic))
        and (not content_topics or message.content_topic in content_topics)
        and (start is None or message.timestamp >= start)
        and (end is None or message.timestamp <= end)
        and (not hashes or digest in hashes)
    ]
    expected.sort(key=lambda digest: (messages[digest][1].timestamp, digest))
    query = StoreQuery(
        content_topics=tuple(content_topics),
        pubsub_topic=pubsub_topic,
        hashes=hashes,
        start_time_ns=start,
        end_time_ns=end,
        page_size=page_size,
        ascending=ascending,
    )
    with closing(filled(messages)) as archive:
        found = list(pages(archive, query))
    assert all(len(page) == page_size for page in found[:-1])
    in_time = found if ascending else reversed(found)
    assert [digest for page in in_time for digest in page] == expected


def test_a_message_comes_back_as_it_was() -> None:
    message = WakuMessage(b"\x00\xff", "odd topic", version=3, timestamp=-5, meta=b"m", proof=b"p")
    digest = message_hash(PUBSUB_TOPICS[0], message)
    with closing(filled({digest: (PUBSUB_TOPICS[0], message)})) as archive:
        archive.insert(digest, PUBSUB_TOPICS[0], message)
        (entry,) = archive.query(StoreQuery()).entries
        assert (entry.message_hash, entry.pubsub_topic, entry.message) == (
            digest,
            PUBSUB_TOPICS[0],
            message,
        )
        (bare,) = archive.query(StoreQuery(include_data=False)).entries
        assert bare.message is None and bare.pubsub_topic is None


def test_an_unknown_cursor_is_told() -> None:
    with closing(Archive()) as archive, pytest.raises(CursorNotFound):
        archive.query(StoreQuery(cursor=bytes(31) + b"\x01"))


def test_a_query_follows_an_index() -> None:
    """What a page costs does not grow with the store."""
    with closing(Archive()) as archive:
        plans: list[str] = []
        database = inside.database(archive)
        database.set_trace_callback(plans.append)
        for query in (
            StoreQuery(),
            StoreQuery(content_topics=CONTENT_TOPICS, ascending=False),
            StoreQuery(hashes=(bytes(32),)),
            StoreQuery(start_time_ns=5, end_time_ns=7),
        ):
            archive.query(query)
        database.set_trace_callback(None)
        for statement in plans:
            steps = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {statement}")]
            assert any("USING" in step and "INDEX" in step for step in steps), (statement, steps)
            if "hash IN" not in statement:
                assert not any("TEMP B-TREE" in step for step in steps), (statement, steps)


def test_capacity_and_age() -> None:
    with closing(Archive(capacity=10)) as archive:
        for number in range(TRIM_INTERVAL + 4):
            message = WakuMessage(b"%d" % number, CONTENT_TOPICS[0], timestamp=number)
            archive.insert(message_hash(PUBSUB_TOPICS[0], message), PUBSUB_TOPICS[0], message)
            archive.trim(before_ns=None)
        newest = archive.query(StoreQuery()).entries[-1].message
        assert newest is not None and newest.timestamp == TRIM_INTERVAL + 3
        assert 10 <= len(archive) <= 20
        for _ in range(10):
            archive.insert(message_hash(PUBSUB_TOPICS[0], message), PUBSUB_TOPICS[0], message)
            archive.trim(before_ns=message.timestamp)
        assert len(archive) == 1


def test_retention_is_by_the_nodes_clock() -> None:
    now = [10**18]
    node = EmbeddedNode(NodeOptions(now_ns=lambda: now[0], store_retention_s=1, store_capacity=5))
    topic = node.options.pubsub_topics[0]
    for number in range(6):
        node.publish(topic, WakuMessage(b"%d" % number, CONTENT_TOPICS[0]))
        now[0] += 10**9
    assert node.archive is not None
    assert len(node.archive) == 3
    node.archive.close()


def test_what_is_not_kept() -> None:
    now = 10**18
    node = EmbeddedNode(NodeOptions(now_ns=lambda: now, store_timestamp_tolerance_s=20))
    topic = node.options.pubsub_topics[0]
    limit = 20 * 10**9
    for offset, ephemeral in ((0, True), (limit + 1, False), (-limit - 1, False), (limit, False)):
        message = WakuMessage(b"x", CONTENT_TOPICS[0], timestamp=now + offset, ephemeral=ephemeral)
        node.publish(topic, message)
    assert node.archive is not None
    assert [
        entry.message and entry.message.timestamp
        for entry in node.archive.query(StoreQuery()).entries
    ] == [now + limit]
    node.archive.close()


@pytest.mark.anyio
async def test_a_file_outlives_the_node(tmp_path: Path) -> None:
    options = NodeOptions(store_path=tmp_path / "store.db")
    message = WakuMessage(b"kept", CONTENT_TOPICS[0], timestamp=7)
    async with EmbeddedNode(options) as node:
        node.publish(options.pubsub_topics[0], message)
    async with EmbeddedNode(options) as node:
        assert node.archive is not None
        (entry,) = node.archive.query(StoreQuery()).entries
        assert entry.message == message


def test_files_that_are_not_ours_are_refused(tmp_path: Path) -> None:
    newer = tmp_path / "newer.db"
    with sqlite3.connect(newer) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    db.close()
    with pytest.raises(ArchiveError, match="newer program") as refused:
        Archive(newer)
    open_files = [file.resolve() for file in Path("/proc/self/fd").iterdir()]
    assert newer not in open_files, "the error keeps the file open"
    del refused
    text = tmp_path / "text"
    text.write_text("this is no database, and long enough for SQLite to see that it is none" * 20)
    with pytest.raises(ArchiveError, match="cannot open"):
        Archive(text)
    with pytest.raises(ArchiveError, match="cannot open"):
        Archive(tmp_path / "no such folder" / "store.db")
