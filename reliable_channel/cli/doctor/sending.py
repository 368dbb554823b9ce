"""Test message of the doctor command, and the search for this message in Store."""

import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Final

import anyio

from waku import WakuClient
from waku.errors import WakuError
from waku.models import StoreQuery
from waku.topics import PubsubTopic

from ...transport.addresses import masked_address as shown
from ...transport.base import Envelope, StoreUnavailable, Transport, TransportError
from ...transport.settings import WakuSettings
from .findings import Findings

PROBE: Final = b"reliable-channel doctor "
"""First bytes of the test message's payload. Channels drop the test message, because it is not an
SDS message."""
LOOK_S: Final = 0.2
CLOCK_S: Final = 20.0
"""Maximum clock difference (s) at which a stock node still stores a message."""
COMPARED: Final = 100
"""Number of newest messages of the topic by which two Stores are compared."""
SKEW_NS: Final = 300_000_000_000
"""Maximum difference (ns) between two timestamps of a message in a Store query by time."""


def probe(transport: Transport) -> Envelope:
    """Return a test message to send."""
    now_ns = time.time_ns()
    payload = PROBE + str(now_ns).encode()
    return transport.envelope(payload, timestamp_ns=now_ns, ephemeral=False)


async def examine_sending(
    findings: Findings, transport: Transport, url: str, settings: WakuSettings, wait_s: float
) -> None:
    """Send a message through the messaging layer of a node, and look for it in Store.

    A node does not return a client's own messages by this layer, so the check waits for none.

    Raises:
        TransportError: it cannot be sent.
    """
    began_s, where = time.perf_counter(), shown(url)
    envelope = probe(transport)
    sent = await transport.publish(envelope) or envelope
    took_ms = 1000 * (time.perf_counter() - began_s)
    findings.add("ok", "publish", where, f"the node sent a message in {took_ms:.0f} ms")
    if not await is_stored(findings, partial(has, transport, sent), where, wait_s):
        await explain_missing(findings, url, settings, envelope.payload, wait_s)


async def is_stored(
    findings: Findings, has: Callable[[], Awaitable[bool]], where: str, wait_s: float
) -> bool:
    """Query Store until it returns the test message. If Store does not answer, the finding
    `node.store` is reported."""
    began_s = time.perf_counter()
    with anyio.move_on_after(wait_s):
        while True:
            try:
                found = await has()
            except StoreUnavailable:
                return True
            if found:
                took_ms = 1000 * (time.perf_counter() - began_s)
                findings.add("ok", "store.archives", where, f"stored after {took_ms:.0f} ms")
                return True
            await anyio.sleep(LOOK_S)
    return False


async def explain_missing(
    findings: Findings, url: str, settings: WakuSettings, payload: bytes, wait_s: float
) -> None:
    """Report if the node's Store has the message under another pubsub topic than the channel's."""
    theirs, ours = await _stored_under(url, settings, payload), PubsubTopic.parse(settings.shard)
    if theirs is None:
        not_archived(findings, shown(url), wait_s)
    elif theirs.cluster_id != ours.cluster_id:
        wrong_cluster(findings, shown(url), theirs.cluster_id, ours.cluster_id)
    else:
        findings.add(
            "problem",
            "node.shard",
            shown(url),
            f"it maps the content topic to {theirs}, and the channel to {ours}",
            "give the network's number of shards: -o num_shards=…",
        )


def not_archived(findings: Findings, where: str, wait_s: float) -> None:
    findings.add(
        "problem",
        "store.archives",
        where,
        f"a message that was published is not in Store after {wait_s:g} s",
        f"compare the clocks of this machine and of the node (more than {CLOCK_S:g} s apart, and "
        "Store refuses the message), then cluster and shards, then the node's disk",
    )


def wrong_cluster(findings: Findings, where: str, theirs: int, ours: int) -> None:
    findings.add(
        "problem",
        "node.cluster",
        where,
        f"it is in cluster {theirs}, and the channel in cluster {ours}",
        f"give -o cluster_id={theirs}, or the --network that fits",
    )


async def _stored_under(url: str, settings: WakuSettings, payload: bytes) -> PubsubTopic | None:
    """Return the pubsub topic under which Store has a message; None if it has none."""
    query = StoreQuery(
        content_topics=(settings.content_topic,), ascending=False, page_size=COMPARED
    )
    async with WakuClient(url, retries=None) as client:
        try:
            entries = (await client.store(query)).entries
        except WakuError:
            return None
    for entry in entries:
        if entry.message is not None and entry.message.payload == payload and entry.pubsub_topic:
            return PubsubTopic.parse(entry.pubsub_topic)
    return None


async def has(transport: Transport, envelope: Envelope) -> bool:
    """Return True if Store has a message, asked by hash and, because it may ignore hashes, by
    time."""
    digest = envelope.message_hash
    try:
        if await transport.by_hash([digest]):
            return True
    except TransportError:
        pass
    at_ns = envelope.timestamp_ns
    async with aclosing(transport.by_time(at_ns - SKEW_NS, at_ns + SKEW_NS)) as pages:
        async for page in pages:
            if any(one.message_hash == digest for one in page):
                return True
    return False
