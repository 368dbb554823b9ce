"""SDS messages of the dialect `spec` as columns. A message consists of pieces with fields, and each
piece is decoded once for all messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha256
from itertools import count
from typing import Final, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from reliable_channel.spi import (
    MAX_HISTORY_ENTRIES,
    MAX_ID_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_UNPACKED_BYTES,
    sds_pb2,
)

from ..misbehaviour import MAX_FILL
from .packing import Pieces, Unpacked
from .wire import Array, Fields, NeedsRowReader, Whole, fields, ramps

_BYTES: Final = 2
SENDER, MESSAGE_ID, CHANNEL = (number << 3 | _BYTES for number in (1, 2, 3))
LAMPORT: Final = 10 << 3
HISTORY, BLOOM, REPAIR, CONTENT = (number << 3 | _BYTES for number in (11, 12, 13, 20))
RECONCILING, ROOT, SIGNATURE = 21106 << 3 | 2, 21108 << 3 | 2, 21109 << 3 | 2
ONCE: Final = (SENDER, MESSAGE_ID, CHANNEL, LAMPORT, BLOOM, CONTENT, ROOT, SIGNATURE)
TAGS: Final = frozenset({*ONCE, HISTORY, REPAIR, RECONCILING})
ENTRY_ID, ENTRY_HINT, ENTRY_SENDER = (number << 3 | _BYTES for number in (1, 2, 3))
_NOTHING: Final = sha256(b"").digest()
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
    """Messages of some lines, and contents that the application received."""

    messages: Messages
    contents: Array
    """SHA-256 of each received content, as rows of 32 bytes."""
    hints: Whole
    """Number of each retrieval hint (in `Messages.hints`) that occurs in a message."""
    hinted: Whole
    """Number of the message with the hint."""
    content_begin: Whole
    """Place of the field with the content in its message. -1 if its piece has other fields."""


def messages_of(
    unpacked: Unpacked, wire: Whole, received: Whole, skipped: Whole, ids: Ids
) -> Found:
    """Return the messages in the texts `wire`, and the hashes of the texts `received`.

    Data that occurs only in `skipped` texts is not decoded.

    Raises:
        NeedsRowReader: one that is none, is of another dialect, or has a field twice.
    """
    starts = np.cumsum(unpacked.counts) - unpacked.counts
    if unpacked.is_value[wire].any():
        raise NeedsRowReader("a message on the wire is packed as a value")
    counts = unpacked.counts[wire]
    uses = unpacked.uses[ramps(starts[wire], counts)]
    is_used = np.zeros(len(unpacked.sizes), bool)
    is_used[uses] = True
    is_wanted = np.ones(len(is_used), bool)
    is_skipped = np.zeros(len(unpacked.counts), bool)
    is_skipped[skipped] = True
    of_skipped = np.repeat(is_skipped, unpacked.counts)
    is_wanted[unpacked.uses[of_skipped]] = False
    is_wanted[unpacked.uses[~of_skipped]] = True
    values = received[unpacked.is_value[received]]
    is_used[unpacked.uses[starts[values]]] = True
    pieces = unpacked.decode(is_wanted)
    used, places = np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[uses]
    found = fields(pieces.data, pieces.begins[used], pieces.ends[used])
    if not TAGS.issuperset(np.unique(found.tag).tolist()):
        raise NeedsRowReader("a message has an unknown field")
    decoded = _Decoded(pieces, found, ids)
    sizes = np.bincount(
        np.repeat(np.arange(len(wire)), counts), weights=unpacked.sizes[uses], minlength=len(wire)
    ).astype(np.int64)
    each = np.bincount(found.owner, minlength=len(used))
    of_each = each[places]
    rows = ramps((np.cumsum(each) - each)[places], of_each)
    owner = np.repeat(np.repeat(np.arange(len(wire)), counts), of_each)
    messages = _put_together(decoded, rows, owner, sizes)
    contents = _contents(unpacked, pieces, starts, received, used, each, decoded)
    hints = decoded.hint[rows]
    has_hint = hints >= 0
    # A content that stands alone in its piece begins where the piece does.
    begins = np.repeat(unpacked.places(wire), of_each)
    alone = (decoded.found.tag[rows] == CONTENT) & (np.repeat(of_each, of_each) == 1)
    content_begin = np.full(len(wire), -1, np.int64)
    content_begin[owner[alone]] = begins[alone]
    return Found(messages, contents, hints[has_hint], owner[has_hint], content_begin)


class _Decoded:
    """What is known of each field of a piece."""

    def __init__(self, pieces: Pieces, found: Fields, ids: Ids) -> None:
        self.found = found
        self._text = pieces.text
        count = len(found.tag)
        self.code = np.full(count, -1, np.int64)
        self.sha256 = np.zeros((count, DIGEST_BYTES), np.uint8)
        self.hints: list[tuple[int, bytes]] = []
        self.hint = np.full(count, -1, np.int64)
        """Of a reference which one of the hints it has."""
        for tag in (SENDER, MESSAGE_ID, CHANNEL):
            at = np.flatnonzero(found.tag == tag)
            names = _names(self._values(at), MAX_ID_BYTES)
            if tag != CHANNEL:
                self.code[at] = ids.codes(names)
        at = np.flatnonzero(found.tag == CONTENT)
        digests = b"".join([sha256(each).digest() for each in self._values(at)])
        self.sha256[at] = np.frombuffer(digests, np.uint8).reshape(-1, DIGEST_BYTES)
        self._entries(pieces, HISTORY, ids)
        self._entries(pieces, REPAIR, ids)
        at = np.flatnonzero(found.tag == BLOOM)
        for each in self._values(at):
            filled = np.bitwise_count(np.frombuffer(each, np.uint8)).sum()
            if filled and filled >= MAX_FILL * 8 * len(each) - 1:  # roundings do not matter
                raise NeedsRowReader("a bloom filter has nearly all bits set")
        self._others()

    def _values(self, at: Whole) -> list[bytes]:
        text = self._text
        begins = self.found.begin[at]
        ends = begins + self.found.value[at]
        return [text[a:b] for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]

    def _entries(self, pieces: Pieces, tag: int, ids: Ids) -> None:
        """Entries of histories, or of repair requests."""
        at = np.flatnonzero(self.found.tag == tag)
        begins = self.found.begin[at]
        inner = fields(pieces.data, begins, begins + self.found.value[at])
        if (
            len(np.unique(inner.owner * 4 + (inner.tag >> 3 & 3))) != len(inner.tag)
            or not np.isin(inner.tag, (ENTRY_ID, ENTRY_HINT, ENTRY_SENDER)).all()
        ):
            raise NeedsRowReader("an entry of a message has unknown or repeated fields")
        text, ends = self._text, inner.begin + inner.value
        values = [text[a:b] for a, b in zip(inner.begin.tolist(), ends.tolist(), strict=True)]
        is_name = inner.tag != ENTRY_HINT
        texts = _names([values[i] for i in np.flatnonzero(is_name).tolist()], MAX_UNPACKED_BYTES)
        if tag == REPAIR:
            return
        is_id = inner.tag[is_name] == ENTRY_ID
        codes = ids.codes([texts[i] for i in np.flatnonzero(is_id).tolist()])
        places = at[inner.owner[is_name][is_id]]
        self.code[places] = codes
        nameless = at[self.code[at] < 0]
        if len(nameless):
            self.code[nameless] = ids[""]
        for i in np.flatnonzero(inner.tag == ENTRY_HINT).tolist():
            place = at[inner.owner[i]]
            self.hint[place] = len(self.hints)
            self.hints.append((int(self.code[place]), values[i]))

    def _others(self) -> None:
        """What is not needed must be what a decoder takes."""
        for tag, kind in ((RECONCILING, sds_pb2.Reconciling), (ROOT, sds_pb2.LogRoot)):
            for each in self._values(np.flatnonzero(self.found.tag == tag)):
                try:
                    kind.FromString(each)
                except DecodeError as error:
                    raise NeedsRowReader("a field of a message cannot be read") from error


def _put_together(decoded: _Decoded, rows: Whole, owner: Whole, sizes: Whole) -> Messages:
    """Messages of so many bytes each; `rows` are fields of pieces, `owner` their messages."""
    count, tags = len(sizes), decoded.found.tag[rows]

    def one(tag: int, values: Array, missing: int) -> Whole:
        chosen = tags == tag
        found = np.full(count, missing, np.int64)
        found[owner[chosen]] = values[rows[chosen]]
        return found

    for tag in ONCE:
        if (np.bincount(owner[tags == tag], minlength=count) > 1).any():
            raise NeedsRowReader("a message has a field twice that may occur once")
    value = decoded.found.value
    field = one(CONTENT, np.arange(len(value)), -1)
    digests = decoded.sha256[field]
    digests[field < 0] = np.frombuffer(_NOTHING, np.uint8)
    is_reference = tags == HISTORY
    counts = np.bincount(owner[is_reference], minlength=count)
    asked = tags == REPAIR
    entries = counts + np.bincount(owner[asked], minlength=count)
    lamport, content = one(LAMPORT, value, -1), one(CONTENT, value, 0)
    sender, message_id = one(SENDER, decoded.code, -1), one(MESSAGE_ID, decoded.code, -1)
    if (
        (sizes > MAX_MESSAGE_BYTES).any()
        or (entries > MAX_HISTORY_ENTRIES).any()
        or ((lamport < 0) & (content == 0)).any()
        or (sender < 0).any()
        or (message_id < 0).any()
    ):
        raise NeedsRowReader("the bytes are no SDS message, or the message lacks a sender or id")
    references = decoded.code[rows[is_reference]]
    return Messages(sender, message_id, lamport, digests, sizes, counts, references, decoded.hints)


def _contents(
    unpacked: Unpacked,
    pieces: Pieces,
    starts: Whole,
    received: Whole,
    used: Whole,
    each: Whole,
    decoded: _Decoded,
) -> Array:
    """sha256 of what applications received: the value of a content that came, as nearly always, or
    separate bytes."""
    digests = np.zeros((len(received), DIGEST_BYTES), np.uint8)
    firsts = np.cumsum(each) - each
    of_piece = unpacked.uses[starts[received]]
    is_value = unpacked.is_value[received]
    values = np.flatnonzero(is_value)
    places = np.searchsorted(used, of_piece[values])
    places = np.minimum(places, len(used) - 1)
    if len(values):
        if not len(used) or (used[places] != of_piece[values]).any() or (each[places] != 1).any():
            raise NeedsRowReader(
                "a received value belongs to a message that did not arrive, or arrived twice"
            )
        rows = firsts[places]
        if (decoded.found.tag[rows] != CONTENT).any():
            raise NeedsRowReader("a received value belongs to another field than the content")
        digests[values] = decoded.sha256[rows]
    for place in np.flatnonzero(~is_value).tolist():
        text = int(received[place])
        begin = int(starts[text])
        parts = unpacked.uses[begin : begin + int(unpacked.counts[text])].tolist()
        content = b"".join(map(pieces.piece, parts))
        digests[place] = np.frombuffer(sha256(content).digest(), np.uint8)
    return digests


def _names(values: Sequence[bytes], longest: int) -> list[str]:
    """Texts of no more than so many characters."""
    try:
        known = {each: each.decode() for each in set(values)}
    except UnicodeDecodeError as error:
        raise NeedsRowReader("an id is not UTF-8") from error
    if any(len(each) > longest for each in known.values()):
        raise NeedsRowReader("an id is longer than allowed")
    return list(map(known.__getitem__, values))


def rows_of(digests: Array) -> list[bytes]:
    """Return the rows of 32 bytes as a list."""
    data = digests.tobytes()
    return [data[at : at + DIGEST_BYTES] for at in range(0, len(data), DIGEST_BYTES)]
