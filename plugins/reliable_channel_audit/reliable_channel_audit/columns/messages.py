"""SDS messages of the dialect `spec` as columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import count
from typing import Final, NamedTuple

import numpy as np

from reliable_channel.spi import CodecError, SpecCodec, sds_pb2, set_bits

from ..misbehaviour import MAX_FILL
from .packing import Unpacked
from .wire import Array, NeedsRowReader, Whole

_CODEC: Final = SpecCodec()
MAX_HEAD_BYTES: Final = 7
"""Maximum number of bytes of tag and length of a content."""
DIGEST_BYTES: Final = 32


class Ids(defaultdict[str, int]):
    """Numbers for ids, from 0 in the order of their first occurrence."""

    def __init__(self, *names: str) -> None:
        super().__init__(count(len(names)).__next__, zip(names, count()))

    def codes(self, names: Sequence[str]) -> Whole:
        return np.fromiter(map(self.__getitem__, names), np.int64, len(names))


class Messages(NamedTuple):
    """Wire messages as columns. The columns of ids contain numbers from an `Ids`."""

    sender: Whole
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


def no_messages() -> Messages:
    none = np.zeros(0, np.int64)
    digests = np.zeros((0, DIGEST_BYTES), np.uint8)
    return Messages(none, none, none, digests, *(none,) * 3, [])


class Found(NamedTuple):
    """Messages of some lines."""

    messages: Messages
    hints: Whole
    """Number of each retrieval hint (in `Messages.hints`) that occurs in a message."""
    hinted: Whole
    """Number of the message with the hint."""
    content_begin: Whole
    """Place of the field with the content in its message. -1 if its piece has other fields."""


def messages_of(unpacked: Unpacked, wire: Whole, skipped: Whole, ids: Ids) -> Found:
    """Return the messages in the texts `wire`. Data that occurs only in `skipped` texts is not
    decoded.

    Raises:
        NeedsRowReader: one that is none, is of another dialect, or is suspicious.
    """
    if unpacked.is_value[wire].any():
        raise NeedsRowReader("a message on the wire is packed as a value")
    is_skipped = np.zeros(len(unpacked.counts), bool)
    is_skipped[skipped] = True
    texts, decoder = _Texts(unpacked, ~is_skipped), _Decoder(ids)
    for parts in map(texts.parts, wire.tolist()):
        decoder.add(parts)
    return decoder.found()


def contents_of(unpacked: Unpacked, received: Whole) -> Array:
    """Return the SHA-256 of the contents that an application received, in the texts `received`."""
    is_wanted = np.zeros(len(unpacked.counts), bool)
    is_wanted[received] = True
    texts = _Texts(unpacked, is_wanted)
    contents = [
        _content_in(*texts.parts(text)) if is_value else b"".join(texts.parts(text))
        for text, is_value in zip(received.tolist(), unpacked.is_value[received], strict=True)
    ]
    return _digests([sha256(each).digest() for each in contents])


class _Texts:
    """Texts in parts, each of them one piece."""

    def __init__(self, unpacked: Unpacked, is_wanted: Array) -> None:
        is_piece = np.zeros(len(unpacked.sizes), bool)
        is_piece[unpacked.uses[np.repeat(is_wanted, unpacked.counts)]] = True
        pieces = unpacked.decode(is_piece)
        self._text, self._uses = pieces.text, unpacked.uses
        self._begins, self._ends = pieces.begins.tolist(), pieces.ends.tolist()
        self._lasts = np.cumsum(unpacked.counts).tolist()
        self._counts = unpacked.counts.tolist()

    def parts(self, text: int) -> list[bytes]:
        last = self._lasts[text]
        numbers = self._uses[last - self._counts[text] : last].tolist()
        return [self._text[self._begins[each] : self._ends[each]] for each in numbers]


class _Decoder:
    """Decoder of messages, one after the other, into columns."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._rows: list[tuple[int, ...]] = []
        self._contents: list[bytes] = []
        self._references: list[int] = []
        self._hints: dict[tuple[int, bytes], int] = {}
        self._hinted: list[tuple[int, int]] = []
        self._content_begin: list[int] = []

    def add(self, parts: Sequence[bytes]) -> None:
        """Decode the next message.

        Raises:
            NeedsRowReader: it is none, or rows may find something in it.
        """
        payload = b"".join(parts)
        raw = _parsed(payload)
        lamport = raw.lamport_timestamp if raw.HasField("lamport_timestamp") else -1
        filled = set_bits(raw.bloom_filter)
        if lamport >= 2**63:
            raise NeedsRowReader("a Lamport timestamp has more than 63 bits")
        if filled and filled >= MAX_FILL * 8 * len(raw.bloom_filter) - 1:  # whatever is rounded
            raise NeedsRowReader("a bloom filter has nearly all bits set")
        ids, numbers, place = self._ids, self._hints, len(self._rows)
        hints = [(ids[each.message_id], each.retrieval_hint) for each in raw.causal_history]
        self._hinted += [
            (numbers.setdefault(hint, len(numbers)), place) for hint in hints if hint[1]
        ]
        self._references += [reference for reference, _ in hints]
        about = ids[raw.sender_id], ids[raw.message_id], lamport
        self._rows.append((*about, len(payload), len(hints)))
        content = raw.content
        self._contents.append(sha256(content).digest())
        self._content_begin.append(_place_of(content, parts, len(payload)))

    def found(self) -> Found:
        """Return the messages so far."""
        sender, message_id, lamport, sizes, counts = np.array(self._rows, np.int64).reshape(-1, 5).T
        digests, references = _digests(self._contents), np.array(self._references, np.int64)
        hints, hinted = np.array(self._hinted, np.int64).reshape(-1, 2).T
        messages = Messages(
            *(sender, message_id, lamport, digests, sizes, counts, references, [*self._hints])
        )
        return Found(messages, hints, hinted, np.array(self._content_begin, np.int64))


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


def _place_of(content: bytes, parts: Sequence[bytes], end: int) -> int:
    """At which byte of a message its content's field begins, if a part is this field alone."""
    field = _head(len(content)) + content
    for part in reversed(parts):  # it is the last one of most messages
        end -= len(part)
        if part == field:
            return end
    return -1


def _content_in(field: bytes) -> bytes:
    """The value of a field of a content."""
    for size in range(len(_head(0)), min(len(field), MAX_HEAD_BYTES) + 1):
        head = _head(len(field) - size)
        if len(head) == size and field.startswith(head):
            return field[size:]
    raise NeedsRowReader("a received value belongs to another field than the content")


@lru_cache(maxsize=1_000)
def _head(length: int) -> bytes:
    """Tag and length of the field of a content."""
    head = bytearray(b"\xa2\x01")  # field 20 with bytes
    while length >= 0x80:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*head, length])


def _digests(digests: Sequence[bytes]) -> Array:
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, DIGEST_BYTES)


def rows_of(digests: Array) -> list[bytes]:
    """Return the rows of 32 bytes as a list."""
    data = digests.tobytes()
    return [data[at : at + DIGEST_BYTES] for at in range(0, len(data), DIGEST_BYTES)]
