"""Lines of one participant's journals, and their messages, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, compress, pairwise
from operator import attrgetter
from typing import IO, Any, Final, NamedTuple

import numpy as np

from reliable_channel.spi import MAX_MESSAGE_BYTES

from ..journals import MAX_LINE_BYTES
from ..lines import KNOWN, LOGGED, OPENED, WIRE_IN, WIRE_OUT, Json, all_json_of
from .known import Known
from .messages import DIGEST_BYTES, Messages, messages_of, no_messages
from .packing import Unpacked, unpacked, whole
from .wire import Array, NeedsRowReader, Whole

BLOCK_BYTES: Final = 512 * 1024
"""Size of the text that is read at a time, so that its lines stay in the processor's cache."""
MAX_RANGE: Final = 200_000
"""Maximum number of lines that need each other. A `Packer` starts over much earlier."""
HASH_DIGITS: Final = 64
RECEIVED: Final = "message_received"
TAKEN_APART: Final = frozenset({WIRE_IN, WIRE_OUT, LOGGED})
"""Events whose hashes become columns."""
_NOWHERE: Final = np.zeros(0, np.int64)
_LINE_END, _OPENED, _CLOSED = b"\n{}"
_COMMON: Final = "event", "redelivered", "packed", "payload", "at_ms"


class Lines(NamedTuple):
    """Lines of one kind, with their numbers in the life."""

    numbers: Whole
    rows: list[Json]

    def columns(self, *names: str) -> list[list[Any]]:
        """Return the values of the lines, by name."""
        return [[*map(attrgetter(name), self.rows)] for name in names]

    def hashes(self) -> None:
        """Check hashes that are not needed here: a line with another text is invalid.

        Raises:
            NeedsRowReader: there is one.
        """
        for column in self.columns("message_hash", "retrieval_hint", "content_sha256"):
            hashed([each for each in column if each is not None])


class Texts(NamedTuple):
    """Lines with bytes, packed or as they are."""

    is_fresh: bool
    """True if they need no earlier lines."""
    packed: list[str]
    plain: list[bytes]
    is_wire: Array
    is_received: Array
    hashes: list[str]
    """Hashes of the wire messages."""


class Block(NamedTuple):
    """Consecutive lines."""

    by_event: dict[str, Lines]
    at_ms: list[int]
    wire: Lines
    """Lines with wire messages."""
    texts: Texts

    def lines(self, event: str) -> Lines:
        return self.by_event.get(event, Lines(np.zeros(0, np.int64), []))


def blocks_of(file: IO[bytes], first: int) -> Iterator[Block]:
    """Yield the rest of a file, also cut before fresh lines. `first` is the number of its first
    line.

    Raises:
        NeedsRowReader: a line that cannot be read, or that is not understood here.
    """
    longest = MAX_LINE_BYTES - BLOCK_BYTES
    while read := file.read(BLOCK_BYTES):
        rest = file.readline(longest)
        if len(rest) == longest:
            raise NeedsRowReader("a line of the journal is too long for the column reader")
        rows = _rows(read + rest)
        fresh = [place for place, row in enumerate(rows) if row.fresh]
        for begin, end in pairwise([0, *fresh, len(rows)]):
            if begin < end:
                yield _block(rows[begin:end], first + begin)
        first += len(rows)


def _rows(block: bytes) -> list[Json]:
    try:
        rows = all_json_of(block)
    except (ValueError, RecursionError) as error:
        raise NeedsRowReader("a line of the journal is not JSON") from error
    # Where all lines begin and end with braces none goes on in the next one.
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(data == _LINE_END)
    inner = ends[:-1] if block.endswith(b"\n") else ends
    is_whole = (data[inner - 1] == _CLOSED).all() and (data[inner + 1] == _OPENED).all()
    if not is_whole or data[0] != _OPENED or len(inner) != len(rows) - 1:
        raise NeedsRowReader("a line of the journal is not one JSON object")
    if not block.isascii():
        _utf8(block)
    return rows


def hashed(texts: Sequence[str]) -> bytes:
    """Return hashes of 32 bytes from their hex text.

    Raises:
        NeedsRowReader: something else.
    """
    if set(map(len, texts)) - {HASH_DIGITS}:
        raise NeedsRowReader("a hash has a wrong number of digits")
    try:
        found = bytes.fromhex("".join(texts))
    except ValueError as error:
        raise NeedsRowReader("a hash has other characters than hexadecimal digits") from error
    if 2 * len(found) != HASH_DIGITS * len(texts):
        raise NeedsRowReader("a hash has other characters than hexadecimal digits")
    return found


def _block(rows: list[Json], first: int) -> Block:
    names, redelivered, packed, plain, at_ms = Lines(_NOWHERE, rows).columns(*_COMMON)
    if any(redelivered):
        raise NeedsRowReader("the application received a message again after a restart")
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    if not numbers.keys() <= KNOWN or OPENED in numbers:
        raise NeedsRowReader("the journal has an unknown event, or begins another session")
    events = np.fromiter(map(numbers.__getitem__, names), np.int64, len(rows))
    by_event = {
        name: Lines(first + places, [rows[place] for place in places.tolist()])
        for name, number in numbers.items()
        for places in [np.flatnonzero(events == number)]
    }
    for name, lines in by_event.items():
        if name not in TAKEN_APART:
            lines.hashes()
    carries = np.array([a is not None or b is not None for a, b in zip(packed, plain, strict=True)])
    is_wire = np.isin(events, [numbers.get(WIRE_IN, -1), numbers.get(WIRE_OUT, -1)])
    is_received = events == numbers.get(RECEIVED, -1)
    if not carries[is_wire | is_received].all():
        raise NeedsRowReader("a line lacks the bytes of its message")
    places = np.flatnonzero(is_wire)
    wire = Lines(first + places, [rows[place] for place in places.tolist()])
    texts = Texts(
        rows[0].fresh,
        [each for each in packed if each is not None],
        [each for each in plain if each is not None],
        is_wire[carries],
        is_received[carries],
        [row.message_hash or "" for row in wire.rows],
    )
    return Block(by_event, at_ms, wire, texts)


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
        if not any(each.packed for each in self._waiting):
            self.decode()

    def decode(self) -> None:
        """Decode the lines that wait.

        Raises:
            NeedsRowReader: bytes that are not understood here.
        """
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        columns = zip(*waiting, strict=True)
        _, packed, plain, wires, received_lines, hash_lists = columns
        texts = _unpacked([*chain(*packed)], [*chain(*plain)])
        wire = np.flatnonzero(np.concatenate(wires))
        received = np.flatnonzero(np.concatenate(received_lines))
        hashes = [*chain(*hash_lists)]
        places = self._known.places(hashes, texts.bytes_of()[wire])
        new = places < 0
        contents, is_known = self._known.contents(texts, wire, places, received)
        skipped = np.append(wire[~new], received[is_known])
        found = messages_of(texts, wire[new], received[~is_known], skipped, self._known.ids)
        contents[~is_known] = found.contents
        self.messages.append(self._known.with_known(found.messages, places))
        self.contents.append(contents)
        self._known.add([*compress(hashes, new)], found)


def _unpacked(texts: list[str], payloads: list[bytes]) -> Unpacked:
    """The bytes of lines, which are all packed or all as they are."""
    if texts and payloads:
        raise NeedsRowReader("one block has packed bytes and plain bytes")
    found = unpacked(texts) if texts else whole(payloads)
    if (found.bytes_of() > MAX_MESSAGE_BYTES).any():
        raise NeedsRowReader("a payload is longer than a Waku message")
    return found


def _utf8(block: bytes) -> None:
    """What is passed over in a line must be text as well, as `line_of` would keep it."""
    try:
        block.decode()
    except UnicodeDecodeError as error:
        raise NeedsRowReader("a line of the journal is not UTF-8") from error
