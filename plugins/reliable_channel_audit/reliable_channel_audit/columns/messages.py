"""SDS messages of the dialect `spec` as columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha256
from itertools import count
from typing import Final, NamedTuple

import numpy as np

from reliable_channel.spi import CodecError, SpecCodec, sds_pb2, set_bits

from ..misbehaviour import MAX_FILL
from .arrays import Array, NeedsRowReader, Whole

_CODEC: Final = SpecCodec()


class Ids(defaultdict[str, int]):
    """Numbers for ids, from 0 in the order of their first occurrence."""

    def __init__(self, *names: str) -> None:
        super().__init__(count(len(names)).__next__, zip(names, count()))

    def codes(self, names: Sequence[str]) -> Whole:
        return np.fromiter(map(self.__getitem__, names), np.int64, len(names))


class Messages(NamedTuple):
    """Wire messages as columns. The columns of ids contain numbers from an `Ids`."""

    sender_id: Whole
    message_id: Whole
    lamport_timestamp: Whole
    """Lamport timestamp of each message (-1 without a timestamp)."""
    content_sha256: Array
    """SHA-256 of each message's content, as rows of 32 bytes. For a message without content, the
    row is the hash of empty bytes."""
    total_bytes: Whole
    reference_counts: Whole
    references: Whole
    """References of all messages, beginning with those of the first message."""
    hints: list[tuple[int, bytes]]
    """Retrieval hints, each with the number of the message id that it belongs to."""


class Decoded(NamedTuple):
    """One wire message."""

    sender_id: int
    message_id: int
    lamport_timestamp: int
    content_sha256: bytes
    total_bytes: int
    references: list[int]
    hints: list[tuple[int, bytes]]


def decoded(payload: bytes, ids: Ids) -> Decoded:
    """Return the message in a payload.

    Raises:
        NeedsRowReader: it is none, or rows may find something in it.
    """
    raw = _parsed(payload)
    lamport = raw.lamport_timestamp if raw.HasField("lamport_timestamp") else -1
    filled = set_bits(raw.bloom_filter)
    if lamport >= 2**63:
        raise NeedsRowReader("a Lamport timestamp has more than 63 bits")
    if filled and filled >= MAX_FILL * 8 * len(raw.bloom_filter) - 1:  # whatever is rounded
        raise NeedsRowReader("a bloom filter has nearly all bits set")
    entries = raw.causal_history
    references = [ids[each.message_id] for each in entries]
    hints = zip(references, [each.retrieval_hint for each in entries], strict=True)
    return Decoded(
        ids[raw.sender_id],
        ids[raw.message_id],
        lamport,
        sha256(raw.content).digest(),
        len(payload),
        references,
        [hint for hint in hints if hint[1]],
    )


def _parsed(payload: bytes) -> sds_pb2.Message:
    try:
        if _CODEC.recognises(payload):
            raw = _CODEC.parse(payload)
            if raw.HasField("log_root") or raw.HasField("reconciling"):
                _CODEC.decode(payload)  # which checks these, too
            return raw
    except CodecError as error:
        raise NeedsRowReader("the bytes are no SDS message") from error
    raise NeedsRowReader("a message is of another dialect")
