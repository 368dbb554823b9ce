"""Notation of bytes, messages and times in test vectors."""

from typing import Any

from reliable_channel.spi import SPEC, HistoryEntry, Message


def entry(reference: HistoryEntry) -> dict[str, str | None]:
    """Return the notation of a causal history entry."""
    hint = reference.retrieval_hint
    return {
        "message_id": reference.message_id,
        "retrieval_hint": None if hint is None else hint.hex(),
        "sender_id": reference.sender_id,
    }


def fields(message: Message) -> dict[str, Any]:
    """Return the notation of a message's fields. The Lamport timestamp is text, because JSON
    numbers lose precision."""
    lamport = message.lamport_timestamp
    return {
        "sender_id": message.sender_id,
        "message_id": message.message_id,
        "channel_id": message.channel_id,
        "lamport_timestamp": None if lamport is None else str(lamport),
        "causal_history": [entry(each) for each in message.causal_history],
        "bloom_filter": None if message.bloom_filter is None else bits(message.bloom_filter),
        "repair_request": [entry(each) for each in message.repair_request],
        "content": None if message.content is None else message.content.hex(),
    }


def bits(data: bytes) -> dict[str, Any]:
    """Return the notation of a bloom filter, which lists the bits that are set. The notation counts
    bit i in the 64-bit big-endian word i // 64."""
    found = [
        64 * (at // 8) + 8 * (7 - at % 8) + bit
        for at, byte in enumerate(data)
        for bit in range(8)
        if byte >> bit & 1
    ]
    if len(found) == 8 * len(data):
        return {"bytes": len(data), "all_ones": True}
    return {"bytes": len(data), "bits": sorted(found)}


def wire(data: bytes) -> dict[str, Any]:
    """Return the notation of a message without its filter, because the filter is 18 kB with few set
    bits."""
    held = SPEC.codec.decode(data).bloom_filter
    if not held or len(held) < 64:
        return {"bytes": len(data), "before": data.hex(), "bloom_filter": None, "after": ""}
    at = data.index(held)
    after = data[at + len(held) :]
    return {
        "bytes": len(data),
        "before": data[:at].hex(),
        "bloom_filter": bits(held),
        "after": after.hex(),
    }
