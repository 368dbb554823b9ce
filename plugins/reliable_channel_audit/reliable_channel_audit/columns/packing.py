"""Decoder of packed bytes in many lines at once (`reliable_channel.runtime.journal_packing`). Each
token is replaced by the number of a piece, and each piece is decoded once."""

from __future__ import annotations

import zlib
from binascii import a2b_base64
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from reliable_channel.spi import MAX_FIELDS

from .wire import Array, Bytes, NeedsRowReader, Whole, ramps

MAX_PIECES: Final = 2 * MAX_FIELDS
"""Maximum number of the numbered fields that an `Unpacker` remembers."""
MAX_DIGITS: Final = 9
_SPACE, _EQUALS, _TILDE, _DASH, _ZERO, _FILLED = b" =~-0A"


class Pieces(NamedTuple):
    """Pieces of bytes from which payloads are composed, each once."""

    text: bytes
    begins: Whole
    ends: Whole

    def piece(self, number: int) -> bytes:
        return self.text[int(self.begins[number]) : int(self.ends[number])]


class Unpacked(NamedTuple):
    """Texts as numbers of the pieces that they consist of."""

    decode: Callable[[Array], Pieces]
    """Function that returns the bytes of the wanted pieces, and leaves other pieces empty. The
    function raises `NeedsRowReader` for bytes that a `Packer` does not write."""
    sizes: Whole
    """Length of each piece (bytes)."""
    uses: Whole
    """Numbers of the pieces in all texts, beginning with the first text."""
    counts: Whole
    """Number of pieces in each text."""
    is_value: Array
    """True for each text that is the value of its piece, without tag and length."""

    def bytes_of(self) -> Whole:
        """Return the number of bytes that each text stands for."""
        ends = np.cumsum(self.sizes[self.uses])[np.cumsum(self.counts) - 1]
        return np.diff(ends, prepend=0)

    def places(self, texts: Whole) -> Whole:
        """Return the place of each piece in its text, for some texts."""
        counts = self.counts[texts]
        sizes = self.sizes[self.uses[ramps((np.cumsum(self.counts) - self.counts)[texts], counts)]]
        before = np.cumsum(sizes) - sizes
        return before - np.repeat(before[np.cumsum(counts) - counts], counts)


def unpacked(texts: Sequence[str]) -> Unpacked:
    """Return the pieces of packed texts that need no earlier texts.

    Raises:
        NeedsRowReader: bytes that are missing, or are not written as a `Packer` does.
    """
    joined = " ".join(texts)
    if not joined.isascii():
        raise NeedsRowReader("a packed text is not ASCII")
    data = np.frombuffer(joined.encode(), np.uint8)
    spaces = np.flatnonzero(data == _SPACE)
    begins, ends = np.append(0, spaces + 1), np.append(spaces, len(data))
    if (begins >= ends).any():
        raise NeedsRowReader("a packed text has an empty token")
    text_begins = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + 1)
    text_of = np.searchsorted(text_begins, begins, side="right")
    equals = np.append(np.flatnonzero(data == _EQUALS), len(data))
    signs = equals[np.searchsorted(equals, begins)]
    defined = np.flatnonzero(signs < ends)
    names = begins[defined], signs[defined]
    values = signs[defined] + 1, ends[defined]
    if (values[0] >= values[1]).any():
        raise NeedsRowReader("a packed piece is empty")
    has_name = np.flatnonzero(names[0] < names[1])
    numbers = _numbers(data, names[0][has_name], names[1][has_name])
    table = _table(numbers, has_name)
    definitions = _Definitions(joined, data, names, values)
    if (definitions.sizes <= 0).any():
        raise NeedsRowReader("a packed piece has no bytes")
    tokens = _Tokens(data, begins, ends, text_of, defined)
    return _resolved(tokens, table, definitions, len(texts))


class _Tokens(NamedTuple):
    data: Bytes
    begins: Whole
    ends: Whole
    text_of: Whole
    """In which text each stands."""
    defined: Whole
    """Those that define a piece, one each."""


def _resolved(tokens: _Tokens, table: Whole, definitions: _Definitions, texts: int) -> Unpacked:
    """Pieces of tokens, which are definitions, numbers, ranges or values."""
    data, begins, ends, text_of, defined = tokens
    count = len(begins)
    firsts, lengths = np.zeros(count, np.int64), np.ones(count, np.int64)
    is_number = np.ones(count, bool)
    firsts[defined], is_number[defined] = np.arange(len(defined)), False
    of_value = is_number & (data[begins] == _TILDE)
    at = np.flatnonzero(of_value)
    if (np.bincount(text_of, minlength=texts)[text_of[at]] != 1).any():
        raise NeedsRowReader("a packed text has a value among other bytes")
    is_value = np.zeros(texts, bool)
    is_value[text_of[at]] = True
    dashes = np.append(np.flatnonzero(data == _DASH), len(data))
    middle = np.minimum(dashes[np.searchsorted(dashes, begins)], ends)
    at = np.flatnonzero(is_number)
    firsts[at] = _numbers(data, begins[at] + of_value[at], middle[at])
    at = np.flatnonzero(is_number & (middle < ends))
    last = _numbers(data, middle[at] + 1, ends[at])
    if of_value[at].any() or (last <= firsts[at]).any() or (last >= len(table)).any():
        raise NeedsRowReader("a packed text names a range of fields, of which some are missing")
    lengths[at] = last - firsts[at] + 1
    uses = ramps(firsts, lengths)
    by_number = np.repeat(is_number, lengths)
    if (uses[by_number] >= len(table)).any():
        raise NeedsRowReader("a packed text refers to a line that could not be read")
    uses[by_number] = table[uses[by_number]]
    used_at = np.repeat(np.arange(count), lengths)
    if (uses < 0).any() or (defined[uses] > used_at).any():
        raise NeedsRowReader("a packed text refers to a line that could not be read")
    counts = np.bincount(text_of, weights=lengths, minlength=texts).astype(np.int64)
    return Unpacked(definitions.decoded, definitions.sizes, uses, counts, is_value)


def _table(numbers: Whole, pieces: Whole) -> Whole:
    """Pieces by number; -1 where there is none."""
    if len(numbers) > MAX_PIECES or (numbers > 4 * MAX_PIECES).any():
        raise NeedsRowReader(
            "packed texts define too many fields, or a field has too large a number"
        )
    table = np.full(int(numbers.max()) + 1 if len(numbers) else 0, -1, np.int64)
    table[numbers] = pieces
    if (table[numbers] != pieces).any():
        raise NeedsRowReader("packed texts give two fields the same number")
    return table


def _numbers(data: Bytes, begins: Whole, ends: Whole) -> Whole:
    """Numbers that are written as no other text is."""
    sizes = ends - begins
    if len(sizes) and (sizes.min() < 1 or sizes.max() > MAX_DIGITS):
        raise NeedsRowReader("the number of a packed field has no digits or too many digits")
    if ((data[begins] == _ZERO) & (sizes > 1)).any():
        raise NeedsRowReader("the number of a packed field begins with 0")
    found = np.zeros(len(sizes), np.int64)
    for nth in range(int(sizes.max(initial=0))):
        at = np.flatnonzero(sizes > nth)
        digits = data[begins[at] + nth].astype(np.int64) - _ZERO
        if ((digits < 0) | (digits > 9)).any():
            raise NeedsRowReader("the number of a packed field has other characters than digits")
        found[at] = 10 * found[at] + digits
    return found


class _Definitions:
    """Pieces as they are written: whole, or as differences from one before."""

    def __init__(
        self, joined: str, data: Bytes, names: tuple[Whole, Whole], values: tuple[Whole, Whole]
    ) -> None:
        self._joined, self._values = joined, values
        self._base: dict[int, int] = {}
        """By piece the one before that it is a difference from."""
        self._flips: dict[int, str] = {}
        begins, ends = values
        is_padded = data[ends - 1] == _EQUALS
        self._padding = is_padded + (is_padded & (data[ends - 2] == _EQUALS)).astype(np.int64)
        self.sizes = (ends - begins) // 4 * 3 - self._padding
        if "^" in joined:
            self._find_bases(names)

    def _find_bases(self, names: tuple[Whole, Whole]) -> None:
        joined = self._joined
        numbered: dict[str, int] = {}
        every = zip(*(each.tolist() for each in (*names, *self._values)), strict=True)
        for piece, (name, name_end, begin, end) in enumerate(every):
            if "^" in (text := joined[begin:end]):
                base, _, self._flips[piece] = text.rpartition("^")
                if base not in numbered:
                    raise NeedsRowReader(
                        "a packed difference refers to a line that could not be read"
                    )
                self._base[piece] = numbered[base]
                self.sizes[piece] = self.sizes[numbered[base]]
            if name < name_end:
                numbered[joined[name:name_end]] = piece

    def decoded(self, wanted: Array) -> Pieces:
        """The bytes of these pieces; others are empty."""
        wanted = wanted.copy()
        for piece, base in reversed(self._base.items()):
            wanted[base] |= wanted[piece]
        plain = wanted.copy()
        plain[list(self._base)] = False
        found = self._whole(np.flatnonzero(plain))
        if not self._base:
            return found
        parts: list[bytes | Bytes] = []
        for piece in range(len(wanted)):
            if not wanted[piece]:
                parts.append(b"")
            elif piece in self._base:
                parts.append(_flipped(parts[self._base[piece]], self._flips[piece]))
            else:
                parts.append(found.piece(piece))
        return _pieces(b"".join(parts), np.fromiter(map(len, parts), np.int64, len(parts)))

    def _whole(self, at: Whole) -> Pieces:
        """Pieces that are no differences, all at once."""
        if not len(at):
            return _pieces(b"", np.zeros(len(self.sizes), np.int64))
        begins, ends, padding = (each[at] for each in (*self._values, self._padding))
        places = map(slice, begins.tolist(), ends.tolist())
        text = "".join(map(self._joined.__getitem__, places))
        joined = np.frombuffer(bytearray(text, "ascii"), np.uint8)
        sign = joined == _EQUALS
        if int(sign.sum()) != int(padding.sum()) or ((ends - begins) % 4).any():
            raise NeedsRowReader("a packed piece is not base64")
        joined[sign] = _FILLED
        try:
            data = a2b_base64(joined, strict_mode=True)
        except ValueError as error:
            raise NeedsRowReader("a packed piece is not base64") from error
        sizes = (ends - begins) // 4 * 3
        placed = np.zeros(len(self.sizes), np.int64)
        placed[at] = np.cumsum(sizes) - sizes
        lengths = np.zeros(len(self.sizes), np.int64)
        lengths[at] = sizes - padding
        return Pieces(data, placed, placed + lengths)


def _flipped(base: bytes | Bytes, packed: str) -> Bytes:
    """As long as its base, with some bits of it flipped."""
    try:
        flips = a2b_base64(packed, strict_mode=True)
        bits = zlib.decompressobj().decompress(flips, len(base) + 1)
    except (ValueError, zlib.error) as error:
        raise NeedsRowReader("a packed piece is not a compressed difference") from error
    if len(bits) != len(base):
        raise NeedsRowReader("a packed difference is not as long as its base")
    return np.frombuffer(base, np.uint8) ^ np.frombuffer(bits, np.uint8)


def _pieces(text: bytes, sizes: Whole) -> Pieces:
    ends = np.cumsum(sizes)
    return Pieces(text, ends - sizes, ends)
