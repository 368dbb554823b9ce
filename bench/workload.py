"""The bytes that both sides are measured on: made once, in Python, from nothing but counters.

A channel in which eight peers have sent `history` messages. `traffic` is what comes next, as a peer
that has received everything sends it: the last `causal_history` ids of the log, each with its
retrieval hint and sender, and the bloom filter of the newest ids. `history_messages` build the log:
small ones without all that, for speed, and the newest as they are in `traffic`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from hashlib import sha256, sha512
from pathlib import Path
from typing import Final, NamedTuple

from reliable_channel.sds.bloom import BloomParameters, RollingBloomFilter
from reliable_channel.sds.dialects import sds_pb2

CHANNEL_ID: Final = "bench"
CONTENT_BYTES: Final = 64
FIRST_LAMPORT_MS: Final = 1_700_000_000_000
LAMPORT_STEP_MS: Final = 1000
"""Between two messages: room for own ones in between, so that what comes is always the newest."""
PEERS: Final = 8
NEWEST: Final = 256
"""Whole messages at the end of a history: more than a cache of the newest ones, 4 MiB for SDS-R,
holds, so that what is measured is not how large messages push small ones out of it."""


class WireMessage(NamedTuple):
    """A message as the transport hands it over."""

    wire: bytes
    retrieval_hint: bytes


def message_id(number: int) -> str:
    """The id of a message: 64 hex characters, opaque to both sides."""
    return sha256(b"message %d" % number).hexdigest()


def retrieval_hint(number: int) -> bytes:
    """What would be the message's hash at the transport: 32 bytes."""
    return sha256(b"hint %d" % number).digest()


def payloads(first: int, count: int) -> list[bytes]:
    """Contents of 64 bytes for own messages, no two equal: js-waku's ids are hashes of them."""
    return [sha512(b"payload %d" % n).digest() for n in range(first, first + count)]


def channel_time_ms(history: int) -> int:
    """The Lamport timestamp of the message that follows `history` others."""
    return FIRST_LAMPORT_MS + history * LAMPORT_STEP_MS


def history_ids(history: int) -> Iterator[str]:
    """The ids of the log, oldest first."""
    return map(message_id, range(history))


def history_messages(history: int, causal_history: int) -> Iterator[WireMessage]:
    """The messages that build a log, 64 bytes of content each; all but the newest are bare."""
    newest = min(history, NEWEST)
    for number in range(history - newest):
        body = sds_pb2.Message(content=_content(number))
        yield WireMessage(_head(number) + body.SerializeToString(), retrieval_hint(number))
    yield from traffic(history - newest, causal_history, newest)


def traffic(
    history: int, causal_history: int, count: int, *, has_filter: bool = True
) -> Iterator[WireMessage]:
    """The `count` messages that follow a log of `history` messages, each knowing all before it.

    protobuf's fields stand in ascending order and repeated ones follow one another, so that a
    message can be put together from encoded pieces: the bytes of encoding it whole, only faster.
    """
    entries = deque(
        map(_causal_entry, range(max(0, history - causal_history), history)), maxlen=causal_history
    )
    parameters = BloomParameters()
    newest = range(max(0, history - parameters.capacity), history)
    bloom = RollingBloomFilter(parameters, map(message_id, newest))
    for number in range(history, history + count):
        body = sds_pb2.Message(content=_content(number))
        if has_filter:
            body.bloom_filter = bytes(bloom)
        wire = b"".join((_head(number), *entries, body.SerializeToString()))
        yield WireMessage(wire, retrieval_hint(number))
        entries.append(_causal_entry(number))
        bloom.insert(message_id(number))


def write(path: Path, messages: Iterable[WireMessage]) -> None:
    """Write messages as `peer.mjs` reads them: wire and hint by turns, each after its length."""
    with path.open("wb") as file:
        for message in messages:
            for field in message:
                file.write(len(field).to_bytes(4))
                file.write(field)


def _sender_id(number: int) -> str:
    return f"peer-{number % PEERS}"


def _content(number: int) -> bytes:
    return sha512(b"content %d" % number).digest()


def _head(number: int) -> bytes:
    return sds_pb2.Message(
        sender_id=_sender_id(number),
        message_id=message_id(number),
        channel_id=CHANNEL_ID,
        lamport_timestamp=channel_time_ms(number),
    ).SerializeToString()


def _causal_entry(number: int) -> bytes:
    entry = sds_pb2.HistoryEntry(
        message_id=message_id(number),
        retrieval_hint=retrieval_hint(number),
        sender_id=_sender_id(number),
    )
    return sds_pb2.Message(causal_history=[entry]).SerializeToString()
