"""Stores as real channels and as crafted messages fill them."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import anyio

from pytest_reliable_channel.channels import now_ns
from reliable_channel import ReliableChannel
from reliable_channel.spi import SPEC, HistoryEntry, Message, Transport
from reliable_channel.transport import LossyTransport, MemoryNetwork
from reliable_channel_audit.findings import SETTLE_MS
from reliable_channel_audit.store_audit.tally import StoreTally
from reliable_channel_audit.store_audit.verdict import StoreVerdict, judged

TOPIC = "/reliable-channel/1/ops/proto"
START_MS = 1_700_000_000_000


class StoredMessage(NamedTuple):
    message_hash: bytes
    timestamp_ns: int
    payload: bytes


class Deaf(LossyTransport):
    has_store = False


async def real_store(profile: str = "spec", deaf: str = "") -> list[StoredMessage]:
    """What three members leave that take turns for two minutes, in order of time; one of them may
    hear nothing, and have no Store to ask."""
    network = MemoryNetwork()

    def member(sender_id: str) -> ReliableChannel:
        transport: Transport = network.transport()
        if sender_id == deaf:
            transport = Deaf(transport, drop_incoming=1, seed=1)
        return ReliableChannel(
            channel_id="ops",
            sender_id=sender_id,
            transport=transport,
            now_ns=now_ns,
            wire_profile=profile,
        )

    async with member("alice") as alice, member("bob") as bob, member("carol") as carol:
        for number in range(24):
            await (alice, bob, carol)[number % 3].send(f"message {number}".encode())
            await anyio.sleep(5)
        await anyio.sleep(120)
    found = [
        StoredMessage(each.message_hash, each.timestamp_ns, each.payload)
        for each in network.store.values()
    ]
    return sorted(found, key=lambda each: each.timestamp_ns)


def crafted(
    message_id: str,
    sender_id: str,
    second: float,
    *,
    lamport_ms: int | None = None,
    refers_to: Sequence[str] = (),
    asks_for: Sequence[str] = (),
    content: bytes | None = b"content",
    bloom_filter: bytes | None = None,
) -> StoredMessage:
    """A message as any participant could send it, so many seconds after the start."""
    at_ms = START_MS + int(second * 1000)
    message = Message(
        sender_id,
        message_id,
        "ops",
        lamport_timestamp=at_ms if lamport_ms is None else lamport_ms,
        causal_history=[HistoryEntry(each) for each in refers_to],
        repair_request=[HistoryEntry(each, sender_id="zoe") for each in asks_for],
        content=content,
        bloom_filter=bloom_filter,
    )
    payload = SPEC.codec.encode(message)
    digest = sha256(payload + message_id.encode() + str(second).encode()).digest()
    return StoredMessage(digest, at_ms * 1_000_000, payload)


def sync(sender_id: str, second: float, **fields: Any) -> StoredMessage:
    return crafted(f"sync-{sender_id}-{second}", sender_id, second, content=None, **fields)


def verdict_of(
    messages: Iterable[StoredMessage], settle_ms: int = SETTLE_MS, silent_ms: int | None = None
) -> StoreVerdict:
    """What is found in messages."""
    tally = StoreTally(settle_ms)
    for each in messages:
        tally.add(TOPIC, each.timestamp_ns, len(each.payload), each.payload)
    return judged(tally, silent_ms=silent_ms)


def troubles(verdict: StoreVerdict) -> list[tuple[str, str | None, str | None]]:
    """Kind, message and sender of each finding."""
    return [(each.trouble, each.message_id, each.sender_id) for each in verdict.findings]
