"""Lines of one participant's journals, and their messages, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, compress, pairwise
from typing import IO, Final, NamedTuple

import numpy as np

from reliable_channel.spi import MAX_MESSAGE_BYTES

from ..journals import MAX_LINE_BYTES
from ..lines import OPENED, WIRE_IN, WIRE_OUT, Json
from .forms import FORMS, RECEIVED, Lines, hashed
from .known import Known
from .messages import DIGEST_BYTES, Messages, contents_of, messages_of, no_messages, rows_of
from .packing import unpacked
from .wire import Array, NeedsRowReader, Whole

BLOCK_BYTES: Final = 1024 * 1024
"""Size of the text that is read at a time, so that its lines stay in the processor's cache."""
MAX_RANGE: Final = 200_000
"""Maximum number of lines that need each other. A `Packer` starts over much earlier."""
ROWS_ONLY: Final = frozenset(
    {"message_forged", "message_lost", "message_rejected", "delivery_failed", "send_failed"}
    | {OPENED, *(form.event for form in FORMS)}
)
"""Events that need the row reader, if they have a line without a form."""


class Texts(NamedTuple):
    """Lines with packed bytes."""

    is_fresh: bool
    """True if they need no earlier lines."""
    packed: list[str]
    is_wire: Array
    is_received: Array
    hashes: list[bytes]
    """Hashes of the wire messages."""


class Block(NamedTuple):
    """Consecutive lines."""

    first: int
    """Number of the first line in the life."""
    lines: Lines
    at_ms: Whole
    others: list[tuple[int, Json]]
    """Lines of rare events, with their numbers in the block."""
    texts: list[Texts]


def blocks_of(file: IO[bytes], first: int) -> Iterator[Block]:
    """Yield the rest of a file. `first` is the number of its first line.

    Raises:
        NeedsRowReader: a line that cannot be read, or that is not understood here.
    """
    longest = MAX_LINE_BYTES - BLOCK_BYTES
    while read := file.read(BLOCK_BYTES):
        rest = file.readline(longest)
        if len(rest) == longest:
            raise NeedsRowReader("a line of the journal is too long for the column reader")
        lines = Lines(read + rest)
        yield _block(lines, first)
        first += len(lines)


def _block(lines: Lines, first: int) -> Block:
    others = list(lines.others())
    digits: list[str | None] = []
    for _, row in others:
        if row.event in ROWS_ONLY or row.redelivered or row.payload is not None:
            raise NeedsRowReader(f"only the row reader can judge a line {row.event}")
        digits += row.message_hash, row.retrieval_hint, row.content_sha256
    # Hashes that are not needed here: a line with another text is invalid.
    given = [each for each in digits if each is not None]
    if any(len(each) != 2 * DIGEST_BYTES for each in given):
        raise NeedsRowReader("a hash has a wrong number of digits")
    hashed("".join(given))
    with_form = np.flatnonzero(lines.form >= 0)
    at_ms = np.zeros(len(lines), np.int64)
    at_ms[with_form] = lines.numbers("at_ms", with_form)
    at_ms[[place for place, _ in others]] = [row.at_ms for _, row in others]
    return Block(first, lines, at_ms, others, list(_texts(lines, others)))


def _texts(lines: Lines, others: list[tuple[int, Json]]) -> Iterator[Texts]:
    """The packed bytes, cut before fresh lines."""
    wire, received = lines.of(WIRE_IN, WIRE_OUT), lines.of(RECEIVED)
    rest = {place: row.packed for place, row in others if row.packed is not None}
    places = np.sort(np.concatenate([wire, received, np.array([*rest], np.int64)]))
    packed = lines.texts("packed", places)
    for place, text in rest.items():
        packed[int(np.searchsorted(places, place))] = text
    is_wire, is_received = np.isin(places, wire), np.isin(places, received)
    hashes = rows_of(lines.hashes("message_hash", wire))
    fresh = np.sort(np.append(lines.fresh(), [place for place, row in others if row.fresh]))
    cuts = np.searchsorted(places, fresh).tolist()
    is_first = True
    for begin, end in pairwise([0, *cuts, len(places)]):
        wires = int(is_wire[:begin].sum()), int(is_wire[:end].sum())
        yield Texts(
            not is_first,
            packed[begin:end],
            is_wire[begin:end],
            is_received[begin:end],
            hashes[slice(*wires)],
        )
        is_first = False


class Payloads:
    """Decoder of the bytes of lines, up to the next fresh line at a time."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._waiting: list[Texts] = []
        self.messages: list[Messages] = [no_messages()]
        self.contents: list[Array] = [np.zeros((0, DIGEST_BYTES), np.uint8)]
        """Hashes (sha256) of received contents, one row of bytes each."""

    def add(self, texts: Texts) -> None:
        """Add lines, whose hashes are valid.

        Raises:
            NeedsRowReader: bytes that are not understood here.
        """
        if texts.is_fresh:
            self.decode()
        self._waiting.append(texts)
        if sum(len(each.is_wire) for each in self._waiting) > MAX_RANGE:
            raise NeedsRowReader("too many lines of the journal refer to each other")

    def decode(self) -> None:
        """Decode the lines that wait.

        Raises:
            NeedsRowReader: bytes that are not understood here.
        """
        waiting, self._waiting = self._waiting, []
        if not any(each.packed for each in waiting):
            return
        _, packed, wires, received_lines, hash_lists = zip(*waiting, strict=True)
        texts = unpacked([*chain(*packed)])
        if (texts.bytes_of() > MAX_MESSAGE_BYTES).any():
            raise NeedsRowReader("a payload is longer than a Waku message")
        wire = np.flatnonzero(np.concatenate(wires))
        received = np.flatnonzero(np.concatenate(received_lines))
        hashes = [*chain(*hash_lists)]
        sizes, known = texts.bytes_of()[wire], self._known
        places = known.places(hashes, sizes)
        new = places < 0
        found = messages_of(texts, wire[new], np.append(wire[~new], received), known.ids)
        self.messages.append(known.with_known(found.messages, places))
        known.add([*compress(hashes, new)], found)
        contents, is_known = known.contents(texts, wire, known.places(hashes, sizes), received)
        if not is_known.all():
            contents[~is_known] = contents_of(texts, received[~is_known])
        self.contents.append(contents)
