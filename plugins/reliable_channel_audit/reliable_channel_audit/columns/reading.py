"""Lines of one participant's journals as columns, in stretches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import IO, Any, Final, NamedTuple

import numpy as np

from reliable_channel.spi import MAX_MESSAGE_BYTES

from ..journals import MAX_LINE_BYTES
from ..lines import KNOWN, LOGGED, OPENED, WIRE_IN, WIRE_OUT, Json, all_json_of
from .known import Known
from .messages import Ids, Messages, messages_of
from .packing import Unpacked, unpacked, whole
from .wire import Array, NeedsRowReader, Whole

BLOCK_BYTES: Final = 4 * 1024 * 1024
"""Size of the text that is read at a time."""
MAX_RANGE: Final = 200_000
"""Maximum number of lines that need each other. A `Packer` starts over much earlier."""
HASH_DIGITS: Final = 64
RECEIVED: Final = "message_received"
TAKEN_APART: Final = frozenset({WIRE_IN, WIRE_OUT, LOGGED})
"""Events whose hashes become columns."""
_LINE_END, _OPENED, _CLOSED = b"\n{}"
_COMMON: Final = attrgetter("event", "redelivered", "packed", "payload", "at_ms")


class Lines(NamedTuple):
    """Lines of one kind, with their numbers in the life."""

    numbers: Whole
    rows: list[Json]

    def columns(self, *names: str) -> list[tuple[Any, ...]]:
        """Return the values of the lines, by name."""
        if not self.rows:
            return [()] * len(names)
        return list(zip(*map(attrgetter(*names), self.rows), strict=True))

    def hashes(self) -> None:
        """Check hashes that are not needed here: a line with another text is invalid.

        Raises:
            NeedsRowReader: there is one.
        """
        for column in self.columns("message_hash", "retrieval_hint", "content_sha256"):
            hashed([each for each in column if each is not None])


class LineRange(NamedTuple):
    """Consecutive lines that need no earlier lines."""

    by_event: dict[str, Lines]
    at_ms: Sequence[int]
    wire: Lines
    """Lines with wire messages."""
    messages: Messages
    contents: Array
    """Hashes (sha256) of received contents, one row of bytes each."""

    def lines(self, event: str) -> Lines:
        return self.by_event.get(event, Lines(np.zeros(0, np.int64), []))


def blocks_of(file: IO[bytes]) -> Iterator[bytes]:
    """The rest of a file, in whole lines."""
    longest = MAX_LINE_BYTES - BLOCK_BYTES
    while read := file.read(BLOCK_BYTES):
        rest = file.readline(longest)
        if len(rest) == longest:
            raise NeedsRowReader("a line of the journal is too long for the column reader")
        yield read + rest


def line_ranges(
    blocks: Iterator[bytes], first: int, ids: Ids, known: Known | None = None
) -> Iterator[LineRange]:
    """Yield the lines of a journal, cut at fresh lines. `first` is the number of the first line.

    Raises:
        NeedsRowReader: a line that cannot be read, or that is not understood here.
    """
    waiting: list[Json] = []
    for block in blocks:
        rows = _rows(block)
        begin = 0
        for end in [place for place, row in enumerate(rows) if row.fresh]:
            waiting += rows[begin:end]
            if waiting:
                yield _line_range(waiting, first, ids, known)
            first, begin, waiting = first + len(waiting), end, []
        waiting += rows[begin:]
        if len(waiting) > MAX_RANGE:
            raise NeedsRowReader("too many lines of the journal refer to each other")
        if not any(row.packed is not None for row in waiting):
            yield _line_range(waiting, first, ids, known)
            first, waiting = first + len(waiting), []
    if waiting:
        yield _line_range(waiting, first, ids, known)


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


def _line_range(rows: list[Json], first: int, ids: Ids, known: Known | None) -> LineRange:
    names, redelivered, packed, plain, at_ms = zip(*map(_COMMON, rows), strict=True)
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
    wire, received = np.flatnonzero(is_wire[carries]), np.flatnonzero(is_received[carries])
    places = np.flatnonzero(is_wire)
    wired = Lines(first + places, [rows[place] for place in places.tolist()])
    texts = _unpacked(packed, plain)
    if known is None:
        messages, contents, *_ = messages_of(texts, wire, received, ids)
        return LineRange(by_event, at_ms, wired, messages, contents)
    hashes = [row.message_hash or "" for row in wired.rows]
    at = known.places(hashes, texts.bytes_of()[wire])
    new = at < 0
    found = messages_of(texts, wire[new], received, ids, wire[~new])
    messages = known.with_known(found.messages, at)
    hashed([each for each, is_new in zip(hashes, new.tolist(), strict=True) if is_new])
    known.add([each for each, is_new in zip(hashes, new.tolist(), strict=True) if is_new], found)
    return LineRange(by_event, at_ms, wired, messages, found.contents)


def _unpacked(packed: Sequence[str | None], plain: Sequence[bytes | None]) -> Unpacked:
    """The bytes of lines, which are all packed or all as they are."""
    texts = [each for each in packed if each is not None]
    payloads = [each for each in plain if each is not None]
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
