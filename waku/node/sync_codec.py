"""Requests of store synchronisation and their answers, as joined nodes write them.

    {"service": "reconcile", "ranges": [[[lower, ""], [upper, ""], count, fingerprint], …]}
    {"status": 200, "since": …, "replies": [null, {"ids": [[timestamp, hash], …]}, {"parts": […]}]}
    {"service": "transfer", "messages": [{"pubsubTopic": …, "message": {…}}, …]}

They travel as requests of services do (`service_codec`). The other node wrote what is read here:
every reader raises `ValueError` and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from waku.models import HASH_BYTES
from waku.node.envelope import Envelope
from waku.node.reconciliation import (
    LIST_IDS,
    MAX_RANGES,
    PARTS,
    Listed,
    Reply,
    Split,
    Summary,
    SyncId,
)

__all__ = [
    "MAX_GIFT",
    "SYNC_SERVICES",
    "gift_json",
    "gift_of",
    "ranges_json",
    "ranges_of",
    "replies_json",
    "replies_of",
]

SYNC_SERVICES: Final = ("reconcile", "transfer")
MAX_GIFT: Final = 100
"""Messages that are handed over at once."""
OK: Final = 200
MAX_COUNT: Final = 2**53
MAX_TIME_NS: Final = 2**63


def ranges_json(ranges: Iterable[Summary]) -> dict[str, object]:
    """Write a request to compare ranges."""
    return {"service": "reconcile", "ranges": [_summary_json(one) for one in ranges]}


def ranges_of(value: Mapping[str, Any]) -> list[Summary]:
    """Read a request to compare ranges.

    Raises:
        ValueError: it is none.
    """
    match value:
        case {"ranges": [*ranges]} if len(ranges) <= MAX_RANGES:
            return [_summary_of(one) for one in ranges]
    raise ValueError(f"not at most {MAX_RANGES} ranges to compare")


def replies_json(replies: Iterable[Reply], since_ns: int) -> dict[str, object]:
    """Write the answer to `ranges_json`; `since_ns` is how far back its side keeps."""
    return {"status": OK, "since": since_ns, "replies": [_reply_json(reply) for reply in replies]}


def replies_of(value: Mapping[str, Any]) -> tuple[list[Reply], int]:
    """Read the answer to `ranges_json`.

    Raises:
        ValueError: it is none.
    """
    match value:
        case {"status": 200, "since": int(since_ns), "replies": [*replies]}:
            if len(replies) <= MAX_RANGES:
                return [_reply_of(reply) for reply in replies], since_ns
    raise ValueError("not an answer to ranges that were to be compared")


def gift_json(envelopes: Iterable[Envelope]) -> dict[str, object]:
    """Write a request to keep messages."""
    return {"service": "transfer", "messages": [one.to_json() for one in envelopes]}


def gift_of(value: Mapping[str, Any]) -> list[Envelope]:
    """Read a request to keep messages.

    Raises:
        ValueError: it is none.
    """
    match value:
        case {"messages": [*messages]} if len(messages) <= MAX_GIFT:
            return [Envelope.from_json(message) for message in messages]
    raise ValueError(f"not at most {MAX_GIFT} messages to keep")


def _summary_json(summary: Summary) -> list[object]:
    bounds = (_id_json(summary.lower), _id_json(summary.upper))
    return [*bounds, summary.count, summary.fingerprint.to_bytes(HASH_BYTES).hex()]


def _summary_of(value: object) -> Summary:
    match value:
        case [lower, upper, int(count), str(fingerprint)] if 0 <= count < MAX_COUNT:
            digest = _hash_of(fingerprint)
            if len(digest) == HASH_BYTES:
                number = int.from_bytes(digest)
                return Summary(_id_of(lower), _id_of(upper), count, number)
    raise ValueError("not the summary of a range")


def _reply_json(reply: Reply) -> dict[str, object] | None:
    match reply:
        case None:
            return None
        case Listed(ids):
            return {"ids": [_id_json(one) for one in ids]}
        case Split(parts):
            return {"parts": [_summary_json(part) for part in parts]}


def _reply_of(value: object) -> Reply:
    match value:
        case None:
            return None
        case {"ids": [*ids]} if len(ids) <= LIST_IDS:
            return Listed([_id_of(one) for one in ids])
        case {"parts": [*parts]} if len(parts) <= PARTS:
            return Split([_summary_of(part) for part in parts])
    raise ValueError("not the reply to a range")


def _id_json(sync_id: SyncId) -> list[object]:
    timestamp, message_hash = sync_id
    return [timestamp, message_hash.hex()]


def _id_of(value: object) -> SyncId:
    match value:
        case [int(timestamp), str(text)] if -MAX_TIME_NS <= timestamp < MAX_TIME_NS:
            return timestamp, _hash_of(text)
    raise ValueError("not a timestamp and a hash")


def _hash_of(text: str) -> bytes:
    if len(text) not in (0, 2 * HASH_BYTES):
        raise ValueError("not a hash")
    return bytes.fromhex(text)
