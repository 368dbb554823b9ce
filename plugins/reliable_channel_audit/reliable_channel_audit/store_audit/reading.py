"""Stored messages in order of time, from nodes (REST or libp2p) and from nodes' databases."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

import anyio

from reliable_channel.spi import (
    DecryptionFailed,
    Transport,
    default_content_topic,
    topic_decryption,
    topic_transport,
)

from ..databases import FIRST_NS, Database, Row, Selection, database
from .tally import StoredMessage, StoreTally

READER_ID: Final = "audit-store"
_SUFFIXES: Final = frozenset({".sqlite3", ".sqlite", ".db"})


def is_database(address: str) -> bool:
    """Return True if an address names a database instead of a node."""
    return address.startswith(("postgresql://", "postgres://", "sqlite:///")) or (
        "://" not in address and (Path(address).suffix in _SUFFIXES or Path(address).is_file())
    )


def content_topics(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the content topics in a channel's arguments, or none without a topic and a channel."""
    if topic := given.get("content_topic"):
        return (topic,)
    return (default_content_topic(given["channel_id"]),) if "channel_id" in given else ()


async def stored_in(
    source: Database | Transport, given: Mapping[str, Any], start_ns: int = FIRST_NS
) -> AsyncGenerator[Sequence[Row], None]:
    """Yield the messages of a source since a time, in order of time, in batches.

    Raises:
        TransportError: a node cannot be reached, or does not give what it has.
        OSError, sqlite3.Error: a database cannot be read.
    """
    topics, pubsub_topic = content_topics(given), given.get("pubsub_topic")
    if isinstance(source, Transport):
        async with aclosing(_of_node(source, start_ns, "".join(topics), pubsub_topic)) as pages:
            async for page in pages:
                yield page
        return
    for rows in source.rows(Selection(topics, pubsub_topic, start_ns)):
        yield rows
        await anyio.lowlevel.checkpoint()


async def _of_node(
    transport: Transport, start_ns: int, content_topic: str, pubsub_topic: str | None
) -> AsyncGenerator[Sequence[Row], None]:
    await transport.open()
    try:
        async with aclosing(transport.by_time(start_ns, time.time_ns())) as pages:
            async for page in pages:
                yield [
                    (
                        each.message_hash,
                        pubsub_topic,
                        content_topic,
                        each.timestamp_ns,
                        each.payload,
                        each.meta or None,
                    )
                    for each in page
                ]
    finally:
        await transport.aclose()


def source_of(given: Mapping[str, Any]) -> Database | Transport:
    """Return the source in a channel's arguments, which is nodes or a node's database.

    Raises:
        ValueError: neither, a node without a topic, or an unusable argument.
        FileNotFoundError: a file that is not there.
        PluginError: a plugin failed.
    """
    node = given.get("node") or []
    nodes = [node] if isinstance(node, str) else node
    if not nodes and "network" not in given:
        raise ValueError("the command needs a node, a database, or --network")
    if len(nodes) == 1 and is_database(nodes[0]):
        return database(nodes[0])
    if not content_topics(given):
        raise ValueError(
            "the command queries a node for one content topic; give --channel or --content-topic"
        )
    return topic_transport(given, READER_ID)


async def fill(
    tally: StoreTally,
    source: Database | Transport,
    given: Mapping[str, Any],
    start_ns: int = FIRST_NS,
) -> AsyncGenerator[int, None]:
    """Count the messages of a source. `fill` yields the number of messages that were counted so
    far.

    Messages that cannot be decrypted are counted as foreign messages.

    Raises:
        TransportError, OSError, sqlite3.Error: as `stored_in`.
        ValueError, PluginError: an unusable `encryption`.
    """
    decrypt = topic_decryption(given, READER_ID)
    async with aclosing(stored_in(source, given, start_ns)) as pages:
        async for page in pages:
            for row in page:
                stored = StoredMessage(row[0], row[2], row[3], row[4])
                payload: bytes | None = None
                if decrypt is not None:
                    try:
                        payload = await decrypt(stored.payload)
                    except DecryptionFailed:
                        payload = b""
                tally.add(stored, payload)
            yield tally.messages
