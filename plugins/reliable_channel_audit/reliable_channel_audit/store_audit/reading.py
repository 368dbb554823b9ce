"""Stored messages in order of time, from nodes (REST or libp2p) and from nodes' databases."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
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
from .tally import StoreTally

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
    given: Mapping[str, Any], start_ns: int = FIRST_NS
) -> AsyncGenerator[Sequence[Row], None]:
    """Yield the messages since a time of the nodes, or the node's database, in a channel's
    arguments, in order of time, in batches.

    Raises:
        ValueError: no source, a node without a topic, or an unusable argument.
        FileNotFoundError: a file that is not there.
        PluginError: a plugin failed.
        TransportError: a node cannot be reached, or does not give what it has.
        OSError, sqlite3.Error: a database cannot be read.
    """
    source = _source_of(given)
    topics, pubsub_topic = content_topics(given), given.get("pubsub_topic")
    if not isinstance(source, Transport):
        for rows in source.rows(Selection(topics, pubsub_topic, start_ns)):
            yield rows
            await anyio.lowlevel.checkpoint()
        return
    await source.open()
    try:
        async with aclosing(source.by_time(start_ns, time.time_ns())) as pages:
            async for page in pages:
                about = pubsub_topic, topics[0]
                yield [
                    (e.message_hash, *about, e.timestamp_ns, e.payload, e.meta or None)
                    for e in page
                ]
    finally:
        await source.aclose()


def _source_of(given: Mapping[str, Any]) -> Database | Transport:
    """The nodes or the node's database in a channel's arguments."""
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
    given: Mapping[str, Any],
    start_ns: int = FIRST_NS,
    progress: Callable[[int], None] = lambda count: None,
) -> int:
    """Count the messages of a source, and return their number. `progress` gets the number so far.
    Messages that cannot be decrypted are counted as foreign messages.

    Raises:
        As `stored_in`, and ValueError, PluginError: an unusable `encryption`.
    """
    decrypt = topic_decryption(given, READER_ID)
    async with aclosing(stored_in(given, start_ns)) as pages:
        async for page in pages:
            for _, _, content_topic, timestamp_ns, payload, _ in page:
                content = payload
                if decrypt is not None:
                    try:
                        content = await decrypt(payload)
                    except DecryptionFailed:
                        content = b""
                tally.add(content_topic, timestamp_ns, len(payload), content)
            progress(tally.messages)
    return tally.messages
