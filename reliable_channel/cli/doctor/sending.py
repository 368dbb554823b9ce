"""A message that the doctor sends, and what becomes of it in Store."""

import time
from contextlib import aclosing
from typing import Final

import anyio

from ...transport.base import Envelope, StoreUnavailable, Transport, TransportError
from .findings import Findings

PROBE: Final = b"reliable-channel doctor "
"""Begins the payload of the message that is sent. Channels drop it: it is not one of SDS."""
LOOK_S: Final = 0.2
SKEW_NS: Final = 300_000_000_000
"""Maximum difference between the node's timestamp and ours in a Store query by time."""


def probe(transport: Transport) -> Envelope:
    """Return a message to send."""
    now_ns = time.time_ns()
    payload = PROBE + str(now_ns).encode()
    return transport.envelope(payload, timestamp_ns=now_ns, ephemeral=False)


async def examine_sending(
    findings: Findings, transport: Transport, where: str, wait_s: float
) -> None:
    """Send a message through a messaging layer, and look for it in Store.

    A node does not return a client's own messages there, so nothing is awaited.

    Raises:
        TransportError: it cannot be sent.
    """
    began_s = time.perf_counter()
    envelope = probe(transport)
    sent = await transport.publish(envelope) or envelope
    took_ms = 1000 * (time.perf_counter() - began_s)
    findings.add("ok", "publish", where, f"the node sent a message in {took_ms:.0f} ms")
    if not await is_stored(findings, transport, sent, where, wait_s):
        findings.add(
            "problem",
            "store.archives",
            where,
            f"a message that was sent is not in Store after {wait_s:g} s",
            "compare cluster and number of shards: here the node chooses the shard",
        )


async def is_stored(
    findings: Findings, transport: Transport, envelope: Envelope, where: str, wait_s: float
) -> bool:
    """Query Store until it returns a message. If Store does not answer, report `node.store`."""
    began_s = time.perf_counter()
    with anyio.move_on_after(wait_s):
        while True:
            try:
                found = await _has(transport, envelope)
            except StoreUnavailable:
                return True
            if found:
                took_ms = 1000 * (time.perf_counter() - began_s)
                findings.add("ok", "store.archives", where, f"stored after {took_ms:.0f} ms")
                return True
            await anyio.sleep(LOOK_S)
    return False


async def _has(transport: Transport, envelope: Envelope) -> bool:
    """Whether Store has a message, asked by hash, and by time: it may refuse or ignore hashes."""
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
